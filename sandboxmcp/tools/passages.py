"""The passages that answer a query, as many as a share of the budget holds, each under its citation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sandboxmcp.core.model import Hit
from sandboxmcp.tools.budget import Page, cost, cut, total_cost
from sandboxmcp.tools.fence import fenced, one_line
from sandboxmcp.tools.items import Found

LINE_TOKENS = 200
"""What one line of a passage may cost; the store cuts longer ones around what was searched for, here they lose their end."""
_MANY = 60
_SMALLEST = 12


@dataclass(frozen=True, slots=True)
class Section:
    """A query's part of the answer: its lines and what they cite."""

    lines: tuple[str, ...]
    cited: tuple[str, ...]
    more: int
    """Hits that found no room."""


class Seen:
    """What the reader has before the next passage: labels of handles, and lines that need no second showing."""

    def __init__(self, labelled: Iterable[str] = ()) -> None:
        self.labelled = set(labelled)
        self._lines: dict[str, set[int]] = {}

    def covers(self, hit: Hit) -> bool:
        """Were all its lines shown? Parts of very long lines count as never shown: two of one line differ."""
        lines = self._lines.get(hit.handle, set())
        return not hit.partial and lines.issuperset(range(hit.first_line, hit.last_line + 1))

    def add(self, hit: Hit) -> None:
        self.labelled.add(hit.handle)
        if not hit.partial:
            self._lines.setdefault(hit.handle, set()).update(range(hit.first_line, hit.last_line + 1))


def question(query: str) -> str:
    """The line above a query's passages."""
    return f"? {one_line(query, 120)}"


def wanted(found: Found, limit: int | None = None) -> int:
    """Tokens that all its passages would take, for sharing out the budget; the first sixty stand for all."""
    hits = found.hits[: limit or _MANY]
    return cost(question(found.query)) + sum(map(_price, hits)) + _SMALLEST


def section(found: Found, room: int, seen: Seen, *, titled: bool, limit: int | None = None) -> Section:
    """The best hits within `room` tokens; what was `seen` is not repeated, and what is shown is added to it.

    `limit` is a maximum of hits. The first hit is trimmed rather than left out.
    """
    page = Page(room)
    if titled:
        page.add_cut(question(found.query))
    hits = [hit for hit in found.hits if not seen.covers(hit)][:limit]
    if not hits:
        page.add(_nothing(found))
        return Section(tuple(page.lines), (), 0)
    cited = _fill(page, hits, found.query, seen)
    return Section(tuple(page.lines), cited, len(hits) - len(cited))


def _nothing(found: Found) -> str:
    if found.hits:
        return "matches are shown above"
    wordless = not any(map(str.isalnum, found.query))
    return f'No results for "{one_line(found.query, 60)}"' + (": it holds no word" if wordless else "")


def _fill(page: Page, hits: Sequence[Hit], query: str, seen: Seen) -> tuple[str, ...]:
    """Hits in their order; one that does not fit is trimmed to its best lines, and smaller ones after it fill the rest."""
    cited: list[str] = []
    left = 0
    for number, hit in enumerate(hits):
        if seen.covers(hit):
            continue
        rest = len(hits) - number - 1
        room = page.room - (cost(_more(rest + left)) if rest + left else 0)
        shown = _fitting(replace(hit, label="") if hit.handle in seen.labelled else hit, query, room, first=not cited)
        if shown is None:
            left += 1
            if room < _SMALLEST:
                left += sum(not seen.covers(one) for one in hits[number + 1 :])
                break
            continue
        page.add_all(_block(shown))
        seen.add(shown)
        cited.append(shown.citation)
    if left:
        page.add(_more(left))
    return tuple(cited)


def _fitting(hit: Hit, query: str, room: int, *, first: bool) -> Hit | None:
    """The hit, or what fits of it; None when that is too little. Something of the first hit is always shown."""
    if _price(hit) <= room:
        return hit
    if not first and room < 2 * _SMALLEST:
        return None
    trimmed = _trimmed(hit, query, room)
    return trimmed if _price(trimmed) <= room and (first or trimmed.text.strip()) else None


def _more(number: int) -> str:
    return f"+{number} more"


def _block(hit: Hit) -> list[str]:
    title = f" {one_line(hit.label, 60)}" if hit.label else ""
    return [hit.citation + title, *(cut(line, LINE_TOKENS) for line in fenced(hit.text.split("\n")))]


@lru_cache(maxsize=1024)
def _price(hit: Hit) -> int:
    """Asked again for every try at sharing out the budget."""
    return total_cost(_block(hit))


def _trimmed(hit: Hit, query: str, room: int) -> Hit:
    """The hit with only the lines around the one that holds most words of the query, as many as fit."""
    lines = hit.text.split("\n")
    words = {word.casefold() for word in query.split()}
    best = max(range(len(lines)), key=lambda index: (_matches(lines[index], words), -index))
    first = last = best
    while True:
        wider = [(first, last + 1)] if last + 1 < len(lines) else []
        wider += [(first - 1, last)] if first else []
        fitting = [pair for pair in wider if total_cost(_block(_window(hit, lines, *pair))) <= room]
        if not fitting:
            break
        first, last = fitting[0]
    return _cut_line(_window(hit, lines, first, last), room)


def _window(hit: Hit, lines: Sequence[str], first: int, last: int) -> Hit:
    return replace(hit, text="\n".join(lines[first : last + 1]), first_line=hit.first_line + first, last_line=hit.first_line + last)


def _cut_line(hit: Hit, room: int) -> Hit:
    """A single line that is too long even alone, cut at its end."""
    left = room - cost(_block(hit)[0])
    if "\n" in hit.text or cost(fenced([hit.text])[0]) <= left:
        return hit
    return replace(hit, text=cut(hit.text, max(left - 2, 0)), partial=True)


def _matches(line: str, words: Iterable[str]) -> int:
    folded = line.casefold()
    return sum(word in folded for word in words)
