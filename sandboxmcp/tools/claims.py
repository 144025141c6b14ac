"""What wants room in an execution's answer: a reason, an output, the end of stderr. Each knows its need and fills its share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandboxmcp.tools.budget import cost, cut, fair_shares, last_fitting, total_cost
from sandboxmcp.tools.extract import LINE_TOKENS, Extract, extract, extract_cost
from sandboxmcp.tools.fence import fenced
from sandboxmcp.tools.items import Item, Stream
from sandboxmcp.tools.receipt import counted, reason


@dataclass(frozen=True, slots=True)
class Claim:
    """`fill(room)` gives lines that cost at most `room` tokens. `indivisible`: all of it or nothing."""

    need: int
    fill: Callable[[int], Sequence[str]]
    item: int | None = None
    """Index of the item that it belongs to; None for a query."""
    indivisible: bool = False
    floor: int = 0
    """Tokens that it gets before anything is shared: the last words of stderr are never crowded out."""


def shared(claims: Sequence[Claim], room: int) -> list[int]:
    """What each claim gets of the room: floors first, then fair shares."""
    floors = fair_shares([claim.floor for claim in claims], room)
    rest = fair_shares([claim.need - floor for claim, floor in zip(claims, floors, strict=True)], room - sum(floors))
    return [floor + share for floor, share in zip(floors, rest, strict=True)]


def item_claims(item: Item, index: int, *, whole: bool, excerpts: bool) -> list[Claim]:
    """The claims of one item in the order in which they are shown.

    `excerpts`: large outputs show head, tail and errors. Without it those of items that did not end well still show errors and
    tail: many programs report their failures on stdout, and a query that hits elsewhere must not hide them.
    """
    claims: list[Claim] = []
    if why := reason(item.outcome):
        claims.append(Claim(cost(why), lambda room: [text] if (text := cut(why, room)) else [], index))
    if item.stdout is not None and whole:
        lines = fenced(item.stdout.whole or ())
        claims.append(Claim(total_cost(lines), lambda room: lines, index, indivisible=True))
    elif item.stdout is not None and (excerpts or item.outcome.status != "ok"):
        claims.append(_excerpt(item.stdout, index, whole_view=excerpts))
    if item.stderr is not None:
        claims.append(_end_of_stderr(item.stderr, index))
    return claims


def _excerpt(stream: Stream, index: int, *, whole_view: bool) -> Claim:
    source = stream.source
    text = Extract(source.handle, source.lines, stream.head if whole_view else (), stream.errors, stream.tail)
    return Claim(extract_cost(text), lambda room: extract(text, room), index)


def _end_of_stderr(stream: Stream, index: int) -> Claim:
    """A line with the handle, then all of stderr if it is short and fits, else its last lines; the very last is cut to fit."""
    whole = None if stream.whole is None else fenced(stream.whole)
    last = [cut(line, 2 * LINE_TOKENS) for line in whole or fenced(text for _, text in stream.tail)]
    title = f"stderr {stream.source.handle}"
    end_of = f"{title}, end of {counted(stream.source.lines, 'line')}"

    def fill(room: int) -> list[str]:
        if whole is not None and cost(title) + total_cost(whole) <= room:
            return [title, *whole]
        rest = room - cost(end_of)
        fitting = last_fitting(last, rest) or [text for text in (cut(last[-1], rest),) if text]
        return [end_of, *fitting] if fitting else [text for text in (cut(title, room),) if text]

    need = cost(end_of) + total_cost(whole or last)
    return Claim(need, fill, index, floor=min(need, cost(end_of) + cost(cut(last[-1], LINE_TOKENS))))
