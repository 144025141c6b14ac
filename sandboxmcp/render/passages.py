"""The passages that answer a query, as many as a share of the budget holds, each under its citation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandboxmcp.core.model import Hit, Source
from sandboxmcp.core.surface import advice, argument, call
from sandboxmcp.render.blocks import CITED, SMALLEST, Block, Room, beside, best_line, fitting, may_fit, price, words_of
from sandboxmcp.render.budget import Page, cost, cut, total_cost
from sandboxmcp.render.fence import fenced, one_line
from sandboxmcp.render.items import Found
from sandboxmcp.render.receipt import counted

_MANY = 60
_LEAST_LINE = 30
"""Tokens of the one line that a query is answered with at least."""
_WEAK = 0.1
"""A hit with less than this part of the best score is far weaker."""
_WEAK_TOKENS = 80
"""What one of those takes at most: a hundred lines alike that hold the common word of the query answer nothing."""
_FIRST_SHARE, _SHARE = 1 / 3, 1 / 4
"""Of a section the first hit takes at most so much, and each hit after it: else two long ones fill a small budget."""
_LEAST_SHARE = 60
"""Tokens that a hit may always take."""
_ALWAYS = 5
"""So many hits are worth showing however weak: the best one may hold the query's words by chance."""


@dataclass(frozen=True, slots=True)
class Section:
    """A query's part of the answer: its lines and what they cite."""

    lines: tuple[str, ...]
    cited: tuple[str, ...]
    more: int
    """Passages that found no room, or lie beyond the limit."""
    weaker: int = 0
    """Passages that were not shown because they match far worse than the best."""
    told: bool = False
    """Whether a passage is shown, or where one stands already."""


class Seen:
    """What the reader has before the next passage: labels of handles, and lines that need no second showing."""

    def __init__(self, labelled: Iterable[str] = (), whole: Iterable[str] = ()) -> None:
        """`whole`: handles of texts that are shown from end to end."""
        self.labelled = set(labelled)
        self.titles: set[tuple[str, str]] = set()
        self._whole = set(whole)
        self._lines: dict[str, set[int]] = {}

    def covers(self, hit: Hit) -> bool:
        """Were all its lines shown? Parts of very long lines count as never shown: two of one line differ."""
        lines = self._lines.get(hit.handle)
        shown = lines is not None and not hit.partial and lines.issuperset(range(hit.first_line, hit.last_line + 1))
        return shown or hit.handle in self._whole

    def beyond(self, hit: Hit) -> Hit:
        """The hit without those lines at its edges that were shown, as far as its best line."""
        shown, best = self._lines.get(hit.handle), hit.best_line
        if not shown or hit.partial or best < 0:
            return hit
        first, last = hit.first_line, hit.last_line
        while first < hit.first_line + best and first in shown:
            first += 1
        while last > hit.first_line + best and last in shown:
            last -= 1
        if (first, last) == (hit.first_line, hit.last_line):
            return hit
        lines = hit.text.split("\n")[first - hit.first_line : last - hit.first_line + 1]
        return replace(hit, text="\n".join(lines), first_line=first, last_line=last, best_line=best - (first - hit.first_line))

    def add(self, hit: Hit) -> None:
        self.labelled.add(hit.handle)
        if not hit.partial:
            self._lines.setdefault(hit.handle, set()).update(range(hit.first_line, hit.last_line + 1))

    def add_lines(self, source: Source | None, numbers: Iterable[int]) -> None:
        """Lines of a source that were shown without a citation."""
        if source is not None:
            self._lines.setdefault(source.handle, set()).update(numbers)


def question(query: str) -> str:
    """The line above a query's passages."""
    return f"? {one_line(query, 120)}"


def wanted(found: Found, seen: Seen | None = None, limit: int | None = None) -> int:
    """Tokens that all its passages would take, for sharing out the budget; the first sixty stand for all."""
    hits = [hit for hit in _worth(found, limit) if seen is None or not seen.covers(hit)][: limit or _MANY]
    return cost(question(found.query)) + sum(price(hit, beside(found, hit), labelled=False) for hit in hits) + SMALLEST


def section(found: Found, room: int, seen: Seen, *, titled: bool, limit: int | None = None, elsewhere: str = "") -> Section:
    """The best hits within `room` tokens; of what was `seen` only the place is told, and what is shown is added to it.

    Hits that match far worse than the best are left out, unless a `limit` is given: it is a maximum of hits, and is filled.
    The first hit is trimmed rather than left out. `elsewhere`: the tool that shows the rest, when it is not the one that is used.
    """
    page = Page(room)
    if titled:
        page.add_cut(question(found.query))
    worth = _worth(found, limit)
    new, known = _parted(worth, seen)
    rest = _Rest(len(new[limit:]) if limit else 0, len(found.hits) - len(worth), elsewhere, found.capped)
    telling = [hit for hit in known if hit.score >= _least_score(found)] or known[: 0 if new else None]
    above = bool(telling) and page.add(_above(telling))
    if not worth:
        page.add(_nothing(found.query))
    cited, left = _fill(page, new[:limit], found, seen, rest)
    page.add_all([line] if (line := rest.line(left)) else [])
    return Section(tuple(page.lines), cited, left + rest.beyond, rest.weaker, bool(cited) or above)


def least(found: Found, seen: Seen) -> int:
    """Tokens for the best passage's best line, so that no query goes without."""
    hit = next((hit for hit in _worth(found, None) if not seen.covers(hit)), None)
    if hit is None:
        return cost(question(found.query)) + SMALLEST
    best = hit.text.split("\n")[best_line(hit, words_of(found.query))]
    line = cut(fenced([best])[0], _LEAST_LINE)
    return total_cost([question(found.query), hit.citation, line, _Rest(0, 0, call("ctx_search")).line(len(found.hits))])


def unanswered(number: int) -> list[str]:
    """The line that says so of queries that the budget is too small for."""
    return (
        [f"+{counted(number, 'query', 'queries')} without room: ask fewer or raise {argument('budget_tokens')}"] if number else []
    )


def query_facts(found: Iterable[Found], sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Per query what was cited and how much was not; none of the text."""
    return [
        {"query": one.query, "hits": list(part.cited), "more": part.more} | ({"weaker": part.weaker} if part.weaker else {})
        for one, part in zip(found, sections, strict=True)
    ]


def _worth(found: Found, limit: int | None) -> Sequence[Hit]:
    """The first few hits and those that are not far weaker than the best; with a limit, which asks for that many, all."""
    least = _least_score(found)
    return found.hits if limit else [hit for place, hit in enumerate(found.hits) if place < _ALWAYS or hit.score >= least]


def _least_score(found: Found) -> float:
    """With less a hit is far weaker than the best."""
    return _WEAK * max((hit.score for hit in found.hits), default=0.0)


def _parted(hits: Iterable[Hit], seen: Seen) -> tuple[list[Hit], list[Hit]]:
    """Those that are new to the reader, and those that are not."""
    new: list[Hit] = []
    known: list[Hit] = []
    for hit in hits:
        (known if seen.covers(hit) else new).append(hit)
    return new, known


def _above(hits: Sequence[Hit]) -> str:
    cited = " ".join(hit.citation for hit in hits[:CITED])
    return f"above: {cited}" + (f" +{len(hits) - CITED}" if len(hits) > CITED else "")


def _nothing(query: str) -> str:
    wordless = not any(map(str.isalnum, query))
    return f'No results for "{one_line(query, 60)}"' + (": it holds no word" if wordless else "")


def _more(otherwise: str) -> str:
    return advice("see_more_passages", otherwise)


@dataclass(frozen=True, slots=True)
class _Rest:
    """What a section does not show: hits beyond its limit, hits that are far weaker; and what would show them."""

    beyond: int
    weaker: int
    elsewhere: str
    capped: bool = False

    def line(self, left: int) -> str:
        """`left`: hits that found no room. The weaker are told where nothing better is left out. Empty when nothing is."""
        if number := left + self.beyond:
            how = self.elsewhere or _more(f"raise {argument('budget_tokens' if left else 'limit')}")
            return f"+{number} or more passages: {how}" if self.capped else f"+{counted(number, 'more passage')}: {how}"
        how = self.elsewhere or _more(f"set {argument('limit')}")
        return f"{counted(self.weaker, 'weaker passage')}: {how}" if self.weaker else ""


def _fill(page: Page, hits: Sequence[Hit], found: Found, seen: Seen, rest: _Rest) -> tuple[tuple[str, ...], int]:
    """Hits in their order; one that does not fit is trimmed to its best lines, and smaller ones after it fill the rest.

    Returns what was cited, and how many found no room.
    """
    cited: list[str] = []
    left = 0
    words, whole = words_of(found.query), page.room
    weak = _WEAK * max((hit.score for hit in found.hits), default=0.0)
    for number, hit in enumerate(hits):
        if seen.covers(hit):
            continue
        following = len(hits) - number - 1
        room = page.room - (cost(line) if (line := rest.line(following + left)) else 0)
        first = not cited and not left
        room = min(room, _WEAK_TOKENS) if hit.score < weak else room
        told, shown = "", None
        if first or may_fit(hit, room):
            ways = _ways(beside(found, hit, seen.titles), labelled=hit.handle in seen.labelled)
            share = max(_LEAST_SHARE, int(whole * max(1 / len(hits), _FIRST_SHARE if first else _SHARE)))
            told, shown = _shown(seen.beyond(hit), ways, words, Room(room, share), first=first)
        if shown is None:
            left += 1
            if room < SMALLEST:
                left += sum(not seen.covers(one) for one in hits[number + 1 :])
                break
            continue
        part, lines = shown
        page.take(*lines)
        seen.add(part)
        if told.startswith(" (under "):
            seen.titles.add((hit.handle, hit.title))
        cited.append(part.citation)
    return tuple(cited), left


def _ways(told: str, *, labelled: bool) -> list[tuple[str, bool]]:
    """What to tell beside a hit, and whether to leave its label out: rather the text than its label, rather the text than that."""
    return [*([] if labelled else [(told, False)]), (told, True), *([("", True)] if told else [])]


def _shown(
    hit: Hit, ways: Iterable[tuple[str, bool]], words: Collection[str], room: Room, *, first: bool
) -> tuple[str, tuple[Hit, Block] | None]:
    """What fits of the hit in the first way that leaves room for some of it."""
    for told, labelled in ways:
        if (shown := fitting(hit, told, words, room, labelled=labelled, first=first)) is not None:
            return told, shown
    return "", None
