"""The parts of a text: chunks, and the passages inside them. Pure.

A chunk has at most 4 KiB on every path: it is built from lines that are already bounded (`lines.py`). Together the chunks hold
every line exactly once and in order; passages leave out only blank lines. Small passages are the largest single gain in search
quality: 20 lines instead of 4 lose a fifth of the evidence at 500 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.lines import Line

CHUNK_BYTES = 4_096
PASSAGE_BYTES = 500
PASSAGE_LINES = 4
PASSAGE_PARTS = 16
_WHOLE = attrgetter("whole")


class Chunk(NamedTuple):
    """Consecutive lines under one title (headings joined by " › ", outermost first; empty without headings)."""

    title: str
    lines: tuple[Line, ...]


class Passage(NamedTuple):
    """What is searched and shown: at most four lines or about 500 bytes."""

    first: int
    last: int
    text: str
    partial: bool
    """It shows only part of a line that it names."""


def passages_of(chunk: Chunk, steps: Steps | None = None) -> Iterator[Passage]:
    """The passages of a chunk, in order. A blank line ends one that is at least half full.

    When the passages of a text are too many for its `steps`, which very short lines make, only their bytes are bounded.
    """
    allowance = (steps or Steps()).passages
    held: list[Line] = []
    size = 0
    for line in chunk.lines:
        length, text = line.size + 1, line.text
        blank = not text or text.isspace()
        if held:
            # Whole lines, which most are, have numbers of their own: then only their count matters.
            full = len(held) >= PASSAGE_LINES if line.whole and held[-1].whole else _is_full(held, line)
            if (full and not allowance.spent) or size + length > PASSAGE_BYTES or (blank and size > PASSAGE_BYTES // 2):
                yield _passage(held)
                allowance.take(size)
                held, size = [], 0
        if held or not blank:
            held.append(line)
            size += length
    if held:
        yield _passage(held)
        allowance.take(size)


def _is_full(held: Sequence[Line], following: Line) -> bool:
    """Four lines; the parts of one line (a record of JSON by its keys) count as one, and no other line is put beside them."""
    if following.number == held[-1].number:
        record_begins = following.text.strip() == "{" and len(held) > 1
        return len(held) >= PASSAGE_PARTS or (record_begins and sum(line.size for line in held) > PASSAGE_BYTES // 4)
    return len(held) >= PASSAGE_LINES or not following.whole or (len(held) > 1 and held[0].number == held[-1].number)


def _passage(lines: list[Line]) -> Passage:
    while not lines[-1].text.strip():
        lines.pop()
    return Passage(lines[0].number, lines[-1].number, "\n".join(line.text for line in lines), not all(map(_WHOLE, lines)))
