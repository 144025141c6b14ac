"""One passage as lines: its citation, what is to be known beside it, and of its text as much as a room holds. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from sandboxmcp.core.model import Hit
from sandboxmcp.core.words import HEADINGS_BETWEEN, STOP_WORDS, folded, pieces_of, words_in
from sandboxmcp.render.budget import ELLIPSIS, cost, cut, exact_cost
from sandboxmcp.render.extract import GAP, RUN
from sandboxmcp.render.fence import fenced, named, one_line
from sandboxmcp.render.items import GONE, Found
from sandboxmcp.render.receipt import counted

LINE_TOKENS = 200
"""What one line of a passage may cost; the store cuts longer ones around what was searched for, here they lose their end."""
CITED = 3
"""Citations that are listed in one place; more are counted."""
_STEM, _ENDING = 3, 3
"""Letters that a word's beginning has at least, and that its ending may have."""
_MOST_LETTERS = 4
"""Of one token: bytes / 4 is the least that a text costs."""
SMALLEST = 12
"""Tokens below which a passage is not worth trying."""


def beside(found: Found, hit: Hit, told: Collection[tuple[str, str]] = ()) -> str:
    """What stands behind a hit's citation beside its label: that it is part of a long line, the heading that its text lacks, its
    copies, its equals.

    `told`: handles and headings that the reader has seen together.
    """
    heading = "" if (hit.handle, hit.title) in told else _heading(hit, found.query)
    parts = ["part"] if hit.partial else []
    parts += ["under " + '"' + heading.replace('"', "'") + '"'] if heading else []
    if others := found.others.get((hit.handle, hit.first_line)):
        equal = " ".join(others.citations[:CITED]) + f" +{len(others.citations) - CITED}" * (len(others.citations) > CITED)
        parts += [f"{others.copies + 1} copies"] if others.copies else []
        alike = f"{counted(others.alike, 'more passage')} like it but for numbers" if others.alike else ""
        parts += [alike] if alike else [f"same text: {equal}"] if equal else []
    return f" ({', '.join(parts)})" if parts else ""


def _heading(hit: Hit, query: str) -> str:
    """All headings where the hit was found by them alone, else the innermost; empty if its text has it."""
    if _by_title(hit, query):
        return one_line(hit.title, 80)
    innermost = hit.title.rpartition(HEADINGS_BETWEEN)[2]
    return "" if folded(innermost) in folded(hit.text) else one_line(innermost, 60)


def _by_title(hit: Hit, query: str) -> bool:
    """Does the heading over the hit hold a word of the query, and its text none? Words are compared by how they begin."""
    beginnings, title = _beginnings(query), folded(hit.title)
    if not any(one in title for one in beginnings):
        return False
    text = folded(hit.text)
    return not any(one in text for one in beginnings)


@lru_cache(maxsize=64)
def _beginnings(query: str) -> frozenset[str]:
    words = [folded(part) for word in words_in(query) for part in (word, *pieces_of(word))]
    words = [word for word in words if word not in STOP_WORDS] or words
    return frozenset(word[: max(_STEM, len(word) - _ENDING)] for word in words)


def may_fit(hit: Hit, room: int) -> bool:
    """Could the hit be shown, whole or trimmed? Looks at its length only: it need not be laid out to be refused."""
    return room >= 2 * SMALLEST or len(hit.text) <= _MOST_LETTERS * room


class Room(NamedTuple):
    """Tokens for one hit."""

    most: int
    share: int
    """Its lines take no more, but the best one may take all of the room."""


def fitting(hit: Hit, told: str, words: Collection[str], room: Room, *, labelled: bool, first: bool) -> tuple[Hit, Block] | None:
    """The hit, or what fits of it, with its lines; None when that is too little: the first hit is trimmed further than others."""
    whole = block(hit, told, labelled=labelled)
    if whole.price <= min(room):
        return hit, whole
    if not first and room.most < 2 * SMALLEST:
        return None
    trimmed = _trimmed(hit, told, words, room, labelled=labelled)
    part = block(trimmed, told, labelled=labelled)
    tells = first or _matches(trimmed.text, words) or not _matches(hit.text, words)
    return (trimmed, part) if part.price <= room.most and tells and trimmed.text.strip(f" {ELLIPSIS}") else None


class Block(NamedTuple):
    """Lines of an answer, and what they cost exactly."""

    lines: tuple[str, ...]
    price: float


def block(hit: Hit, told: str, *, labelled: bool) -> Block:
    """The citation, with the label unless the reader has it (`labelled`), and the fenced lines."""
    head, body = _head(hit, told, labelled=labelled), _body(hit.text)
    return Block((head, *body.lines), exact_cost(head) + body.price)


def price(hit: Hit, told: str, *, labelled: bool) -> int:
    """Tokens of its block."""
    return math.ceil(exact_cost(_head(hit, told, labelled=labelled)) + _body(hit.text).price)


def _head(hit: Hit, told: str, *, labelled: bool) -> str:
    if labelled or not hit.label:
        return hit.citation + told
    name = hit.label.removesuffix(GONE)
    return f"{hit.citation} {named(name, 60)}{GONE if name != hit.label else ''}{told}"


@lru_cache(maxsize=1024)
def _body(text: str) -> Block:
    """The fenced lines of a text, a run of equal ones as one. Asked for again for every try at sharing out the budget."""
    lines = fenced(text.split("\n"))
    if len(lines) - len(set(lines)) >= RUN - 1:
        lines = list(_runs_told(lines))
    prices = list(map(exact_cost, lines))
    if max(prices) > LINE_TOKENS:
        lines = [cut(line, LINE_TOKENS) for line in lines]
        prices = list(map(exact_cost, lines))
    return Block(tuple(lines), sum(prices))


def _runs_told(lines: Iterable[str]) -> Iterator[str]:
    for line, run in groupby(lines):
        number = len(list(run))
        yield from [line] * (number if number < RUN else 1)
        if number >= RUN:
            yield f"{GAP} {number - 1} more lines like it"


def _trimmed(hit: Hit, told: str, words: Collection[str], room: Room, *, labelled: bool) -> Hit:
    """The hit with only the lines around its best one, as many as its share pays for."""
    lines = hit.text.split("\n")
    first = last = best_line(hit, words)
    while True:
        wider = [(first, last + 1)] if last + 1 < len(lines) else []
        wider += [(first - 1, last)] if first else []
        windows = (pair for pair in wider if price(_window(hit, lines, *pair), told, labelled=labelled) <= min(room))
        if (fitting := next(windows, None)) is None:
            break
        first, last = fitting
    return _cut_line(_window(hit, lines, first, last), told, words, room.most, labelled=labelled)


def words_of(query: str) -> set[str]:
    return {word.casefold() for word in query.split()}


def best_line(hit: Hit, words: Collection[str]) -> int:
    """The index of the line that says most; of a hit that does not know, the line with most of the words."""
    lines = hit.text.split("\n")
    if 0 <= hit.best_line < len(lines):
        return hit.best_line
    return max(range(len(lines)), key=lambda index: (_matches(lines[index], words), -index))


def _window(hit: Hit, lines: Sequence[str], first: int, last: int) -> Hit:
    if hit.partial:  # its rows are parts of lines, so they have no numbers of their own
        return replace(hit, text="\n".join(lines[first : last + 1]))
    return replace(hit, text="\n".join(lines[first : last + 1]), first_line=hit.first_line + first, last_line=hit.first_line + last)


def _cut_line(hit: Hit, told: str, words: Iterable[str], room: int, *, labelled: bool) -> Hit:
    """A single line that is too long even alone, cut at its end; and at its beginning where no word would be left otherwise."""
    left = room - cost(_head(hit, told, labelled=labelled))
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
