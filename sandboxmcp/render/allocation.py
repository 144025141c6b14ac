"""How the parts of an answer share its budget: reasons, outputs, ends of stderr. Each knows its need and fills its share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandboxmcp.core.model import Source
from sandboxmcp.render.budget import cost, cut, fair_shares, last_fitting, total_cost
from sandboxmcp.render.extract import LINE_TOKENS, Extract, Shown, extract, extract_cost
from sandboxmcp.render.fence import fenced
from sandboxmcp.render.items import Item, Stream
from sandboxmcp.render.receipt import counted, reason

_FIRST_OF_STDERR = 5
"""Lines from the beginning of a long stderr."""
_TOLD = 40
"""Tokens for why an item failed that nothing crowds out."""
_TINY = 24
"""Tokens of an output that is shown whole before anything is shared."""


@dataclass(frozen=True, slots=True)
class Claim:
    """`fill(room)` gives lines that cost at most `room` tokens. `indivisible`: all of it or nothing."""

    need: int
    fill: Callable[[int], Shown]
    item: int | None = None
    """Index of the item that it belongs to; None for a query."""
    indivisible: bool = False
    floor: int = 0
    """Tokens that it gets before anything is shared: the last words of stderr are never crowded out."""
    urgent: bool = False
    """Its floor comes before those of others: why something failed, before what was asked."""
    source: Source | None = None
    """What its lines are of."""


def shared(claims: Sequence[Claim], room: int) -> list[int]:
    """What each claim gets of the room: floors first, the urgent ones before the others, which get theirs whole in their order as
    long as there is room; then fair shares."""
    urgent = fair_shares([claim.floor * claim.urgent for claim in claims], room)
    others, left = [0] * len(claims), room - sum(urgent)
    for place, claim in enumerate(claims):
        others[place] = claim.floor if not claim.urgent and claim.floor <= left else 0
        left -= others[place]
    floors = [one + other for one, other in zip(urgent, others, strict=True)]
    rest = fair_shares([claim.need - floor for claim, floor in zip(claims, floors, strict=True)], room - sum(floors))
    return [floor + share for floor, share in zip(floors, rest, strict=True)]


def item_claims(item: Item, index: int, *, whole: bool, excerpts: bool, again: bool = False) -> list[Claim]:
    """The claims of one item in the order in which they are shown. `again`: its reason is that of an item before it.

    `excerpts`: large outputs show head, tail and errors. Without it those of items that did not end well still show errors and
    tail: many programs report their failures on stdout, and a query that hits elsewhere must not hide them.
    """
    claims: list[Claim] = []
    if why := "(as above)" if again else reason(item.outcome):
        need = cost(why)
        claims.append(
            Claim(need, lambda room: Shown([text] if (text := cut(why, room)) else []), index, floor=min(need, _TOLD), urgent=True)
        )
    if item.stdout is not None and whole:
        lines = fenced(item.stdout.whole or ())
        need = total_cost(lines)
        floor = need if need <= _TINY else 0
        shown = Shown(lines, range(1, item.stdout.source.lines + 1))
        claims.append(Claim(need, lambda room: shown, index, indivisible=True, floor=floor, source=item.stdout.source))
    elif item.stdout is not None and (excerpts or item.outcome.status != "ok"):
        claims.append(_excerpt(item.stdout, index, whole_view=excerpts))
    if item.stderr is not None:
        claims.append(_stderr(item.stderr, index, why=item.outcome.status != "ok"))
    return claims


def _excerpt(stream: Stream, index: int, *, whole_view: bool) -> Claim:
    source = stream.source
    text = Extract(source.handle, source.lines, stream.head if whole_view else (), stream.errors, stream.tail)
    need, urgent = extract_cost(text), not whole_view
    return Claim(need, lambda room: extract(text, room), index, floor=min(need, _TOLD) * urgent, urgent=urgent, source=source)


def _stderr(stream: Stream, index: int, *, why: bool) -> Claim:
    """A line with the handle, then all of stderr if it is short and fits, else its last lines; the very last is cut to fit.

    `why`: of a long one also its first lines and those that look like errors, as the first error says more than the last.
    """
    source = stream.source
    tail = stream.tail or stream.head  # each line stands in one of them only: few and long ones are all in the head
    whole = None if stream.whole is None else fenced(stream.whole)
    ends = whole or fenced(text for _, text in tail)
    last = [cut(line, 2 * LINE_TOKENS) for line in ends]
    title, end_of = f"stderr {source.handle}", f"stderr {source.handle}, end of {counted(source.lines, 'line')}"
    parts = Extract(source.handle, source.lines, stream.head[:_FIRST_OF_STDERR], stream.errors, tail)
    least = Extract(source.handle, source.lines, (), stream.errors[:1], tail[-1:])
    floor = cost(end_of) + cost(cut(last[-1], LINE_TOKENS))

    def fill(room: int) -> Shown:
        if whole is not None and cost(title) + total_cost(whole) <= room:
            return Shown([title, *whole], range(1, source.lines + 1))
        for budget, one in ((room - cost(title), one) for one in (parts, least) if why and stream.errors):
            extracted = extract(one, budget)
            if {stream.errors[0][0], source.lines} <= set(extracted.numbers):
                return Shown([title, *extracted.lines], extracted.numbers)
        rest = room - cost(end_of)
        fitting = last_fitting(last, rest) or [text for text in (cut(last[-1], rest),) if text]
        if not fitting:
            return Shown([text for text in (cut(title, room),) if text])
        uncut = zip(range(source.lines, 0, -1), reversed(fitting), reversed(ends), strict=False)
        return Shown([end_of, *fitting], {number for number, line, end in uncut if line == end})

    need = cost(end_of) + (total_cost(whole) if whole else max(total_cost(last), extract_cost(parts) if why else 0))
    if why and stream.errors:
        floor = max(floor, cost(title) + extract_cost(least))
    return Claim(need, fill, index, floor=min(need, floor), urgent=why, source=source)
