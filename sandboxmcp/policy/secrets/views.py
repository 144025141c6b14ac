"""Other readings of captured bytes, each with the way back: as a terminal shows them, and with an encoding undone.

A credential is looked for in every reading, and masked in the bytes that it came from. Both readings are linear in the bytes.
Not covered: letters that only look alike (full width, homoglyphs), text that is drawn by moving the cursor, and whole texts in
base64 or as a hex dump.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import utf_8_decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING
from unicodedata import lookup

from sandboxmcp.core.text import C1_SEQUENCES, ESCAPE_SEQUENCES, PLAIN_BYTES, UNSHOWN

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

_SEQUENCES = re.compile(ESCAPE_SEQUENCES)
_C1_SEQUENCES = re.compile(C1_SEQUENCES)
_COLOUR = re.compile(rb"\x1b\[[0-9;]*[mK]")
_SAMPLE = 1 << 10
"""Bytes in which colours are looked up that are then taken out without a pattern."""
_MOST_COLOURS = 8
_NO_TEXT = [0x1B, *(code for code in range(128) if code not in {0x1B, *PLAIN_BYTES})]
_NOT_PLAIN = bytes(code for code in range(256) if code not in PLAIN_BYTES)
_BACKSPACES = re.compile(rb"\x08{1,64}")
_HALVES = re.compile(rb"\x00(?:(?<=[\x20-\x7e]\x00)(?=[\x20-\x7e]\x00)|(?<=\x00[\x20-\x7e]\x00))")
"""Every other byte of UTF-16 without a byte order mark. Elsewhere NUL separates, as in /proc/self/environ."""
_SOFT_BREAK = re.compile(rb"=\r?\n")
_SOFT_LENGTH = 60
"""A line of quoted-printable that goes on is about 76 bytes long (RFC 2045, 6.7); a shorter one is somebody's `x =`."""
_CONTROLS = bytes({*range(1, 32), 127} - {*b"\t\n\r"})
_CONTROL_RUNS = re.compile(b"[" + re.escape(_CONTROLS) + b"]+")
_PARTING = re.compile(
    rb"[\x00=\r](?:(?<=[\w.~-]\r)(?!\n)|(?<=[\w.~-]\x00)\x00{0,63}(?![A-Za-z_]\w{0,60}=)|(?<=[\w.~-]=)\r?\n)(?=[\w.~-])"
)
"""NUL within a word, except before `NAME=` where it parts variables of an environment; and the end of a short line that goes on."""
_LATIN = re.compile(rb"[\x80-\x9f\xad](?<![\x80-\xff].)[\x80-\x9f\xad]{0,63}")
"""Invisible characters of Latin-1: in UTF-8 such a byte stands behind another one. `repr` writes them as `\\xad`."""

_ENCODED = re.compile(
    rb"\\(?<!\\\\)\\*+(?:[uU](?P<u>\{[0-9a-fA-F]{1,6}\}|(?<=U)000?[01][0-9a-fA-F]{4}|(?<=U)0000[0-9a-fA-F]{4}|(?<=u)[0-9a-fA-F]{4})"
    rb"|N\{(?P<n>[A-Z][A-Z0-9 -]{1,80})\}|x(?P<x>[0-9a-fA-F]{2})|(?P<o>[0-3][0-7]{2})|(?P<c>[\"'/nrtbfveE0_.:=~@+-]))"
    rb"|%(?:u(?P<w>[0-9a-fA-F]{4})|(?P<p>[0-9a-fA-F]{2}))"
    rb"|=(?:(?P<q>0[0-9A-F]|1B|20|22|27|2C|2D|2E|3A|3B|3D|5F)|(?P<r>[89A-F][0-9A-F](?:=[89A-F][0-9A-F]){1,3}))"
    rb"|&(?:amp;)*(?:\#[xX](?P<h>[0-9a-fA-F]{2,6})|\#(?P<d>\d{2,7})"
    rb"|(?P<e>quot|apos|lt|gt|nbsp|amp|lowbar|UnderBar|hyphen|dash|period|shy|zwnj|zwj|ZeroWidthSpace|NoBreak|lrm|rlm));"
    rb"|\^(?P<k>[@-_?])|(?P<m>M-(?:\^?[ -~])M-(?:\^?[ -~])(?:M-(?:\^?[ -~])){0,2})"
    rb"|(?<!\x1b)(?<!\\x1[bB])(?<!\\u001[bB])(?<![%=]1[bB])(?<![xX]1[bB];)(?<!\{1[bB]\})(?<!\\033)(?<!\\[eE])(?<!\^\[)(?<!\#27;)\[(?P<g>[0-9;]{0,24})m"
    rb"|\"(?P<t>\")|'(?P<s>')"
)
"""Also what `cat -v` makes of control characters and of UTF-8, and colours that lost their escape character.

A colour whose escape character is written out keeps its letters: with that character it is left to the terminal's view.
"""
_FORM = re.compile(_ENCODED.pattern + rb"|(?P<f>\+)")
"""Where percent signs encode, a plus is a blank; elsewhere it is itself."""
_PERCENT = re.compile(rb"%[0-7][0-9a-fA-F]")
_MARKS = b"\\%&=^["
_LONGER_MARKS = (b"M-", b'""', b"''")
"""One of these is in whatever is encoded; they are looked for ten times as fast as the pattern is."""
_LETTERS = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"b": b"\x08",
    b"f": b"\f",
    b"v": b"\v",
    b"e": b"\x1b",
    b"E": b"\x1b",
    b"0": b"\0",
}
_ENTITIES = {
    b"quot": b'"',
    b"apos": b"'",
    b"lt": b"<",
    b"gt": b">",
    b"nbsp": b" ",
    b"amp": b"&",
    b"lowbar": b"_",
    b"UnderBar": b"_",
} | {
    b"hyphen": b"-",
    b"dash": b"-",
    b"period": b".",
    **dict.fromkeys((b"shy", b"zwnj", b"zwj", b"ZeroWidthSpace", b"NoBreak", b"lrm", b"rlm"), b""),
}
_BASES = {"x": 16, "o": 8, "p": 16, "q": 16}
_CODES = {"u": 16, "w": 16, "h": 16, "d": 10}
_META = re.compile(rb"M-(\^?)(.)")
_LOOKED_THROUGH = UNSHOWN + (
    "\u0300-\u036f\ufe00-\ufe0f\u17b4\u17b5\u180b-\u180f\u2028\u2029\u2800\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
"""Characters that hide a credential when they stand in it: invisible ones, blanks that are none, marks and variation selectors."""

_PART = 16 << 10
"""Bytes of whole lines that are shown at once: where one line holds an escape, not the whole text is read again."""
_Part = tuple[bytes, int, int]
"""What stands in the view for the bytes from one place to another: these themselves, or one byte."""


@dataclass(frozen=True, eq=False)
class View:
    """Another reading of some bytes."""

    text: bytes
    _parted: Callable[[], Iterable[_Part]]
    """What the text is made of; asked for only when something was found in it."""
    under: View | None = None
    """The view that this one is a view of."""

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The range of bytes that a range of the text, which is not empty, came from."""
        start, end = self._place(start)[0], self._place(end - 1)[1]
        return (start, end) if self.under is None else self.under.source(start, end)

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


def as_shown(data: bytes, holds: Callable[[bytes], bool]) -> Iterator[tuple[int, View]]:
    """The parts of the bytes, with where they begin, in which a terminal shows something else than is written.

    `holds` says whether a text could have something in it that is looked for, were other characters around it: a part that is no
    UTF-8 is left out when it has nothing.

    Parts are whole lines. Views of them lack what is not shown, and lines of quoted-printable are joined. NUL, and
    `=` at the end of a short line, part words or do not: where they are in a word there is a view with them and one without.
    """
    for start, end in _parts(data):
        part = data[start:end]
        if _is_plain(part) if _is_utf8(part) else not any(map(holds, _bare(part))):
            continue
        view = _shown(part)
        if view is not None:
            yield start, view
        text = part if view is None else view.text
        if (b"\0" in text or b"\r" in text or _SOFT_BREAK.search(text)) and (joined := _removed(_PARTING)(text)) is not None:
            yield start, replace(joined, under=view)


def wholly_shown(data: bytes) -> View | None:
    """All of the bytes as a terminal shows them; None when they are shown as they are."""
    return _shown(data)


def _is_plain(data: bytes) -> bool:
    """Whether all of it is shown as it is written. One search for each control character is faster than one pass for all, while
    the bytes are in the processor's cache."""
    if not data.isascii():
        return False
    pieces = [data] if len(data) <= 2 * _PART else (data[at : at + _PART] for at in range(0, len(data), _PART))
    return not any(any(map(piece.__contains__, _NO_TEXT)) for piece in pieces) and not _SOFT_BREAK.search(data)


def _is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8; a character at either end may be cut."""
    if data.isascii():
        return True
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    try:
        utf_8_decode(memoryview(data)[start:], "strict", False)
    except UnicodeDecodeError:
        return False
    return True


def _bare(data: bytes) -> Iterator[bytes]:
    """The bytes without whatever views could leave out: what is nowhere in these is in no view."""
    text = _C1_SEQUENCES.sub(b"", _SEQUENCES.sub(b"", data))
    if b"\x08\x08" in text:
        text = b"".join(piece for piece, _, _ in _without(text, _merged(_overstruck(text))))
    elif b"\x08" in text:
        text = b"".join(piece[:-1] for piece in (text + b" ").split(b"\x08"))
    text = text.translate(None, _NOT_PLAIN)
    yield text
    if b"=\n" in text:
        lines = text.split(b"\n")
        goes_on = [line.endswith(b"=") for line in lines]
        ends = zip(lines, goes_on, [False, *goes_on[:-1]], strict=True)
        yield b"".join(line[:-1] if on else line + b"\n" for line, on, before in ends if on or before)


def _parts(data: bytes) -> Iterator[tuple[int, int]]:
    """Where whole lines of some kilobytes begin and end, none of them between lines of quoted-printable that go on."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PART) + 1
        while end > 0 and (data.endswith(b"=\n", start, end) or data.endswith(b"=\r\n", start, end)):
            end = data.find(b"\n", end) + 1
        end = end or len(data)
        yield start, end
        start = end


def _shown(data: bytes) -> View | None:
    """One step after the other, each only where something of its kind is there; all but two are single calls into C."""
    if _is_plain(data):
        return None
    view: View | None = None
    for mark, step in _STEPS:
        text = data if view is None else view.text
        if (mark is None or mark in text) and (made := step(text)) is not None:
            view = made if view is None else replace(made, under=view)
            if _is_plain(view.text):
                break
    return view


def _without_sequences(data: bytes) -> View | None:
    """Output of everyday programs has a few colours that come again and again: to replace these takes a tenth of the time."""
    colours = set(_COLOUR.findall(data, 0, _SAMPLE))
    if 0 < len(colours) <= _MOST_COLOURS:
        text, left = data, data.count(b"\x1b")
        for colour in colours:
            shorter = text.replace(colour, b"")
            left -= (len(text) - len(shorter)) // len(colour)
            text = shorter
        if not left:
            return View(text, lambda: _without(data, (match.span() for match in _SEQUENCES.finditer(data))))
    return _removed(_SEQUENCES)(data)


def _removed(pattern: re.Pattern[bytes]) -> Callable[[bytes], View | None]:
    def step(data: bytes) -> View | None:
        text = pattern.sub(b"", data)
        return View(text, lambda: _without(data, (match.span() for match in pattern.finditer(data)))) if text != data else None

    return step


def _without_spans(spans: Callable[[bytes], Iterable[tuple[int, int]]]) -> Callable[[bytes], View | None]:
    def step(data: bytes) -> View | None:
        found = _merged(spans(data))
        return View(b"".join(text for text, _, _ in _without(data, found)), lambda: _without(data, found)) if found else None

    return step


def _overstruck(data: bytes) -> Iterator[tuple[int, int]]:
    """Backspaces with as many characters before them: bold and underlined words of manual pages."""
    floor = 0
    for match in _BACKSPACES.finditer(data):
        start, end = match.span()
        first = start
        for _ in range(end - start):
            if first <= floor or data[first - 1] == 0x0A:
                break
            first -= 1
            while first > floor and data[first] & 0xC0 == 0x80:
                first -= 1
        floor = end
        yield first, end


def _soft_breaks(data: bytes) -> Iterator[tuple[int, int]]:
    """Where lines of quoted-printable go on."""
    for match in _SOFT_BREAK.finditer(data):
        line = data[max(0, match.start() - _SOFT_LENGTH) : match.start()]
        if len(line) == _SOFT_LENGTH and b"\n" not in line and not line.endswith(b"="):
            yield match.span()


def _without_controls(data: bytes) -> View | None:
    text = data.translate(None, _CONTROLS)
    if len(text) == len(data):
        return None
    return View(text, lambda: _without(data, (match.span() for match in _CONTROL_RUNS.finditer(data))))


def _without_latin(data: bytes) -> View | None:
    return None if data.isascii() or _is_utf8(data) else _removed(_LATIN)(data)


def _unshown_spans(data: bytes) -> Iterator[tuple[int, int]]:
    others = data.translate(None, PLAIN_BYTES)
    if others and _unshown().find_matches_as_indexes(others):
        yield from ((start, end) for _, start, end in _unshown().find_matches_as_indexes(data))


def decoded(data: bytes) -> View | None:
    """The bytes with escapes, percent signs, entities, quoted-printable and doubled quotes undone once; None without any."""
    has = data.__contains__
    if not (any(map(has, _MARKS)) or (any(map(has, b"-\"'")) and any(map(has, _LONGER_MARKS)))) or not _ENCODED.search(data):
        return None
    pattern = _FORM if b"+" in data and _PERCENT.search(data) else _ENCODED
    return View(pattern.sub(_byte, data), lambda: _decoded_parts(data, pattern))


@cache
def _unshown() -> BytesAhoCorasick:
    """Finds what UTF-8 makes of invisible characters, of combining marks and of variation selectors."""
    from ahocorasick_rs import BytesAhoCorasick

    ranges = re.findall("(.)(?:-(.))?", _LOOKED_THROUGH, re.DOTALL)
    codes = {code for first, last in ranges for code in range(ord(first), ord(last or first) + 1)}
    return BytesAhoCorasick([chr(code).encode() for code in sorted(codes)])


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


def _decoded_parts(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[_Part]:
    at = 0
    for match in pattern.finditer(data):
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
    if kind in _CODES:
        return _utf8(int(value.strip(b"{}"), _CODES[kind]))
    if kind in _SPELLED:
        return _SPELLED[kind](value)
    return _LETTERS.get(value, value) if kind == "c" else _ENTITIES.get(value, value)


def _utf8(code: int) -> bytes:
    """A character in UTF-8; halves of a pair, and what is none, as what stands for an unknown one."""
    return chr(code).encode() if code < 0xD800 or 0xDFFF < code < 0x110000 else b"\xef\xbf\xbd"


def _meta(value: bytes) -> bytes:
    """Bytes beyond ASCII as `cat -v` writes them: `M-b`, `M-^@`."""
    return _META.sub(lambda match: bytes([0x80 | match[2][0] ^ (0x40 if match[1] else 0)]), value)


def _called(name: bytes) -> bytes:
    """A character by its name in Unicode, as in Python and Perl."""
    try:
        return lookup(name.decode()).encode()
    except KeyError:
        return name


_SPELLED: dict[str, Callable[[bytes], bytes]] = {
    "n": _called,
    "f": lambda _: b" ",
    "g": lambda _: b"",
    "k": lambda value: bytes([value[0] ^ 0x40]),
    "m": _meta,
    "r": lambda value: bytes.fromhex(value.replace(b"=", b"").decode()),
}
_STEPS: tuple[tuple[bytes | None, Callable[[bytes], View | None]], ...] = (
    (b"\x1b", _without_sequences),
    (b"\xc2\x9b", _removed(_C1_SEQUENCES)),
    (None, _without_spans(_unshown_spans)),
    (None, _without_latin),
    (b"\0", _removed(_HALVES)),
    (b"\x08", _without_spans(_overstruck)),
    (b"=", _without_spans(_soft_breaks)),
    (None, _without_controls),
)
"""Each with a byte that is in whatever it is about."""
