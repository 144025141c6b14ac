"""reStructuredText and texts underlined like it: a heading is a line over a row of one mark, perhaps under another. Pure.

Levels follow the order in which the marks first appear (docutils' reStructuredText specification, "Sections").
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

ROW = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")


class RestructuredOutline(Outline):
    """Headings by their underlines."""

    def __init__(self) -> None:
        super().__init__()
        self._styles: list[tuple[str, bool]] = []

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        if not line.text or line.text[0].isalnum() or line.text[0] == " " or not before or ROW.match(line.text) is None:
            return None
        title = before[-1].text
        if not title.strip() or ROW.match(title) or len(line.text.rstrip()) < len(title.rstrip()):
            return None
        over = len(before) > 1 and before[-2].text.rstrip() == line.text.rstrip()
        above = before[-3:-2] if over else before[-2:-1]
        if (title[0] == " " and not over) or (above and above[0].text.strip()):
            return None
        return Heading(self._level((line.text[0], over)), title.strip(), starts_before=1 + over)

    def _level(self, style: tuple[str, bool]) -> int:
        if style not in self._styles:
            self._styles.append(style)
        return self._styles.index(style) + 1
