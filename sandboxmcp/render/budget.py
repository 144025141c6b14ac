"""Counting a text into a budget, line by line, so that the whole never exceeds it.

The cost of a line is estimated with its line end. Lines never share a piece of the tokenizer's, so the sum of the costs
of the lines is never below the estimate of the joined text. Costs are added up before they are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.surface import argument
from sandboxmcp.core.tokens import exact_tokens

MINIMUM = 50
MAXIMUM = 1_000_000
"""A larger budget is taken as this one."""
ELLIPSIS = "…"
_CHARS_PER_TOKEN = 32
"""More characters than one token ever covers, for a first cut of very long lines."""
_LONGEST_REMEMBERED = 500


def checked_budget(budget_tokens: int) -> int:
    """The budget itself, at most the maximum.

    Raises:
        UsageError: it is below 50 tokens, where not even a receipt fits.
    """
    if budget_tokens < MINIMUM:
        raise UsageError(
            f"{argument('budget_tokens')} is {budget_tokens}, the minimum is {MINIMUM}", "Leave it out for the default of 2,000."
        )
    return min(budget_tokens, MAXIMUM)


def cost(line: str) -> int:
    """Tokens of one line with its line end."""
    return math.ceil(exact_cost(line))


def exact_cost(line: str) -> float:
    """The same before it is rounded: such costs may be added up."""
    return _remembered_cost(line) if len(line) <= _LONGEST_REMEMBERED else exact_tokens(line + "\n")


@lru_cache(maxsize=4_096)
def _remembered_cost(line: str) -> float:
    """A layout prices the same lines again and again."""
    return exact_tokens(line + "\n")


def total_cost(lines: Iterable[str]) -> int:
    """Tokens of the lines together: at most the sum of what they cost alone."""
    return math.ceil(sum(map(exact_cost, lines)))


def cut(line: str, room: int) -> str:
    """The longest beginning of a line that costs at most `room`, with an ellipsis when something is missing; may be empty."""
    if len(line) <= room * _CHARS_PER_TOKEN and cost(line) <= room:
        return line
    low, high = 0, min(len(line), room * _CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cost(line[:middle] + ELLIPSIS) <= room else (low, middle - 1)
    return line[:low] + ELLIPSIS if low else ""


def first_fitting(lines: Sequence[str], room: int) -> list[str]:
    """The lines from the first on that fit."""
    page = Page(room)
    page.add_all(lines)
    return page.lines


def last_fitting(lines: Sequence[str], room: int) -> list[str]:
    """The lines up to the last one that fit."""
    return first_fitting(lines[::-1], room)[::-1]


def fair_shares(needs: Sequence[int], total: int) -> list[int]:
    """What each claimant gets of `total`: never more than it needs, else equal shares; what one leaves goes to the others."""
    shares = [0] * len(needs)
    left = max(total, 0)
    order = sorted(range(len(needs)), key=lambda index: needs[index])
    for position, index in enumerate(order):
        shares[index] = min(needs[index], left // (len(order) - position))
        left -= shares[index]
    return shares


class Page:
    """Lines being put together under a budget."""

    def __init__(self, budget_tokens: int) -> None:
        self.lines: list[str] = []
        self._left: float = budget_tokens

    @property
    def room(self) -> int:
        """Tokens that are left."""
        return math.floor(self._left)

    def add(self, line: str) -> bool:
        """Add the line if it fits; says whether it did."""
        price = exact_cost(line)
        if price > self._left:
            return False
        self._left -= price
        self.lines.append(line)
        return True

    def add_cut(self, line: str, room: int | None = None) -> bool:
        """Add as much of the line as fits into `room` (default: all that is left)."""
        short = cut(line, self.room if room is None else min(room, self.room))
        return bool(short) and self.add(short)

    def add_all(self, lines: Iterable[str]) -> bool:
        """Add lines until one does not fit; says whether all did."""
        return all(self.add(line) for line in lines)

    def take(self, lines: Iterable[str], price: float) -> None:
        """Add lines that are known to cost exactly so much, which is not more than what is left."""
        self._left -= price
        self.lines += lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)
