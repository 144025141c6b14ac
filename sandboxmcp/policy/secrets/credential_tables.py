"""Credentials in tables: in columns whose heading names one, as CSV, Markdown, psql, mysql and consoles print them.

A table goes on from one block of a stream to the next one: what is returned with the spans is given back with the next block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sandboxmcp.policy.secrets.credential_layouts import VALUE, is_value

_BAR, _HEAVY_BAR = b"\xe2\x94\x82", b"\xe2\x94\x83"
_DELIMITERS = (_BAR, b"|", b"\t", b";", b",")
_ENDS_CELL = re.compile(rb"[\w -]{0,20}[\"*`']?[ ]{0,80}(?:[|,;\t\r\n]|\xe2\x94[\x82\x83]|\Z)|[\w-]{0,20}  ")
"""What follows a word in a heading; most words are followed by something else."""
_HEADING = re.compile(rb"[A-Za-z_#][\w ./()#%-]{0,40}")
_CREDENTIAL = re.compile(
    rb"[\w .-]{0,30}(?:password|passwd|passphrase|pwd|secret|token|credentials?|(?:api|access|auth|private|client|master|signing"
    rb"|encryption|secret)[_ -]?key)(?:[_ -]?(?:access|key|string|value|data|hash)){0,3}",
    re.I,
)
_LONGEST_LINE = 8 << 10
_CELL = re.compile(rb"[^ ]+(?: [^ ]+)*")
_QUOTED = {
    delimiter: re.compile(rb"\"((?:[^\"]|\"\")*+)\"|([^" + re.escape(delimiter) + rb"]*+)") for delimiter in (b"\t", b";", b",")
}
_VALUE = re.compile(VALUE)
_Cell = tuple[int, int]
"""Where a cell begins and ends in its line, without blanks and quotes."""


@dataclass(frozen=True, slots=True)
class Table:
    """Which columns of a table hold credentials."""

    delimiter: bytes
    """Between its cells; empty where two blanks part them, and columns are known by where they stand."""
    width: int
    columns: tuple[int, ...]
    places: tuple[_Cell, ...]


@dataclass(frozen=True, slots=True)
class Found:
    spans: list[tuple[int, int]]
    tables: list[tuple[int, int, Table]]
    """Where the rows of a table begin and end."""


def table_spans(text: bytes, words: Iterable[tuple[int, int]], table: Table | None = None, at: int = 0) -> Found:
    """The credentials in the tables of a text. `words`: names of credentials in it, in order. `table` goes on at `at`."""
    found = Found([], [])
    first = at
    for start, end in _headings(text, words):
        if end < at:
            continue
        heading = _table(text[start:end])
        if table is not None:
            stop, ended = _rows(text, at, start if heading else end, table, found.spans)
            found.tables.append((first, stop, table))
            table, at = (None if ended else table), stop
        if heading is not None:
            table, at, first = heading, end + 1, start
    if table is not None:
        stop, _ = _rows(text, at, len(text), table, found.spans)
        found.tables.append((first, stop, table))
    return found


def _headings(text: bytes, words: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Lines that could be the heading of a table."""
    done = -1
    for start, end in words:
        if start > done and _ENDS_CELL.match(text, end):
            floor = max(0, start - _LONGEST_LINE)
            line = text.rfind(b"\n", floor, start) + 1
            done = text.find(b"\n", end, end + _LONGEST_LINE)
            done = done if done >= 0 else min(len(text), end + _LONGEST_LINE)
            if line or not floor:  # else it is longer
                yield line, done


def _table(line: bytes) -> Table | None:
    for delimiter in (*_DELIMITERS, b""):
        cells = _cells(line, delimiter)
        texts = [line[start:end].strip(b"*`\"' ") for start, end in cells]
        columns = tuple(number for number, text in enumerate(texts) if _CREDENTIAL.fullmatch(text))
        if not columns or sum(map(bool, texts)) < 2 or not all(not text or _HEADING.fullmatch(text) for text in texts):
            continue
        if delimiter in (b",", b";") and (delimiter + b" " in line or line[:1] in b" \t"):  # a sentence, or code
            continue
        return Table(delimiter, len(cells), columns, tuple(cells[number] for number in columns))
    return None


def _cells(line: bytes, delimiter: bytes) -> list[_Cell]:
    line = line.rstrip(b"\r")
    if not delimiter:
        return [cell.span() for cell in _CELL.finditer(line)]
    if delimiter == _BAR:
        line = line.replace(_HEAVY_BAR, _BAR)
    if b'"' in line and delimiter in _QUOTED:
        return list(_quoted_cells(line, _QUOTED[delimiter], len(delimiter)))
    cells, at = [], 0
    for part in line.split(delimiter):
        start = at + len(part) - len(part.lstrip())
        cells.append((start, start + len(part.strip())))
        at += len(part) + len(delimiter)
    return cells


def _quoted_cells(line: bytes, pattern: re.Pattern[bytes], step: int) -> Iterator[_Cell]:
    at = 0
    while at <= len(line) and (cell := pattern.match(line, at)) is not None:
        yield cell.span(1) if cell[1] is not None else cell.span(2)
        at = cell.end() + step


def _rows(text: bytes, at: int, stop: int, table: Table, spans: list[tuple[int, int]]) -> tuple[int, bool]:
    """Takes rows up to a place. Returns where it stopped, and whether the table ends there."""
    while at < stop:
        end = text.find(b"\n", at, at + _LONGEST_LINE)
        end = end if end >= 0 else min(len(text), at + _LONGEST_LINE)
        line = text[at:end]
        if not line.strip():
            return at, True
        if re.search(rb"[A-Za-z0-9]", line):
            cells = _cells(line, table.delimiter)
            if table.delimiter and len(cells) != table.width:
                return at, True
            spans += [(at + start, at + last) for start, last in _credentials(line, cells, table)]
        at = end + 1
    return at, False


def _credentials(line: bytes, cells: list[_Cell], table: Table) -> Iterator[_Cell]:
    if table.delimiter:
        wanted = [cells[number] for number in table.columns]
    else:
        wanted = [cell for cell in cells if any(cell[0] < end and start < cell[1] for start, end in table.places)]
    for start, end in wanted:
        if _VALUE.fullmatch(line, start, end) and is_value(line[start:end]):
            yield start, end
