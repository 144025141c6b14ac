"""Code of any language as a row of lexemes: names, texts, shell texts and marks, without comments, by its own grammar.

The grammars are tree-sitter's; R has none there and is read by pygments. A text with something filled in at run time has a HOLE
there, and the code that fills it follows at the end.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple

from sandboxmcp.policy.facts import HOLE

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

GRAMMARS = {
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "ruby": ("tree_sitter_ruby", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "perl": ("tree_sitter_perl", "language"),
    "elixir": ("tree_sitter_elixir", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "powershell": ("tree_sitter_powershell", "language"),
}
LEXED = frozenset({*GRAMMARS, "r"})
_MOST_BYTES = 1 << 20
_MOST_NODES = 300_000
_MOST_SECONDS = 1.0
"""Processor time of the parser, which has no limit of its own."""
_PIECE = 4_096
_TEXTS = frozenset(
    {
        "string", "template_string", "interpreted_string_literal", "raw_string_literal", "string_literal", "encapsed_string",
        "interpolated_string_literal", "sigil", "interpolated_string_expression", "verbatim_string_literal", "quoted_atom",
        "heredoc_body", "heredoc", "nowdoc", "charlist", "string_array", "character_literal", "expandable_string_literal",
        "verbatim_string_characters", "expandable_here_string_literal",
    }
)  # fmt: skip
_SHELL = frozenset({"subshell", "shell_command_expression", "command_string"})
_SKIPPED = frozenset(
    {
        "comment", "line_comment", "block_comment", "pod", "hash_bang_line", "regex", "match_regexp", "quoted_regexp",
        "regexp_content",
    }
)  # fmt: skip
"""Comments, and regular expressions."""
_CONTENT = re.compile(
    r"(?:string|quoted|interpreted_string_literal|raw_string_literal|heredoc|string_literal|nowdoc)_(?:content|fragment|string)"
    r"|escape_sequence|escape_interpolation"
)
_NAME = re.compile(r":?[A-Za-z_$][\w$]*[!?]?(?:::\w+)*\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": ""}
_FREE_PROPERTY = frozenset({"property_identifier", "private_property_identifier"})


class Lexeme(NamedTuple):
    """One piece of code. A mark is an operator, a bracket or a number."""

    kind: Literal["name", "text", "shell", "mark"]
    text: str
    line: int


def parse(source: bytes, grammar: tuple[str, str]) -> Tree | str:
    """The tree, or why there is none. The parser is starved when it has had its time."""
    import tree_sitter

    if len(source) > _MOST_BYTES:
        return f"code of more than {_MOST_BYTES:,} bytes"
    end = time.thread_time() + _MOST_SECONDS

    def piece(offset: int, _: object) -> bytes:
        return source[offset : offset + _PIECE] if time.thread_time() < end else b""

    tree = tree_sitter.Parser(_language(grammar)).parse(piece)
    if time.thread_time() >= end:
        return "code that takes too long to parse"
    return "code with very many parts" if tree.root_node.descendant_count > _MOST_NODES else tree


@cache
def _language(grammar: tuple[str, str]) -> Language:
    import tree_sitter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some grammars still hand over a number
        return tree_sitter.Language(getattr(import_module(grammar[0]), grammar[1])())


def lexemes_of(code: str, language: str) -> list[Lexeme] | str:
    """The lexemes in the order of the source, or why there are none."""
    if language == "r":
        return _in_time(_by_pygments(code)) if len(code) <= _MOST_BYTES else f"code of more than {_MOST_BYTES:,} bytes"
    if language == "php" and "<?" not in code:
        code = "<?php " + code
    source = code.replace("\0", "").encode("utf-8", "replace")
    tree = parse(source, GRAMMARS[language])
    return tree if isinstance(tree, str) else list(_leaves(tree.root_node, source))


def _in_time(lexemes: Iterator[Lexeme]) -> list[Lexeme] | str:
    """The lexer of R takes seconds for some texts that are no R."""
    end = time.thread_time() + _MOST_SECONDS
    found: list[Lexeme] = []
    for lexeme in lexemes:
        found.append(lexeme)
        if time.thread_time() > end:
            return "code that takes too long to parse"
    return found


def _leaves(root: Node, source: bytes) -> Iterator[Lexeme]:
    stack: list[Node] = [root]
    filling: list[Node] = []
    before = ""
    while stack or filling:
        if not stack:  # code inside texts comes last, so that a text among arguments stays one argument
            stack.append(filling.pop())
            yield Lexeme("mark", ";", stack[-1].start_point[0] + 1)
        node = stack.pop()
        if node.type in _SKIPPED:
            continue
        line = node.start_point[0] + 1
        if node.type in _SHELL or (node.type in _TEXTS and node.is_named):
            text, inside = _text(node, source)
            yield Lexeme("shell" if node.type in _SHELL else "text", text, line)
            before = ""
            filling += inside
        elif node.child_count:
            stack.extend(reversed(node.children))
        else:
            text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
            named = _NAME.match(text) and not (node.type in _FREE_PROPERTY and before not in (".", "?."))
            yield Lexeme("name" if named else "mark", text, line)
            before = text


def _text(node: Node, source: bytes) -> tuple[str, list[Node]]:
    """What a text is, and the code in it. Its fragments are joined; what stands between them is not known."""
    if not node.child_count:
        return source[node.start_byte : node.end_byte].decode("utf-8", "replace").lstrip("@$~crbR").strip("\"'`"), []
    pieces: list[str] = []
    inside: list[Node] = []
    for child in node.children:
        if _CONTENT.fullmatch(child.type):
            pieces.append(_unescaped(source[child.start_byte : child.end_byte].decode("utf-8", "replace")))
        elif child.is_named and child.type in _TEXTS:
            text, more = _text(child, source)
            pieces.append(text)
            inside += more
        elif child.is_named and child.type not in {"sigil_name", "sigil_modifiers", "interpolation_start", "interpolation_quote"}:
            pieces.append(HOLE)
            inside.append(child)
        elif child.type == "$":
            pieces.append(HOLE)
    return "".join(pieces), inside


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:x([0-9a-fA-F]{2})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]), text)


def _by_pygments(code: str) -> Iterator[Lexeme]:
    """R, by the lexer that documentation is coloured with."""
    from pygments.lexers import SLexer
    from pygments.token import Comment, Name, String

    line, text, began = 1, "", 1
    for kind, value in SLexer(ensurenl=False).get_tokens(code.replace("\0", "")):
        if kind in String:
            began = began if text else line
            text += value
        else:
            if text:
                yield Lexeme("text", text[1:-1], began)
                text = ""
            if value.strip() and kind not in Comment:
                yield Lexeme("name" if kind in Name or _NAME.match(value) else "mark", value, line)
        line += value.count("\n")
    if text:
        yield Lexeme("text", text[1:-1], began)
