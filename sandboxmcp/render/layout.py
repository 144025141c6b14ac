"""How the answer to an execution shares its budget.

Receipts come first: every item has one line, or, when the lines alone would take most of the budget, one line counts the
items and names the handle of the full list. What is left is shared fairly between the outputs, the ends of stderr and
the queries; what one does not need goes to the others. An output up to the threshold is shown whole or, when its share
is too small for that, treated as a large one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from sandboxmcp.core.model import Source
from sandboxmcp.core.surface import call
from sandboxmcp.render.allocation import Claim, item_claims, shared
from sandboxmcp.render.budget import Page, cost, first_fitting, total_cost
from sandboxmcp.render.extract import Shown
from sandboxmcp.render.fence import fenced
from sandboxmcp.render.items import Found, Item
from sandboxmcp.render.passages import Section, Seen, least, section, unanswered, wanted
from sandboxmcp.render.receipt import reason, receipt, tally

_RECEIPTS_SHARE = 0.6
"""Part of the budget that receipts may take before their list is condensed."""
_TOLD_SHARE = 0.4
"""Part of the budget for the receipts of the most telling items of a condensed list."""
_TERMS_SHARE = 0.07
_FEWEST_TERMS = 3
_MANY_ITEMS = 8
"""From so many on a failed one could be overlooked."""


@dataclass(frozen=True, slots=True)
class Laid:
    """The lines of an answer and, per query, what was cited."""

    lines: tuple[str, ...]
    sections: tuple[Section, ...]


def must_condense(items: Sequence[Item], budget_tokens: int) -> bool:
    """Would the receipts of a batch take most of the budget? Then their full list needs a handle of its own."""
    lines = [receipt(item, whole=_is_short(item)) for item in items]
    return any(item.label for item in items) and total_cost(lines) > _RECEIPTS_SHARE * budget_tokens


def all_whole(items: Sequence[Item], budget_tokens: int) -> bool:
    """Does everything fit as it is? Then no query needs to be searched in these items."""
    if any(stream.whole is None for item in items for stream in item.streams):
        return False
    claims = [claim for item in items for claim in item_claims(item, 0, whole=True, excerpts=False)]
    receipts = [*_tally(items), *(receipt(item, whole=True) for item in items)]
    return total_cost(receipts) + sum(claim.need for claim in claims) <= budget_tokens


def lay_out(
    items: Sequence[Item],
    found: Sequence[Found],
    terms: Sequence[str],
    budget_tokens: int,
    full_list: Source | None = None,
    unasked: int = 0,
) -> Laid:
    """The answer's lines within `budget_tokens`. `full_list`: the stored receipts, given when `must_condense`.

    `unasked`: queries that were not searched for want of budget; they are counted with those that found no room here.
    """
    page = Page(budget_tokens)
    told: Sequence[int] = range(len(items))
    if full_list is None:
        page.add_all(_tally(items))
    else:
        told = _most_telling(items, int(_TOLD_SHARE * budget_tokens))
        below = f", {len(told)} of them below" if told else ""
        page.add_cut(f"{tally(items)}{below}; every receipt: {full_list.handle}:1-{len(items)}")
    whole = {index for index in told if _is_short(items[index])}
    reserve = _terms_reserve(terms, budget_tokens)
    claims, shares = _settle(items, told, whole, found, page.room - reserve)
    seen = Seen((stream.source.handle for item in items for stream in item.streams), _handles(items, whole))
    for index in told:
        page.add_cut(receipt(items[index], whole=index in whole))
        for claim, share in zip(claims, shares, strict=True):
            if claim.item == index:
                shown = claim.fill(min(share, page.room))
                page.add_all(shown.lines)
                seen.add_lines(claim.source, shown.numbers)
    for_queries = [share for claim, share in zip(claims, shares, strict=True) if claim.item is None]
    reserve = 0 if len(whole) == len(told) else reserve
    sections = _answer_queries(page, found, seen, for_queries, reserve, unasked)
    if reserve:
        _add_terms(page, terms)
    return Laid(tuple(page.lines), sections)


def _tally(items: Sequence[Item]) -> list[str]:
    """Of many items: how many ended how, so that one that failed among them is not overlooked."""
    some_failed = any(item.outcome.status != "ok" for item in items)
    return [tally(items)] if some_failed and len(items) >= _MANY_ITEMS else []


def _is_short(item: Item) -> bool:
    return item.stdout is None or item.stdout.whole is not None


def _most_telling(items: Sequence[Item], room: int) -> list[int]:
    """Indexes of the items to tell one by one: those that did not end well first, then in order, as many as fit."""
    order = sorted(range(len(items)), key=lambda index: (items[index].outcome.status == "ok", index))
    fitting = first_fitting([receipt(items[index], whole=False) for index in order], room)
    return sorted(order[: len(fitting)])


def _settle(
    items: Sequence[Item], told: Collection[int], whole: set[int], found: Sequence[Found], room: int
) -> tuple[list[Claim], list[int]]:
    """Claims and their shares; takes out of `whole`, largest first, the outputs that do not fit as a whole."""
    again = _repeated(items, told)
    claims_of = cache(
        lambda index, whole, excerpts: item_claims(items[index], index, whole=whole, excerpts=excerpts, again=index in again)
    )
    while True:
        receipts = sum(cost(receipt(items[index], whole=index in whole)) for index in told)
        seen = Seen(whole=_handles(items, whole))
        excerpts = all(seen.covers(hit) for one in found for hit in one.hits)
        claims: list[Claim] = [claim for index in told for claim in claims_of(index, index in whole, excerpts)]
        claims += [Claim(need := wanted(one, seen), lambda room: Shown(), floor=min(need, least(one, seen))) for one in found]
        shares = shared(claims, room - receipts)
        if any(claim.item is None and share < claim.floor for claim, share in zip(claims, shares, strict=True)):
            shares = shared(claims, room - receipts - total_cost(unanswered(len(found))))
        short = [claim for claim, share in zip(claims, shares, strict=True) if claim.indivisible and share < claim.need]
        if not short:
            return claims, shares
        largest = max(short, key=lambda claim: claim.need).item
        whole -= {largest}


def _repeated(items: Sequence[Item], told: Iterable[int]) -> set[int]:
    """Indexes of the items whose reason is that of one before them."""
    reasons = [(index, reason(items[index].outcome)) for index in told]
    first: dict[str, int] = {}
    return {index for index, why in reasons if why and first.setdefault(why, index) != index}


def _handles(items: Sequence[Item], indexes: Collection[int]) -> list[str]:
    """Of the outputs of these items."""
    return [stdout.source.handle for index in indexes if (stdout := items[index].stdout) is not None]


def _answer_queries(
    page: Page, found: Sequence[Found], seen: Seen, shares: Sequence[int], reserve: int, unasked: int
) -> tuple[Section, ...]:
    """One section per query; what one leaves goes to the next. Where not all can have one, the first ones do, before any terms."""
    lows = [least(one, seen) for one in found]
    tight = unasked or any(share < low for share, low in zip(shares, lows, strict=True))
    room = page.room - (total_cost(unanswered(len(found) + unasked)) if tight else reserve)
    spare = max(room - sum(shares), 0)
    sections: list[Section] = []
    for one, share, low in zip(found, shares, lows, strict=True):
        mine = min(max(share + spare, low), room)
        part = section(one, max(mine, 0), seen, titled=len(found) > 1, elsewhere=call("ctx_search"))
        if one.hits and not part.told:
            part = Section((), (), len(one.hits))
            unasked += 1
        price = total_cost(part.lines)
        room, spare = room - price, max(share + spare - price, 0)
        page.add_all(part.lines)
        sections.append(part)
    page.add_all(unanswered(unasked))
    return tuple(sections)


def _terms_reserve(terms: Sequence[str], budget_tokens: int) -> int:
    if not terms:
        return 0
    reserve = min(total_cost(_terms_lines(terms)), int(_TERMS_SHARE * budget_tokens))
    return reserve if reserve >= total_cost(_terms_lines(terms[:_FEWEST_TERMS])) else 0


def _add_terms(page: Page, terms: Sequence[str]) -> None:
    for number in range(len(terms), 0, -1):
        lines = _terms_lines(terms[:number])
        if total_cost(lines) <= page.room:
            page.add_all(lines)
            return


def _terms_lines(terms: Sequence[str]) -> list[str]:
    """Words that a script chose are data: they stand behind the mark like everything else that it printed."""
    return ["terms:", *fenced([", ".join(terms)])]
