"""Records of `Key: value` lines, each under its first line, and delimited rows, each under the header. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.kinds import PAIR
from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

_RULE = re.compile(r"-{2,}$")


class RecordsOutline(Outline):
    """A record begins with the key that the text began with.

    Where something else comes before the records, such as a heading or another kind of record, it is the key after the first gap.
    """

    def __init__(self) -> None:
        super().__init__()
        self._openers: list[str] = []
        self._repeated = False

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        pair = PAIR.match(line.text)
        if pair is None:
            return None
        key = pair[1]
        if key in self._openers:
            self._repeated = True
        elif self._repeated or len(self._openers) > 1 or not after_gap(before[-1].text if before else ""):
            return None
        else:
            self._openers.append(key)
        return Heading(1, line.text.strip())


def after_gap(above: str) -> bool:
    """Does a line below this one begin something?"""
    return not above.strip() or _RULE.match(above.strip()) is not None


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
