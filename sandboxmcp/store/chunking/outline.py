"""The headings over a line of text: what an outline of any kind of structure is made of. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandboxmcp.core.words import HEADINGS_BETWEEN
from sandboxmcp.store.lines import Line

_TITLE_BYTES = 300
_HEADING_LETTERS = 160


@dataclass(slots=True)
class Heading:
    """Opens a section that lasts until the next heading of its level or a lower one; without a text it only ends the others."""

    level: int
    text: str
    starts_before: int = 0
    """So many of the lines before this one belong to the section already."""


class Outline:
    """Headings that the lines themselves declare (`Line.level`, from markup). Other kinds of structure read them off the text."""

    opens_fence = False
    """Was the line read last the first of a fence?"""
    in_fence = False
    joins_small = 0
    """Neighbouring sections of fewer bytes than this are one chunk."""
    joins_relatives = False
    """Only a first line and what it opens, or sections that lie in the same one: so that none loses more than its own name."""

    def __init__(self) -> None:
        self._open: list[Heading] = []

    @property
    def path(self) -> str:
        """The texts of the open headings, outermost first."""
        texts: list[str] = []
        room = _TITLE_BYTES
        for heading in reversed(self._open):
            if heading.text:
                texts.append(heading.text[:_HEADING_LETTERS])
                room -= len(texts[-1])
                if room < 0:  # what stands further out is cut off
                    break
        return HEADINGS_BETWEEN.join(reversed(texts))[-_TITLE_BYTES:]

    def enter(self, heading: Heading) -> None:
        while self._open and self._open[-1].level >= heading.level:
            self._open.pop()
        self._open.append(heading)

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        """The heading that opens with this line. `before`: lines of the section so far; of a long one those since its last cut."""
        return Heading(line.level, line.text.strip()) if line.level else None


def indent_of(text: str) -> int:
    """Blanks before the first letter."""
    return len(text) - len(text.lstrip(" "))
