"""What an answer knows of one finished item: its outcome, its stored streams, and as much of their text as it could show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandboxmcp.core.model import Hit, Outcome, Source
from sandboxmcp.render.extract import HEAD_LINES, TAIL_LINES, Numbered, error_lines

GONE = " (its file is gone)"
"""What stands behind the label of a passage whose file has been deleted."""
THRESHOLD = 5_000
"""Bytes up to which an output comes back whole when the whole answer fits (the size rule)."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stored stream. `whole`: all its lines when it is up to the threshold, else None and the extract is filled."""

    source: Source
    whole: tuple[str, ...] | None
    head: tuple[Numbered, ...] = ()
    errors: tuple[Numbered, ...] = ()
    tail: tuple[Numbered, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a batch, or a single execution (label "")."""

    label: str
    outcome: Outcome
    stdout: Stream | None = None
    stderr: Stream | None = None
    artifacts: tuple[Source, ...] = ()
    stored_s: float = 0.0
    """Seconds that storing and indexing took after the script had ended."""

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(stream for stream in (self.stdout, self.stderr) if stream is not None)


@dataclass(frozen=True, slots=True)
class Others:
    """What a passage stands for: so many more sources with the same content, where else its text stands, and how many passages
    of its log differ in their numbers only."""

    copies: int = 0
    citations: tuple[str, ...] = ()
    alike: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A query and what the store found for it, best first; each text once."""

    query: str
    hits: tuple[Hit, ...]
    others: Mapping[tuple[str, int], Others] = field(default_factory=dict)
    """By handle and first line of the hit that stands for them."""
    capped: bool = False
    """Whether there may be more than were looked at."""


def short_stream(source: Source, lines: Sequence[str]) -> Stream:
    """A stream whose whole text is at hand, with the extract to fall back to when the budget refuses the whole."""
    rows = list(enumerate(lines, 1))
    return Stream(source, tuple(lines), tuple(rows[:HEAD_LINES]), tuple(error_lines(rows)), tuple(rows[-TAIL_LINES:]))
