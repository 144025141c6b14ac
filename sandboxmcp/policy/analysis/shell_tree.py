"""Parsing shell code with tree-sitter-bash, and what is read off the whole tree before the walk.

The grammar's own heredocs are wrong in many ways, so it never sees one: `heredocs.py` takes them out. Where it loses its way in
other code, the commands that the scan has found and the tree has not are parsed again, each alone.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from sandboxmcp.policy.analysis.heredocs import BLANK, Heredoc, without_heredocs
from sandboxmcp.policy.analysis.shell_scan import Scan, Span, scan
from sandboxmcp.policy.analysis.shell_words import TEMPORARY, Variables, expanded, raw_of, text_of
from sandboxmcp.policy.facts import HOLE, Word

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser, Tree

_MOST_BYTES = 2 << 20
_MOST_IN_A_ROW = 1_500
"""Pipes or heredocs in one statement: the parser's memory grows with their square (measured: 2,000 take 80 MB, 4,000 take 240)."""
_MOST_NODES = 150_000
"""About 25,000 commands."""
_MOST_SECONDS = 1.0
"""Processor time of the parser."""
_PIECE = 4_096
_STATEMENT_ENDS = re.compile(rb"(?<![|\\])\n|;|&&")
_FOR_WITHOUT_IN = re.compile(rb"\b(for[ \t]+\w+[ \t]*)(?=\n\s*do\b)")
"""The grammar wants a `;` there, and loses its way over many lines without it."""
_SETTERS = frozenset({"read", "mapfile", "readarray", "printf", "getopts"})
"""Commands that set variables which they are told by name."""
_GIVEN = {"HOME": "~", "PWD": "."}
"""Variables that a shell starts with, as paths.py spells them."""
_NO_COMMANDS = frozenset(b"[ declare typeset export readonly local unset unsetenv".split())
"""Words that start a command for bash, and something else in the tree."""


@dataclass(slots=True)
class Parsed:
    """Shell code as it was parsed."""

    root: Node
    source: bytes
    """Lines are those of what was given, columns need not be."""
    scan: Scan
    codes: list[bytes]
    """The source without its heredocs; then the source without those in the texts of heredocs, and so on."""
    left_s: float
    """Processor time that the parser may still take."""
    heredocs: Mapping[int, Heredoc] = field(default_factory=dict)
    """By the place of the operator."""
    herestrings: frozenset[int] | set[int] = frozenset()
    """The places of the operators."""
    escaped: frozenset[int] | set[int] = frozenset()
    """The places of backticks with backslashes inside."""
    lines: list[int] = field(default_factory=list)
    """Where each line begins; empty: not looked up yet."""

    pieces: list[Node] = field(default_factory=list)
    """Kept, so that no other tree's nodes get the same identity."""

    def line(self, at: int) -> int:
        """The line of a place, from 1."""
        if not self.lines:
            self.lines += [0, *(match.end() for match in re.finditer(rb"\n", self.source))]
        return bisect_right(self.lines, at)

    def text_at(self, operator: int, target: str, variables: Variables) -> Word | None:
        """The text of the heredoc, or of the herestring with this target, whose operator stands at a place; None: there is none."""
        if operator in self.herestrings:
            return Word(target, self.line(operator))
        heredoc = self.heredocs.get(operator)
        if heredoc is None:
            return None
        return Word(heredoc.text(self.source, lambda raw: expanded(raw, variables)), self.line(max(heredoc.body, heredoc.at)))

    def commands_in(self, root: Node) -> Iterator[tuple[int, int]]:
        """Where each command's name begins that the tree has without a fault, and where the command ends with its redirections."""
        stack = [(root, 0)]
        while stack:
            node, end = stack.pop()
            if node.type == "command_substitution" and node.start_byte in self.escaped:
                continue
            if node.type == "command" and not node.has_error and (name := node.child_by_field_name("name")) is not None:
                yield name.start_byte, max(node.end_byte, end)
            children = node.named_children
            stack.extend((child, 0) for child in children)
            if node.type == "redirected_statement" and children and not node.has_error:
                stack[-len(children)] = children[0], node.end_byte
            elif node.type in ("pipeline", "list") and children:  # the grammar gives the redirections of the last command to all
                stack[-1] = children[-1], end

    def piece(self, start: int, end: int, depth: int) -> Node | None:
        """The tree of a part of the code, with the places and lines that it has in the whole; None: the time is used up."""
        import tree_sitter

        if depth >= len(self.codes):
            self.codes += [_plain_code(self.source, self.scan, at) for at in range(len(self.codes), depth + 1)]
        first, last = (tree_sitter.Point(line - 1, at - self.lines[line - 1]) for at in (start, end) for line in (self.line(at),))
        parser = _parser()
        parser.included_ranges = [tree_sitter.Range(first, last, start, end)]
        tree, self.left_s = _parsed(parser, self.codes[depth], self.left_s)
        if tree is None:
            return None
        self.pieces.append(tree.root_node)
        return tree.root_node


@cache
def _language() -> Language:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def _parser() -> Parser:
    import tree_sitter

    return tree_sitter.Parser(_language())


def _parsed(parser: Parser, code: bytes, left_s: float) -> tuple[Tree | None, float]:
    """The tree, None when its time is used up, and the time that is left."""
    begun = time.thread_time()
    end = begun + left_s

    def piece(offset: int, _: object) -> bytes:
        return code[offset : offset + _PIECE] if time.thread_time() < end else b""

    tree = parser.parse(piece)
    left = end - time.thread_time()
    return (tree if left > 0 else None), left


def _plain_code(source: bytes, found: Scan, depth: int) -> bytes:
    """The code as the grammar understands it, with every place where it was."""
    others = [(one.start, source[one.start : one.end].translate(BLANK)) for one in found.keywords if one.depth == depth]
    others += [(one.start, b"**") for one in found.shifts if one.depth == depth]
    others += [(one.start, b"_") for one in found.brackets if one.depth == depth]
    others += [(one.start, b"<  ") for one in found.herestrings if one.depth == depth]
    return without_heredocs(source, [one for one in found.heredocs if one.depth == depth], others)


def parse(source: bytes) -> Parsed | str:
    """The code parsed, or why it cannot be.

    The parser has no limit of its own, and on text that is no shell its time grows with the square of the length, so it is fed
    in pieces and starved when it has had its time. Shell code of any usual kind takes a thousandth of that.
    """
    if len(source) > _MOST_BYTES:
        return f"shell code of more than {_MOST_BYTES:,} bytes"
    if _in_a_row(source) > _MOST_IN_A_ROW:
        return f"shell code with more than {_MOST_IN_A_ROW:,} pipes or heredocs in one statement"
    source = _FOR_WITHOUT_IN.sub(rb"\1;", source)
    found, source = scan(source)
    code = _plain_code(source, found, 0)
    tree, left_s = _parsed(_parser(), code, _MOST_SECONDS)
    if tree is None:
        return "shell code that takes too long to parse"
    if tree.root_node.descendant_count > _MOST_NODES:
        return f"shell code of more than {_MOST_NODES:,} syntax nodes"
    return Parsed(
        tree.root_node,
        source,
        found,
        [code],
        left_s,
        {one.at: one for one in found.heredocs},
        {one.start for one in found.herestrings},
        {one.at for one in found.backticks},
    )


def missed_commands(parsed: Parsed, seen: Mapping[int, int]) -> list[Span]:
    """The commands that bash reads in the code and the tree does not hold whole, in order."""
    missed = [span for span in parsed.scan.commands if not is_seen(parsed, span, seen)]
    return sorted(missed, key=lambda span: (span.depth, span.pipeline, span.start))


def is_seen(parsed: Parsed, span: Span, seen: Mapping[int, int]) -> bool:
    """Whether the tree has the command whole, or as something else that runs no program."""
    code, name = parsed.source, span.name
    end = seen.get(name + 1 if code[name : name + 1] == b"{" else name, 0)
    if end >= span.end and not code[span.end : end].strip(b" \t\n\\"):  # a longer one holds what bash gives to another
        return True
    return re.split(rb"[ \t\n;&|<>()]", code[name : name + 12], maxsplit=1)[0] in _NO_COMMANDS


def _in_a_row(source: bytes) -> int:
    if source.count(b"|") + source.count(b"<<") <= _MOST_IN_A_ROW:
        return 0
    return max(part.count(b"|") + part.count(b"<<") for part in _STATEMENT_ENDS.split(source))


def _changed(node: Node, source: bytes) -> Iterator[str]:
    """The variables whose values are not as they are set: with `declare -l` and its like, and `-n`, with what it points to."""
    flags = "".join(raw for child in node.children if (raw := raw_of(child, source)).startswith("-"))
    if set(flags) & set("nluci"):
        for child in node.named_children:
            yield from re.findall(r"\w+", raw_of(child, source))


def constants_of(root: Node, source: bytes) -> dict[str, str]:
    """Variables that the code sets once, to a text that it spells out; not loop variables, nor what `read` and its like set."""
    values: dict[str, set[str]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "variable_assignment":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                plain = (
                    value is not None and node.children[1].type == "=" and name.type == "variable_name" and value.type != "array"
                )
                text = text_of(value, source, {}) if plain and value is not None else HOLE
                values.setdefault(raw_of(name, source).split("[")[0], set()).add(text)
        elif node.type == "declaration_command":
            for named in _changed(node, source):
                values.setdefault(named, set()).add(HOLE)
        elif node.type == "for_statement":
            variable = node.child_by_field_name("variable")
            if variable is not None:
                values.setdefault(raw_of(variable, source), set()).add(HOLE)
        elif node.type == "command" and (name := node.child_by_field_name("name")) is not None:
            for argument in node.children_by_field_name("argument") if raw_of(name, source) in _SETTERS else ():
                values.setdefault(raw_of(argument, source), set()).add(HOLE)
        stack.extend(node.named_children)
    for given, text in _GIVEN.items():
        values.setdefault(given, {text})
    known = {name: next(iter(texts)) for name, texts in values.items() if len(texts) == 1}
    return {name: text for name, text in known.items() if HOLE not in text or text == TEMPORARY}
