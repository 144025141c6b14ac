"""PowerShell and `cmd`. PowerShell by its syntax tree: commands as the shell's rules see them, .NET calls like any others.

What `cmd /c` runs is said in the shell's words: the same commands joined the same ways, with other quotes and other variables
(source: cmd /? and `help set`; a caret takes the meaning of the next letter, `%NAME%` and `!NAME!` are filled in).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sandboxmcp.policy.analysis.lexemes import GRAMMARS, parse
from sandboxmcp.policy.analysis.other_languages import foreign_facts
from sandboxmcp.policy.facts import HOLE, UNKNOWN_NAME, Command, Fact, Sink, Unknown, Word
from sandboxmcp.policy.programs.argv import command_of, expand_command
from sandboxmcp.policy.programs.knowledge import Knowledge

if TYPE_CHECKING:
    from tree_sitter import Node

_PIECE = re.compile(r'"[^"]*"?|\^(.)|%[^%\s]+%|![^!\s]+!|%%?~?\w|.', re.DOTALL)
_SKIPPED = frozenset({"command_argument_sep", "command_invokation_operator"})


def powershell_facts(code: str, knowledge: Knowledge, stdout: Sink = "stream", stderr: Sink = "stream") -> tuple[Fact, ...]:
    """The facts of PowerShell code whose output goes to `stdout` and `stderr`."""
    source = code.replace("\0", "").encode("utf-8", "replace")
    tree = parse(source, GRAMMARS["powershell"])
    if isinstance(tree, str):
        return (Unknown(1, f"powershell {tree}"),)
    return (*_commands(tree.root_node, source, knowledge, stdout, stderr), *foreign_facts(code, "powershell", knowledge))


def _commands(root: Node, source: bytes, knowledge: Knowledge, stdout: Sink, stderr: Sink) -> Iterator[Fact]:
    stack = [root]
    while stack:
        node = stack.pop()
        stack.extend(reversed(node.children))
        if node.type != "command":
            continue
        words = [_word(part, source) for part in _parts(node)]
        if words:
            name = words[0].text.replace("\\", "/").rsplit("/", 1)[-1].lower().removesuffix(".exe")
            found = command_of([Word(name, words[0].line), *words[1:]], Command(words[0].line, "", (), stdout, stderr))
            yield from expand_command(found, knowledge) if isinstance(found, Command) else [found] if found else []


def _parts(command: Node) -> Iterator[Node]:
    """The name, then the arguments."""
    for child in command.children:
        if child.type == "command_elements":
            yield from (part for part in child.children if part.type not in _SKIPPED)
        elif child.is_named and child.type not in _SKIPPED:
            yield child


def _word(node: Node, source: bytes) -> Word:
    text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    line = node.start_point[0] + 1
    if text[:1] in ('"', "'") and text[-1:] == text[:1] and len(text) > 1:
        text, quote = text[1:-1], text[0]
        return Word(HOLE if quote == '"' and "$" in text else text, line)
    return Word(HOLE if "$" in text or text.startswith(("(", "@")) else text, line)


def cmd_as_shell(code: str) -> str:
    """Shell code that starts what the batch code starts. Labels and blocks stay what they are: unknown commands."""
    text = code.strip()
    if len(text) > 1 and text[0] == text[-1] == '"' and text.count('"') % 2 == 0:
        text = text[1:-1]  # `cmd /s /c "…"` takes the outer ones away
    return _PIECE.sub(_said, text)


def _said(match: re.Match[str]) -> str:
    piece = match[0]
    if match[1]:
        return _plain(match[1])
    if piece[0] == '"':
        inner = piece.strip('"').replace("\\", "/").replace("'", "'\\''")
        return f"'{inner}'"
    if piece[0] in "%!" and len(piece) > 1:
        return f"${{{UNKNOWN_NAME}}}"
    return _plain(piece)


def _plain(letter: str) -> str:
    """Letters that mean something to a shell and nothing to cmd; `@` before a command only keeps it from being shown."""
    return {"\\": "/", "'": "\\'", "`": "\\`", "$": "\\$", "#": "\\#", ";": " ", "@": "", "*": "\\*", "!": "\\!"}.get(
        letter, letter
    )
