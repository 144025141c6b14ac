"""A stored text page by page: as many whole lines as a budget holds, and a cursor to what follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandboxmcp.core.errors import UsageError
from sandboxmcp.render.budget import ELLIPSIS, Page, cost, cut
from sandboxmcp.render.fence import MARK, fenced, harmless

_SLAB = 200
"""Lines fetched at a time."""
SURROUNDINGS = 10
"""Lines on each side of a citation: a look around it, not the whole text."""
_CURSOR = re.compile(r"(\d{1,15})(?:\.(\d{1,15}))?")
_CITATION = re.compile(r"(?:([^:\s]+):)?(\d{1,15})(?:-(\d{1,15}))?")

Fetch = Callable[[int, int], Sequence[str]]
"""Lines first to last, both inclusive, from 1."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a text: a line, and how many of its characters were already shown."""

    line: int
    character: int = 0

    def __str__(self) -> str:
        return f"{self.line}.{self.character}" if self.character else str(self.line)


@dataclass(frozen=True, slots=True)
class Shown:
    """One page: fenced lines first to last, and where the next page begins (None: that was all)."""

    lines: tuple[str, ...]
    first: int
    last: int
    following: Cursor | None


def parse_cursor(text: str) -> Cursor:
    """Raises: UsageError when it is not one of ours."""
    match = _CURSOR.fullmatch(text.strip())
    if match is None or not int(match[1]):
        raise UsageError(f"{text[:40]!r} is not a cursor", "Use the one that the page before gave, such as 121.")
    return Cursor(int(match[1]), int(match[2] or 0))


def parse_citation(text: str) -> tuple[str, int, int]:
    """Handle (may be empty), first and last line of `handle:first-last`, `handle:line` or `first-last`.

    Raises:
        UsageError: it is none of these.
    """
    match = _CITATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text[:40]!r} is not a citation", "Use one as search gives it, such as HANDLE:98-102.")
    return match[1] or "", int(match[2]), int(match[3] or match[2])


def page_from(fetch: Fetch, start: Cursor, last: int, room: int) -> Shown:
    """Lines from the cursor to `last` that cost at most `room`; a line too long for a page is cut, the cursor says where."""
    page = Page(room)
    number = start.line
    skipped = start.character
    while number <= last:
        for line in fetch(number, min(number + _SLAB - 1, last)):
            rest = harmless(line)[skipped:]
            if not page.add(fenced([rest])[0]):
                return _ended(page, start, number, rest, skipped)
            number, skipped = number + 1, 0
    return Shown(tuple(page.lines), start.line, last, None)


def _ended(page: Page, start: Cursor, number: int, rest: str, skipped: int) -> Shown:
    if page.lines:
        return Shown(tuple(page.lines), start.line, number - 1, Cursor(number, skipped))
    part = cut(rest, page.room - cost(MARK)).removesuffix(ELLIPSIS) or rest[:1]
    return Shown((MARK + part,), number, number, Cursor(number, skipped + len(part)))


def page_around(fetch: Fetch, first: int, last: int, lines: int, room: int, each: int = SURROUNDINGS) -> Shown:
    """The lines first to last with `each` lines before and after them, or as many of these as fit, evenly."""
    before, after = first, last
    rows = dict(enumerate(fenced(fetch(first, last)), first))
    left = room - sum(map(cost, rows.values()))
    if left < 0:
        return page_from(fetch, Cursor(first), last, room)
    above = dict(enumerate(fenced(fetch(max(first - each, 1), first - 1)), max(first - each, 1))) if first > 1 else {}
    below = dict(enumerate(fenced(fetch(last + 1, min(last + each, lines))), last + 1)) if last < lines else {}
    while True:
        grown = False
        for number, pool in ((before - 1, above), (after + 1, below)):
            if number in pool and cost(pool[number]) <= left:
                left -= cost(pool[number])
                rows[number] = pool.pop(number)
                before, after, grown = min(before, number), max(after, number), True
        if not grown:
            break
    following = Cursor(after + 1) if after < lines else None
    return Shown(tuple(rows[number] for number in sorted(rows)), before, after, following)
