"""The definitions in code that does not parse: a part of a file, another version's, one with an error in it. Pure.

Each reaches as far as lines stand deeper than it, and what closes it. Text at the margin of a string ends one early, which costs a
title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_SCRIPT = (
    r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?"
    r"(?:(class|namespace)|(?:async\s+)?function\b\*?|interface|enum)\s+([\w$]+)"
)
_OF = r"(?:(?:public|private|protected|internal|static|abstract|final|sealed|partial|async|override|virtual|readonly)\s+)"
DEFINITIONS = {
    language: re.compile(pattern)
    for language, pattern in {
        "python": r"(?:(class)|(?:async\s+)?def)\s+(\w+)",
        "ruby": r"(?:(class|module)|def)\s+(?:self\.)?([\w:]+[?!=]?)",
        "javascript": _SCRIPT,
        "typescript": _SCRIPT,
        "php": _OF + r"*(?:(class|interface|trait)|function)\s+&?(\w+)",
        "csharp": r"(?=namespace\b|public\b|private\b|protected\b|internal\b)"
        + _OF
        + r"*(?:(namespace|class|struct|interface|record)\s+|[\w<>\[\],?.]+\s+)([\w.]+)\s*(?:[({:]|$)",
    }.items()
}
"""How a line, without its indent, begins that defines something: first what holds others, then the name."""
_GOES_ON = (")", "]", "}", "#", "//", "/*", '"""', "'''")
_GOES_ON_RUBY = (*_GOES_ON, "end", "rescue", "ensure", "else", "elsif", "when")
"""A line that begins so ends nothing, however near the margin it stands."""
_COMMENT = ("#", "//", "/*")
_TAB = 8


class Definition(NamedTuple):
    """Lines count from 0, the last is inside; depth in classes."""

    first: int
    last: int
    depth: int
    name: str


class _Open(NamedTuple):
    indent: int
    first: int
    name: str
    holds: bool


def definitions(lines: Sequence[str], language: str) -> Iterator[Definition]:
    """Classes and functions of a language that DEFINITIONS has; functions are not looked into."""
    definition, goes_on = DEFINITIONS[language], _GOES_ON_RUBY if language == "ruby" else _GOES_ON
    inside: list[_Open] = []
    last = 0
    for number, line in enumerate(lines):
        text = line.expandtabs(_TAB)
        bare = text.lstrip()
        if not bare:
            continue
        indent = len(text) - len(bare)
        if not bare.startswith(goes_on) and not (bare[0] == "{" and inside and inside[-1].indent == indent):
            while inside and inside[-1].indent >= indent:
                yield _closed(inside, last)
        found = definition.match(bare)
        if found and all(outer.holds for outer in inside):
            inside.append(_Open(indent, number, found[2], found[1] is not None))
        if not bare.startswith(_COMMENT) or (inside and indent > inside[-1].indent):
            last = number
    while inside:
        yield _closed(inside, last)


def _closed(inside: list[_Open], last: int) -> Definition:
    one = inside.pop()
    return Definition(one.first, last, len(inside), one.name)
