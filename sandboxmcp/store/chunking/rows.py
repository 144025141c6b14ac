"""Delimited rows: every chunk stands under the header, if the first row is one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

SEPARATORS = ("\t", ",", ";", "|")


class RowsOutline(Outline):
    """The first row is a header when none of its cells is empty or a number."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = False

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        if self._begun or not line.text.strip():
            return None
        self._begun = True
        return Heading(1, line.text.strip()) if line.whole and is_header(line.text) else None


def is_header(row: str) -> bool:
    """Does a row name its columns?"""
    separator = max(SEPARATORS, key=row.count)
    cells = [cell.strip().strip("\"'") for cell in row.strip().split(separator)]
    return len(cells) > 1 and all(cell.lstrip("+-.0123456789eE%") for cell in cells)
