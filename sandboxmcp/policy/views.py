"""Other readings of captured bytes, each with the way back: as a terminal shows them, and with an encoding undone.

A credential is looked for in every reading, and masked in the bytes that it came from. Both readings are linear in the bytes.
Not covered: letters that only look alike (full width, homoglyphs), text that is drawn by moving the cursor, and whole texts in
base64 or as a hex dump.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from ahocorasick_rs import BytesAhoCorasick

from sandboxmcp.core.text import CONTROL_SEQUENCES, PLAIN_BYTES, UNSHOWN

_SEQUENCES = re.compile(CONTROL_SEQUENCES)
_OVERSTRUCK = re.compile(rb"[\x01-\x07\x09\x0b-\x7f]\x08|[\xc2-\xf4][\x80-\xbf]{1,3}\x08")
"""Bold and underlined words of manual pages."""
_HALVES = re.compile(rb"(?<=[\x20-\x7e])\x00(?=[\x20-\x7e]\x00)|(?<=\x00[\x20-\x7e])\x00")
"""Every other byte of UTF-16 without a byte order mark. Elsewhere NUL separates, as in /proc/self/environ."""
_SOFT_BREAKS = re.compile(rb"(?<=[^=\n]{60})=\r?\n")
"""Lines of quoted-printable that go on: at most 76 bytes long (RFC 2045, 6.7); shorter ones are somebody's `x =`."""
_CONTROLS = bytes({*range(1, 32), 127} - {*b"\t\n\r"})
_ABOVE_ASCII = bytes(range(0x80, 0x100))

_ENCODED = re.compile(
    rb"\\\\*(?:u00(?P<u>[0-9a-fA-F]{2})|x(?P<x>[0-9a-fA-F]{2})|(?P<o>[0-3][0-7]{2})|(?P<c>[\"'/nrtbfveE0]))"
    rb"|%(?:25)*(?P<p>[0-7][0-9a-fA-F])"
    rb"|=(?P<q>3D|3A|22|27|20|2C|3B|09|0A|0D|5F)"
    rb"|&(?:amp;)*(?:\#x(?P<h>[0-9a-fA-F]{2})|\#0{0,3}(?P<d>\d{2,3})|(?P<e>quot|apos|lt|gt|nbsp|amp));"
    rb"|\"(?P<t>\")|'(?P<s>')"
)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\x08", b"f": b"\f", b"v": b"\v", b"e": b"\x1b", b"E": b"\x1b", b"0": b"\0"}
_ENTITIES = {b"quot": b'"', b"apos": b"'", b"lt": b"<", b"gt": b">", b"nbsp": b" ", b"amp": b"&"}
_BASES = {"u": 16, "x": 16, "o": 8, "p": 16, "q": 16, "h": 16, "d": 10}

_Part = tuple[bytes, int, int]
"""What stands in the view for the bytes from one place to another: these themselves, or one byte."""


@dataclass(frozen=True, eq=False)
class View:
    """Another reading of some bytes."""

    text: bytes
    _parted: Callable[[], Iterable[_Part]]
    """What the text is made of; asked for only when something was found in it."""

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The range of bytes that a range of the text, which is not empty, came from."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        begins, parts = self._parts
        index = bisect_right(begins, at) - 1
        length, start, end = parts[index]
        if length != end - start:
            return start, end
        return start + at - begins[index], start + at - begins[index] + 1

    @cached_property
    def _parts(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        """Where the parts begin in the text; their lengths there, and where they come from."""
        begins, parts, total = [], [], 0
        for text, start, end in self._parted():
            begins.append(total)
            parts.append((len(text), start, end))
            total += len(text)
        return begins, parts


def as_shown(data: bytes) -> View | None:
    """The bytes without what a terminal does not show, and lines of quoted-printable joined; None when that is the same."""
    others = data.translate(None, PLAIN_BYTES)
    breaks = b"=\n" in data or b"=\r\n" in data
    if not others and not breaks:
        return None
    controls = others.translate(None, _ABOVE_ASCII + b"\r")
    plain = not controls.strip(b"\x1b") and not breaks and not _unshown().find_matches_as_indexes(others.replace(b"\x1b", b""))
    if plain and (not controls or b"\x1b" not in (text := _SEQUENCES.sub(b"", data))):
        return View(text, lambda: _without(data, (m.span() for m in _SEQUENCES.finditer(data)))) if controls else None
    spans = _merged(sorted(_hidden(data, breaks)))
    return View(b"".join(text for text, _, _ in _without(data, spans)), lambda: _without(data, spans)) if spans else None


def decoded(data: bytes) -> View | None:
    """The bytes with escapes, percent signs, entities, quoted-printable and doubled quotes undone once; None without any."""
    if not _ENCODED.search(data):
        return None
    return View(_ENCODED.sub(_byte, data), lambda: _decoded_parts(data))


def _hidden(data: bytes, breaks: bool) -> Iterator[tuple[int, int]]:
    patterns = [(_SEQUENCES, b"\x1b" in data or b"\xc2\x9b" in data), (_OVERSTRUCK, b"\x08" in data)]
    for pattern, needed in (*patterns, (_HALVES, b"\0" in data), (_SOFT_BREAKS, breaks)):
        if needed:
            yield from (match.span() for match in pattern.finditer(data))
    yield from ((start, end) for _, start, end in _unshown().find_matches_as_indexes(data))


@cache
def _unshown() -> BytesAhoCorasick:
    """Finds control characters, and what UTF-8 makes of invisible ones, of combining marks and of variation selectors."""
    ranges = re.findall("(.)(?:-(.))?", UNSHOWN + "\u0300-\u036f\ufe00-\ufe0f", re.DOTALL)
    codes = {code for first, last in ranges for code in range(ord(first), ord(last or first) + 1)}
    return BytesAhoCorasick([bytes([code]) for code in _CONTROLS] + [chr(code).encode() for code in sorted(codes)])


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(data: bytes, spans: Iterable[tuple[int, int]]) -> Iterator[_Part]:
    at = 0
    for start, end in spans:
        if start > at:
            yield data[at:start], at, start
        at = end
    if at < len(data):
        yield data[at:], at, len(data)


def _decoded_parts(data: bytes) -> Iterator[_Part]:
    at = 0
    for match in _ENCODED.finditer(data):
        start, end = match.span()
        if start > at:
            yield data[at:start], at, start
        yield _byte(match), start, end
        at = end
    if at < len(data):
        yield data[at:], at, len(data)


def _byte(match: re.Match[bytes]) -> bytes:
    kind = match.lastgroup or ""
    value = match[kind]
    if kind in _BASES:
        return bytes([int(value, _BASES[kind]) & 0xFF])
    return _LETTERS.get(value, value) if kind == "c" else _ENTITIES.get(value, value)
