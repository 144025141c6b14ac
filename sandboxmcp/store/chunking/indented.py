"""The definitions in Python that does not parse: a part of a file, another version's, one with an error in it. Pure.

Each reaches as far as lines stand deeper than it. Text at the margin of a string ends one early, which costs a title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sandboxmcp.store.chunking.outline import indent_of

_DEFINITION = re.compile(r"\s*(?:(class)|(?:async\s+)?def)\s+(\w+)")
_GOES_ON = (")", "]", "}", "#", '"""', "'''")
"""A line that begins so ends nothing, however near the margin it stands."""
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
    is_class: bool


def definitions(lines: Sequence[str]) -> Iterator[Definition]:
    """Classes and functions; functions are not looked into."""
    inside: list[_Open] = []
    last = 0
    for number, line in enumerate(lines):
        text = line.expandtabs(_TAB)
        if not text.strip():
            continue
        indent = indent_of(text)
        if not text.lstrip().startswith(_GOES_ON):
            while inside and inside[-1].indent >= indent:
                yield _closed(inside, last)
        found = _DEFINITION.match(text)
        if found and all(outer.is_class for outer in inside):
            inside.append(_Open(indent, number, found[2], found[1] is not None))
        if not text.lstrip().startswith("#") or (inside and indent > inside[-1].indent):
            last = number
    while inside:
        yield _closed(inside, last)


def _closed(inside: list[_Open], last: int) -> Definition:
    one = inside.pop()
    return Definition(one.first, last, len(inside), one.name)
