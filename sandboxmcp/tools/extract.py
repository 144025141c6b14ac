"""What to show of a long text that no query narrows: its head, its tail and the lines that look like errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sandboxmcp.tools.budget import cost, cut, fair_shares
from sandboxmcp.tools.fence import numbered

HEAD_LINES = 20
TAIL_LINES = 20
ERROR_LINES = 40
LINE_TOKENS = 80
"""What one line of an extract may cost; longer ones are cut with an ellipsis, the handle has them whole."""

Numbered = tuple[int, str]

ERROR_WORDS = "error errors failed failure fatal panic exception traceback critical denied refused abort cannot timeout killed"
"""A query that finds most of them in an index."""

_ERROR = re.compile(
    r"\b(?:error|errors|fail|failed|failure|fatal|panic|panicked|exception|traceback|critical|denied|refused|segfault|"
    r"undefined|unhandled|abort|aborted|cannot|conflict|oom|killed|timed out|timeout|not found|no such file)\b|"
    r"[a-z](?:Error|Exception)\b|^E\s{2,}|\bE\d{3,4}\b|\[E\w+\]",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(r"\b(?:0|no)\s+(?:errors?|failures?|failed|conflicts?)\b", re.IGNORECASE)


def looks_like_error(line: str) -> bool:
    """A guess from the words: meant for choosing what to show, never for a status."""
    return _ERROR.search(line) is not None and _NO_ERROR.search(line) is None


def error_lines(lines: Iterable[Numbered], limit: int = ERROR_LINES) -> list[Numbered]:
    """The first and last lines that look like errors, at most `limit`."""
    found = [line for line in lines if looks_like_error(line[1])]
    if len(found) <= limit:
        return found
    return found[: limit // 2] + found[-(limit - limit // 2) :]


def extract(head: Sequence[Numbered], errors: Sequence[Numbered], tail: Sequence[Numbered], room: int) -> list[str]:
    """Numbered lines within `room` tokens, each group with a fair share, in the order of the text.

    The tail is filled from its end: the last line of an output says most.
    """
    groups = [list(head), list(errors), list(reversed(tail))]
    prices = {line: _price(line) for group in groups for line in group}
    shares = fair_shares([sum(prices[line] for line in group) for group in groups], room)
    chosen: dict[int, str] = {}
    for group, share in zip(groups, shares, strict=True):
        for line in group:
            if line[0] in chosen:
                continue
            if prices[line] > share:
                break
            share -= prices[line]
            chosen[line[0]] = line[1]
    return [_shown(line) for line in sorted(chosen.items())]


def extract_cost(head: Sequence[Numbered], errors: Sequence[Numbered], tail: Sequence[Numbered]) -> int:
    """Tokens that the whole extract would take."""
    return sum(map(_price, {*head, *errors, *tail}))


def _shown(line: Numbered) -> str:
    return cut(numbered([line])[0], LINE_TOKENS)


def _price(line: Numbered) -> int:
    return cost(_shown(line))
