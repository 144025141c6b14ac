"""Captured bytes as numbered, shown lines of bounded length: what chunkers eat.

A line of more than 600 bytes is cut at blanks into parts that share its number; so is one that markup or JSON spells on a
single line (`markup.py` leaves BREAK where a reader would see a new line).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, repeat
from typing import NamedTuple

from sandboxmcp.core.text import OVERWRITTEN, shown

BREAK = "\x1e"
"""Ends a part of a line. `shown` lets no control character through, so text cannot hold it."""
HEADING = "\x1d"
"""At the start of a part: a heading, as deep as there are of them."""
LINE_BYTES = 600
_SURELY_SHORT = LINE_BYTES // 4
"""A text of so few characters cannot have more than LINE_BYTES bytes."""
_LONGEST_LINE = 4 << 20
"""Bytes of one line that are looked at together; its rest follows as parts of the same line."""


class Line(NamedTuple):
    """A line, or a part of one (`whole` is then false)."""

    number: int
    text: str
    size: int
    """Bytes of the text in UTF-8."""
    whole: bool = True
    level: int = 0
    """Depth of a heading that markup declares; 0 for everything else."""


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def numbered_lines(pieces: Iterable[bytes], first: int = 1, spell: Callable[[str], str] | None = None) -> Iterator[Line]:
    """The lines of some bytes that start at the line numbered `first`.

    `spell` rewrites shown text line by line (markup to text); it may add BREAK and HEADING but never a "\n".
    """
    number = first
    for block, starts, ends in _line_blocks(pieces):
        text = shown(block)
        text = (text if spell is None else spell(text)).replace(OVERWRITTEN, BREAK)
        broken = BREAK in text
        ascii_only = text.isascii()
        size = len if ascii_only else size_of
        lines = text.split("\n")
        last = len(lines) - 1
        if block.endswith(b"\n"):
            lines.pop()
        if starts and ends and ascii_only and not broken and max(map(len, lines), default=0) <= LINE_BYTES:
            # Most blocks: no line needs a look of its own.
            yield from map(Line._make, zip(count(number), lines, map(len, lines), repeat(True), repeat(0)))
            number += last
            continue
        for index, line in enumerate(lines):
            whole = (starts or index > 0) and (ends or index < last)
            length = size(line)
            if length > LINE_BYTES or not whole or (broken and BREAK in line):
                yield from _parts(number, line, whole)
            else:
                yield Line(number, line, length)
            number += index < last


def _line_blocks(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool, bool]]:
    """(bytes, does it start a line, does it end one): whole lines together, or part of one longer than is looked at together."""
    waiting = bytearray()
    starts = True
    for piece in pieces:
        waiting += piece
        end = waiting.rfind(b"\n", len(waiting) - len(piece)) + 1
        if end:
            yield bytes(waiting[:end]), starts, True
            starts = True
        elif len(waiting) >= _LONGEST_LINE:
            end = _character_boundary(waiting)
            yield bytes(waiting[:end]), starts, False
            starts = False
        del waiting[:end]
    if waiting:
        yield bytes(waiting), starts, True


def _character_boundary(data: bytearray) -> int:
    end = len(data)
    while end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - 1 if data[end - 1] >= 0xC0 else len(data)


def _parts(number: int, line: str, whole: bool) -> Iterator[Line]:
    spelt = [part for part in line.split(BREAK) if part.strip()] if BREAK in line else [line]
    if not spelt:
        yield Line(number, "", 0, whole)
        return
    whole = whole and len(spelt) == 1
    for part in spelt:
        text = part.lstrip().lstrip(HEADING) if HEADING in part else part
        level = part.count(HEADING)
        text = text.replace(HEADING, "")
        cuts = list(_cut(text))
        for cut in cuts:
            yield Line(number, cut, size_of(cut), whole and len(cuts) == 1, level)
            level = 0


def _cut(text: str) -> Iterator[str]:
    """Parts of at most 600 bytes that join to the text again, cut before blanks where there are any."""
    start = 0
    while len(text) - start > _SURELY_SHORT:
        part = text[start : start + LINE_BYTES]
        if not part.isascii():
            part = part.encode()[:LINE_BYTES].decode("utf-8", "ignore")
        if start + len(part) == len(text):
            break
        blank = part.rfind(" ", len(part) // 2)
        end = blank if blank > 0 else len(part)
        yield part[:end]
        start += end
    yield text[start:]
