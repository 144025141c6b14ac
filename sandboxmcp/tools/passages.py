"""The passages that answer a query, as many as a share of the budget holds, each under its citation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

from sandboxmcp.core.model import Hit, Source
from sandboxmcp.store.words import STOP_WORDS, folded, words_in
from sandboxmcp.tools.budget import ELLIPSIS, Page, cost, cut, total_cost
from sandboxmcp.tools.extract import GAP
from sandboxmcp.tools.fence import fenced, one_line
from sandboxmcp.tools.items import Found, Others
from sandboxmcp.tools.receipt import counted

LINE_TOKENS = 200
"""What one line of a passage may cost; the store cuts longer ones around what was searched for, here they lose their end."""
_MANY = 60
_SMALLEST = 12
_LEAST_LINE = 30
"""Tokens of the one line that a query is answered with at least."""
_WEAK = 0.25
"""A hit with less than this part of the best score is far weaker."""
_ALWAYS = 5
"""So many hits are worth showing however weak: the best one may hold the query's words by chance."""
_CITED = 3
"""Citations that are listed in one place; more are counted."""
_RUN = 4
"""So many equal lines that follow on each other are told by a number."""
_STEM, _ENDING = 3, 3
"""Letters that a word's beginning has at least, and that its ending may have."""


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
        self._whole = set(whole)
        self._lines: dict[str, set[int]] = {}

    def covers(self, hit: Hit) -> bool:
        """Were all its lines shown? Parts of very long lines count as never shown: two of one line differ."""
        lines = self._lines.get(hit.handle, set())
        return hit.handle in self._whole or (not hit.partial and lines.issuperset(range(hit.first_line, hit.last_line + 1)))

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
    return cost(question(found.query)) + sum(_price(hit, _told_of(found, hit)) for hit in hits) + _SMALLEST


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
    rest = _Rest(len(new[limit:]) if limit else 0, len(found.hits) - len(worth), elsewhere)
    if known:
        page.add(_above(known))
    elif not worth:
        page.add(_nothing(found.query))
    cited, left = _fill(page, new[:limit], found, seen, rest)
    page.add_all([line] if (line := rest.line(left)) else [])
    return Section(tuple(page.lines), cited, left + rest.beyond, rest.weaker, bool(cited or known))


def least(found: Found, seen: Seen) -> int:
    """Tokens for the best passage's best line, so that no query goes without."""
    hit = next((hit for hit in _worth(found, None) if not seen.covers(hit)), None)
    if hit is None:
        return cost(question(found.query)) + _SMALLEST
    lines = hit.text.split("\n")
    line = cut(fenced([lines[_best_line(lines, _words(found.query))]])[0], _LEAST_LINE)
    return total_cost([question(found.query), hit.citation, line, _Rest(0, 0, "ctx_search").line(len(found.hits))])


def unanswered(number: int) -> list[str]:
    """The line that says so of queries that the budget is too small for."""
    return [f"+{counted(number, 'query', 'queries')} without room: ask fewer or raise budget_tokens"] if number else []


def query_facts(found: Iterable[Found], sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Per query what was cited and how much was not; none of the text."""
    return [
        {"query": one.query, "hits": list(part.cited), "more": part.more} | ({"weaker": part.weaker} if part.weaker else {})
        for one, part in zip(found, sections, strict=True)
    ]


def _worth(found: Found, limit: int | None) -> Sequence[Hit]:
    """The first few hits and those that are not far weaker than the best; with a limit, which asks for that many, all."""
    least = _WEAK * max((hit.score for hit in found.hits), default=0.0)
    return found.hits if limit else [hit for place, hit in enumerate(found.hits) if place < _ALWAYS or hit.score >= least]


def _parted(hits: Iterable[Hit], seen: Seen) -> tuple[list[Hit], list[Hit]]:
    """Those that are new to the reader, and those that are not."""
    new: list[Hit] = []
    known: list[Hit] = []
    for hit in hits:
        (known if seen.covers(hit) else new).append(hit)
    return new, known


def _above(hits: Sequence[Hit]) -> str:
    cited = " ".join(hit.citation for hit in hits[:_CITED])
    return f"above: {cited}" + (f" +{len(hits) - _CITED}" if len(hits) > _CITED else "")


def _nothing(query: str) -> str:
    wordless = not any(map(str.isalnum, query))
    return f'No results for "{one_line(query, 60)}"' + (": it holds no word" if wordless else "")


@dataclass(frozen=True, slots=True)
class _Rest:
    """What a section does not show: hits beyond its limit, hits that are far weaker; and what would show them."""

    beyond: int
    weaker: int
    elsewhere: str

    def line(self, left: int) -> str:
        """`left`: hits that found no room. The weaker are told where nothing better is left out. Empty when nothing is."""
        if number := left + self.beyond:
            how = self.elsewhere or ("raise budget_tokens" if left else "raise limit")
            return f"+{counted(number, 'more passage')}: {how}"
        return f"{counted(self.weaker, 'weaker passage')}: {self.elsewhere or 'set limit'}" if self.weaker else ""


def _fill(page: Page, hits: Sequence[Hit], found: Found, seen: Seen, rest: _Rest) -> tuple[tuple[str, ...], int]:
    """Hits in their order; one that does not fit is trimmed to its best lines, and smaller ones after it fill the rest.

    Returns what was cited, and how many found no room.
    """
    cited: list[str] = []
    left = 0
    words = _words(found.query)
    for number, hit in enumerate(hits):
        if seen.covers(hit):
            continue
        following = len(hits) - number - 1
        room = page.room - (cost(line) if (line := rest.line(following + left)) else 0)
        told = _told_of(found, hit)
        ways = [(hit, told)] * (hit.handle not in seen.labelled) + [(replace(hit, label=""), more) for more in (told, "")]
        fitting = ((one, more, _fitting(one, more, words, room, first=not cited and not left)) for one, more in ways)
        told, shown = next(((more, shown) for _, more, shown in fitting if shown is not None), ("", None))
        if shown is None:
            left += 1
            if room < _SMALLEST:
                left += sum(not seen.covers(one) for one in hits[number + 1 :])
                break
            continue
        page.add_all(_block(shown, told))
        seen.add(shown)
        cited.append(shown.citation)
    return tuple(cited), left


def _told_of(found: Found, hit: Hit) -> str:
    """What stands behind a hit's citation beside its label: the heading by which alone it was found, its copies, its equals."""
    others = found.others.get((hit.handle, hit.first_line), Others())
    equal = " ".join(others.citations[:_CITED]) + f" +{len(others.citations) - _CITED}" * (len(others.citations) > _CITED)
    parts = [f'under "{one_line(hit.title, 80)}"'] if _by_title(hit, found.query) else []
    parts += [f"{others.copies + 1} copies"] if others.copies else []
    parts += [f"same text: {equal}"] if equal else []
    return f" ({', '.join(parts)})" if parts else ""


@lru_cache(maxsize=1024)
def _by_title(hit: Hit, query: str) -> bool:
    """Does the heading over the hit hold a word of the query, and its text none? Words are compared by how they begin."""
    words = [folded(word) for word in words_in(query)]
    words = [word for word in words if word not in STOP_WORDS] or words
    beginnings = {word[: max(_STEM, len(word) - _ENDING)] for word in words}
    text, title = folded(hit.text), folded(hit.title)
    return any(one in title for one in beginnings) and not any(one in text for one in beginnings)


def _fitting(hit: Hit, told: str, words: Collection[str], room: int, *, first: bool) -> Hit | None:
    """The hit, or what fits of it; None when that is too little: the first hit is trimmed further than the others."""
    if _price(hit, told) <= room:
        return hit
    if not first and room < 2 * _SMALLEST:
        return None
    trimmed = _trimmed(hit, told, words, room)
    tells = _matches(trimmed.text, words) or not _matches(hit.text, words)
    return trimmed if _price(trimmed, told) <= room and tells and trimmed.text.strip(f" {ELLIPSIS}") else None


def _block(hit: Hit, told: str) -> list[str]:
    """The citation and the fenced lines, a run of equal ones as one."""
    title = f" {one_line(hit.label, 60)}" if hit.label else ""
    lines: list[str] = []
    for line, run in groupby(fenced(hit.text.split("\n"))):
        number = len(list(run))
        lines += [cut(line, LINE_TOKENS)] * (number if number < _RUN else 1)
        lines += [f"{GAP} {number - 1} more lines like it"] if number >= _RUN else []
    return [hit.citation + title + told, *lines]


@lru_cache(maxsize=1024)
def _price(hit: Hit, told: str) -> int:
    """Asked again for every try at sharing out the budget."""
    return total_cost(_block(hit, told))


def _trimmed(hit: Hit, told: str, words: Collection[str], room: int) -> Hit:
    """The hit with only the lines around the one that holds most words of the query, as many as fit."""
    lines = hit.text.split("\n")
    best = _best_line(lines, words)
    first = last = best
    while True:
        wider = [(first, last + 1)] if last + 1 < len(lines) else []
        wider += [(first - 1, last)] if first else []
        fitting = [pair for pair in wider if total_cost(_block(_window(hit, lines, *pair), told)) <= room]
        if not fitting:
            break
        first, last = fitting[0]
    return _cut_line(_window(hit, lines, first, last), told, words, room)


def _words(query: str) -> set[str]:
    return {word.casefold() for word in query.split()}


def _best_line(lines: Sequence[str], words: Collection[str]) -> int:
    """The index of the line with most of the words."""
    return max(range(len(lines)), key=lambda index: (_matches(lines[index], words), -index))


def _window(hit: Hit, lines: Sequence[str], first: int, last: int) -> Hit:
    return replace(hit, text="\n".join(lines[first : last + 1]), first_line=hit.first_line + first, last_line=hit.first_line + last)


def _cut_line(hit: Hit, told: str, words: Iterable[str], room: int) -> Hit:
    """A single line that is too long even alone, cut at its end; and at its beginning where no word would be left otherwise."""
    left = room - cost(_block(hit, told)[0])
    if "\n" in hit.text or cost(fenced([hit.text])[0]) <= left:
        return hit
    short = cut(hit.text, max(left - 2, 0))
    if not _matches(short, words):
        folded_text = hit.text.casefold()
        place = min((folded_text.find(word) for word in words if word in folded_text), default=0)
        short = cut(ELLIPSIS + hit.text[place:], max(left - 2, 0)) if place else short
    return replace(hit, text=short, partial=True)


def _matches(line: str, words: Iterable[str]) -> int:
    folded = line.casefold()
    return sum(word in folded for word in words)
