"""What to show of a long text that no query narrows: its head, its tail and the lines that look like errors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandboxmcp.core.surface import call
from sandboxmcp.core.words import folded, words_in
from sandboxmcp.render.budget import cost, cut, fair_shares, total_cost
from sandboxmcp.render.fence import numbered

HEAD_LINES = 20
TAIL_LINES = 20
ERROR_LINES = 40
LINE_TOKENS = 80
"""What one line of an extract may cost; longer ones are cut with an ellipsis, the handle has them whole."""

FEW_LINES_TOKENS = 800
"""What an extract of very few lines may cost: one line of JSON is worth more than its first words."""

RUN = 4
"""So many equal lines that follow on each other are told by a number."""

GAP = "..."
"""Stands where lines of a source are left out between two that are shown; full stops are the cheapest mark there is."""

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


@dataclass(frozen=True, slots=True)
class Extract:
    """What may be shown of a text of `lines` lines that is stored under `handle`."""

    handle: str
    lines: int
    head: Sequence[Numbered] = ()
    errors: Sequence[Numbered] = ()
    tail: Sequence[Numbered] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines of an answer, and the numbers of the lines of a source that stand whole among them."""

    lines: Sequence[str] = ()
    numbers: Collection[int] = frozenset()


def extract(text: Extract, room: int) -> Shown:
    """Numbered lines within `room` tokens, each group with a fair share, in the order of the text.

    The tail is filled from its end: the last line of an output says most. When no line fits, the first is cut to fit.
    Lines of ours mark the gaps; the one in the largest says how to read it.
    """
    head, errors, tail = text.head, text.errors, text.tail
    rows, whole = _shown(head, errors, tail)
    if not rows:
        return Shown()
    gap = _gap_cost(text) if len(rows) < text.lines or extract_cost(text) > room else 0
    groups = _apart(*([number for number, _ in group if number in rows] for group in (head, errors, tail[::-1])))
    shares = fair_shares([sum(cost(rows[number]) for number in group) for group in groups], room - gap)
    chosen = [_affordable(group, rows, share) for group, share in zip(groups, shares, strict=True)]
    while any(chosen):
        numbers = sorted(itertools.chain(*chosen))
        lines = _with_gaps(text, {number: rows[number] for number in numbers})
        if total_cost(lines) <= room:
            return Shown(lines, whole.intersection(numbers))
        max(chosen, key=len).pop()
    first = cut(rows[min(rows)], room)
    return Shown([first] if first else [], whole & {min(rows)} if first == rows[min(rows)] else frozenset())


def extract_cost(text: Extract) -> int:
    """Tokens that the whole extract would take."""
    rows, _ = _shown(text.head, text.errors, text.tail)
    return total_cost(_with_gaps(text, dict(sorted(rows.items())))) if rows else 0


def _affordable(group: Sequence[int], rows: Mapping[int, str], share: int) -> list[int]:
    """The first lines of the group that its share pays for."""
    spent = itertools.accumulate(cost(rows[number]) for number in group)
    return [number for number, price in zip(group, spent, strict=True) if price <= share]


def _with_gaps(text: Extract, rows: Mapping[int, str]) -> list[str]:
    """The lines, in their order, and the gaps between them; the beginning and the end of the text bound gaps too, but only the
    largest gap is marked there."""
    gaps = [(one + 1, two - 1) for one, two in itertools.pairwise((0, *rows, text.lines + 1)) if two - one > 1]
    largest = max(gaps, key=lambda gap: gap[1] - gap[0], default=None)
    known = dict(itertools.chain(text.head, text.errors, text.tail))
    marks = {first: _mark(known, first, last) for first, last in gaps if first > 1 and last < text.lines}
    if largest is not None and marks.get(largest[0], GAP) == GAP:
        marks[largest[0]] = _gap(text.handle, *largest)
    return [line for _, line in sorted({**rows, **marks}.items())]


def _mark(known: Mapping[int, str], first: int, last: int) -> str:
    """Of a gap between two shown lines: so many lines like the one before it, when they are that."""
    alike = all(known.get(number) == known.get(first - 1, "") for number in range(first, last + 1))
    return f"{GAP} {last - first + 1} more lines like it" if alike and first - 1 in known and last > first else GAP


def _gap(handle: str, first: int, last: int) -> str:
    number = last - first + 1
    return f"{GAP} {number} {'line' if number == 1 else 'lines'}: {call('ctx_read')} {handle}:{first}-{last}"


def _gap_cost(text: Extract) -> int:
    return cost(_gap(text.handle, text.lines, 2 * text.lines))


def _shown(*groups: Sequence[Numbered]) -> tuple[dict[int, str], set[int]]:
    """Every line once, by its number, cut to what it may cost: the fewer lines, the more of each. Also the numbers of the uncut."""
    rows = dict(row for group in groups for row in group)
    repeats = _repeats(rows)
    rows = {number: line for number, line in rows.items() if number not in repeats}
    each = max(LINE_TOKENS, FEW_LINES_TOKENS // max(len(rows), 1))
    lines = dict(zip(rows, numbered(rows.items()), strict=True))
    shown = {number: cut(line, each) for number, line in lines.items()}
    return shown, {number for number, line in lines.items() if shown[number] == line}


def _repeats(rows: Mapping[int, str]) -> set[int]:
    """Numbers of the lines in a run of equal ones but its first."""
    found: set[int] = set()
    run: list[int] = []
    for number in sorted(rows):
        if run and number == run[-1] + 1 and rows[number] == rows[run[0]]:
            run.append(number)
        else:
            run = [number]
        if len(run) >= RUN:
            found.update(run[1:])
    return found


def _apart(*groups: Sequence[int]) -> list[list[int]]:
    """The groups without what an earlier one has."""
    seen: set[int] = set()
    apart: list[list[int]] = []
    for group in groups:
        apart.append([number for number in group if number not in seen])
        seen.update(group)
    return apart


_ENDINGS = frozenset("s es d ed e er ers ing ly".split())


def worth_searching(terms: Iterable[str], queries: Sequence[str]) -> list[str]:
    """The terms, in their order, without those of the queries (in any form) and without row numbers, hashes and the like."""
    asked = {folded(word) for query in queries for word in words_in(query)}
    return [term for term in terms if not any(map(str.isdigit, term)) and not any(_same(folded(term), word) for word in asked)]


def _same(one: str, other: str) -> bool:
    """Equal up to an ending: `package` and `packages`."""
    short, long = sorted((one, other), key=len)
    return one == other or (long.startswith(short) and long[len(short) :] in _ENDINGS)
