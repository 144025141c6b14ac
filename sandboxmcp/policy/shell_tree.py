"""Parsing shell code with tree-sitter-bash, and what is read off the whole tree before the walk."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from sandboxmcp.policy.facts import HOLE
from sandboxmcp.policy.shell_words import raw_of, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

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
WORDS = frozenset(
    {
        "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion", "expansion",
        "command_name", "number",
    }
)  # fmt: skip
"""Nodes that are words of a command."""


def parse(source: bytes) -> tuple[Tree, bytes] | str:
    """The tree and the text that it is of (lines are those of `source`, columns need not be), or why there is none.

    The parser has no limit of its own, and on text that is no shell its time grows with the square of the length, so it is fed
    in pieces and starved when it has had its time. Shell code of any usual kind takes a thousandth of that.
    """
    import tree_sitter
    import tree_sitter_bash

    if len(source) > _MOST_BYTES:
        return f"shell code of more than {_MOST_BYTES:,} bytes"
    if _in_a_row(source) > _MOST_IN_A_ROW:
        return f"shell code with more than {_MOST_IN_A_ROW:,} pipes or heredocs in one statement"
    source = _FOR_WITHOUT_IN.sub(rb"\1;", source)
    end = time.thread_time() + _MOST_SECONDS

    def piece(offset: int, _: object) -> bytes:
        return source[offset : offset + _PIECE] if time.thread_time() < end else b""

    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(piece)
    if time.thread_time() >= end:
        return "shell code that takes too long to parse"
    if tree.root_node.descendant_count > _MOST_NODES:
        return f"shell code of more than {_MOST_NODES:,} syntax nodes"
    return tree, source


def _in_a_row(source: bytes) -> int:
    if source.count(b"|") + source.count(b"<<") <= _MOST_IN_A_ROW:
        return 0
    return max(part.count(b"|") + part.count(b"<<") for part in _STATEMENT_ENDS.split(source))


def constants_of(root: Node, source: bytes) -> dict[str, str]:
    """Variables that the code sets once, to a text that it spells out; not loop variables, nor what `read` and its like set."""
    values: dict[str, set[str]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "variable_assignment":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                plain = value is not None and node.children[1].type == "=" and name.type == "variable_name"
                text = text_of(value, source, {}) if plain and value is not None else HOLE
                values.setdefault(raw_of(name, source).split("[")[0], set()).add(text)
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
    return {name: text for name, text in known.items() if HOLE not in text}


def skipped_text(error: Node, source: bytes) -> bool:
    """Whether the parser passed over lines of code under this node."""
    at = error.start_byte
    for child in error.children:
        if b"\n" in source[at : child.start_byte].strip():
            return True
        at = child.end_byte
    return b"\n" in source[at : error.end_byte].strip()
