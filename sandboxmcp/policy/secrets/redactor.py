"""Credentials in captured output, masked before anything is stored, indexed or returned: by shapes that packs describe.

They are found as the text was written, as a terminal shows it, and with what encoders did to it undone (see views). Lines stay
lines, so that citations hold. Not covered: a secret of no known shape, one that is split over lines (private keys and
quoted-printable apart), and whole texts in base64, compressed, or as a hex dump.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import quote

from sandboxmcp.policy.patterns import beginnings, unconditional
from sandboxmcp.policy.secrets import credential_layouts, private_keys
from sandboxmcp.policy.secrets.credential_tables import Found, Table, table_spans
from sandboxmcp.policy.secrets.views import as_shown, decoded, wholly_shown

_BLOCK = 1 << 20
_AHEAD = private_keys.LONGEST + (8 << 10)
"""Bytes behind a block that are looked at with it: a credential that begins in the block ends there."""
_BEHIND = 8 << 10
"""Bytes before a block that are looked at with it, for what must stand before a credential."""
_REACH = 4 << 10
"""Bytes of a line around an anchor in which a credential lies."""
_LONGEST = 64 << 10
"""Bytes of one credential, when it goes on and on."""
_DEEPEST = 8
"""Encodings upon each other that are undone; what is deeper, and has an anchor in it, is masked whole."""
MASKED = "[redacted:"
"""What every mark begins with."""
LONGEST_REPEAT = 300
"""Letters that a bounded repetition in a shape may take; lines are short and looked at one by one."""
_FILLER = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
_SURELY_ENCODED = (
    b"x1b[",
    b"u001b[",
    b"033[",
    b"\\e[",
    b"x1b]",
    b"u001b]",
    b"1b%5b",
    b"%25",
    b"\\/",
    b"&amp;q",
    b"&amp;#",
    b"&amp;l",
    b"^[[",
    b"[m",
    b"[0m",
    b"[1m",
    b"[01;3",
    b"m-bm-^",
    b"\\x",
    b"\\u",
    b"&#",
    b"&lowbar;",
    b"&underbar;",
    b"&hyphen;",
    b"&dash;",
    b"&period;",
    b"&shy;",
    b"&zw",
    b"&zerowidth",
    b"\\_",
    b"\\-",
    b"\\.",
    *(b"\\%03o" % code for code in range(0x2D, 0x7B)),
    *(b"=%02x" % code for code in b"-._"),
    *(b"=%02x=" % code for code in (0xC2, 0xCC, 0xCD, 0xE1, 0xE2, 0xEF, 0xF0, 0xF3)),
    *(b"%%%02x" % code for code in (*b"-._", *range(0x30, 0x3A), *range(0x41, 0x5B), *range(0x61, 0x7B))),
    *(b"%%%02x%%" % code for code in (0xC2, 0xCC, 0xCD, 0xE1, 0xE2, 0xEF, 0xF0, 0xF3)),
    b"%u",
    b"\\n{",
)
"""Colours and invisible characters that are written out and may stand within what is looked for, letters of it that are encoded
though they need not be, and what was encoded twice: there the encoding is undone whatever else is found."""
_MEANT = re.compile(
    rb"\[m[\w\[.~-]|\\(?:x[0-9a-fA-F]{2}|[uU](?:[0-9a-fA-F]{4}|\{)|[/_.-][\w\\%&=])|%u[0-9a-fA-F]{4}|&#[xX]?[0-9a-fA-F]+;|[^\[\\%&]"
)
"""Marks of two letters that are meant as such."""
_PLAIN_RUN = re.compile(rb"[\w.~-]+")
_RUN_ENOUGH = 4
_FEW_HITS = 24
"""Places in some kilobytes that are no text at which it is tried whether there could be a credential."""
_KEY_MARK = b"[redacted:private-key]"
_DEEP_MARK = b"[redacted:encoded]"
_NAMED_MARK = b"[redacted:named-secret]"
_PART = re.compile(r"<(\d+)([hAd]?)>")

Tables = list[tuple[int, int, Table]]
_Span = tuple[int, int, int]
"""Where something that is to be masked begins and ends, and which mark it gets."""


@dataclass(frozen=True, eq=False)
class Shape:
    """One kind of credential. What is masked is the first named group of the pattern that matched, or all where there is none."""

    name: str
    anchors: tuple[str, ...]
    """One of them is in every text that the pattern matches; in small letters if `caseless`. Looked for only where the pattern
    itself does not say how its matches begin."""
    pattern: str
    caseless: bool = False
    masked: tuple[str, ...] = ()
    """Texts in which something must be masked. `<20>` stands for 20 letters and digits, `<20h>` for hexadecimal ones, `<20A>` for
    capitals and digits, `<20d>` for digits."""
    kept: tuple[str, ...] = ()
    """Texts that must stay as they are."""
    is_loose: bool = False
    """Whether the pattern is taken without its conditions about the characters around."""

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        flags = re.IGNORECASE if self.caseless else re.NOFLAG
        return (unconditional if self.is_loose else re.compile)(self.pattern.encode(), flags)

    @cached_property
    def beginnings(self) -> frozenset[bytes]:
        """What every match begins with, in small letters; empty when anchors must be looked for."""
        return frozenset(text.encode() for text in beginnings(self.pattern))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(self.compiled.groupindex)

    @cached_property
    def mark(self) -> bytes:
        return f"[redacted:{self.name}]".encode()

    def masked_in(self, match: re.Match[bytes]) -> tuple[int, int]:
        """The range of a match that is masked."""
        return match.span(next((name for name in self.groups if match[name] is not None), 0))


def example_text(example: str) -> bytes:
    """An example with its `<20>` written out, so that no file of ours holds what looks like a credential."""

    def written(match: re.Match[str]) -> str:
        letters = {"h": "0f1e2d3c4b5a6978", "A": "A1B2C3D4E5F6G7H8", "d": "1029384756"}.get(match[2], _FILLER)
        return (letters * (int(match[1]) // len(letters) + 1))[: int(match[1])]

    return _PART.sub(written, example).encode()


def shape_problem(shape: Shape) -> str:
    """What is wrong with a shape by its own examples; empty when nothing is."""
    redactor = Redactor([shape])
    for example in shape.masked:
        if shape.mark not in redactor.masked(example_text(example)):
            return f"{example!r} is not masked"
    for example in shape.kept:
        if redactor.masked(example_text(example)) != example_text(example):
            return f"{example!r} is masked"
    return ""


class Redactor:
    """Masks credentials in bytes and in streams of bytes. Holds no state between streams.

    One pass over the bytes, in small letters, finds every place where a credential can begin (Aho and Corasick, 1975); a pattern
    is tried only there.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        from ahocorasick_rs import BytesAhoCorasick, Implementation  # packs without shapes are read in each call of a hook

        self._shapes = tuple(shapes)
        self._is_loose = False
        self._marks = [_KEY_MARK, _DEEP_MARK, *(shape.mark for shape in shapes), _NAMED_MARK]
        words = (*private_keys.WORDS, *credential_layouts.WORDS)
        keys: dict[bytes, tuple[list[int], list[int]]] = {word: ([], []) for word in words}
        self._names = range(len(private_keys.WORDS), len(words))
        for number, shape in enumerate(shapes):
            for text in shape.beginnings or (anchor.lower().encode() for anchor in shape.anchors):
                keys.setdefault(text, ([], []))[not shape.beginnings].append(number)
        for text in [*_SURELY_ENCODED, *(written for key in list(keys) for written in _as_encoded(key))]:
            keys.setdefault(text, ([], []))
        self._tried = list(keys.values())
        self._finder = BytesAhoCorasick(list(keys), implementation=Implementation.DFA)

    def __call__(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The stream with as many line ends as before. However it is cut into pieces, what comes out is the same."""
        for block, spans in self._blocks(pieces):
            yield self._applied(block, spans) if spans else block

    def masked(self, data: bytes) -> bytes:
        """A text that is looked at as a whole."""
        return b"".join(self([data]))

    def text(self, text: str) -> str:
        """The same for a text."""
        return self.masked(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def spans(self, data: bytes) -> list[tuple[int, int]]:
        """The ranges of bytes that are masked, in order and apart. One may hold line ends, which masking leaves."""
        found: list[tuple[int, int]] = []
        offset = 0
        for block, spans in self._blocks([data]):
            found += [(offset + start, offset + end) for start, end, _ in spans]
            offset += len(block)
        return found

    def _blocks(self, pieces: Iterable[bytes]) -> Iterator[tuple[bytes, list[_Span]]]:
        """The stream in blocks that are cut where no credential is, by its content alone; each with what is to be masked in it."""
        waiting = bytearray()
        done = 0
        table: Table | None = None
        for piece in pieces:
            waiting += piece
            while len(waiting) >= done + _BLOCK + _AHEAD:
                window = bytes(memoryview(waiting)[: done + _BLOCK + _AHEAD])
                spans, tables = self._merged(window, done, table)
                cut = _cut(spans, done, done + _BLOCK)
                table = next((one for start, end, one in tables if start < cut <= end), None)
                yield window[done:cut], _between(spans, done, cut)
                before = max(0, cut - _BEHIND)
                del waiting[:before]
                done = cut - before
        if len(waiting) > done:
            window = bytes(waiting)
            yield window[done:], _between(self._merged(window, done, table)[0], done, len(window))

    def _applied(self, block: bytes, spans: Iterable[_Span]) -> bytes:
        pieces: list[bytes] = []
        at = 0
        for start, end, mark in spans:
            pieces += [block[at:start], _blanked(block[start:end], self._marks[mark])]
            at = end
        return b"".join([*pieces, block[at:]])

    def _merged(self, window: bytes, done: int, table: Table | None) -> tuple[list[_Span], Tables]:
        """What is to be masked behind `done`, in order and apart; where several shapes overlap, the mark is the first one's.

        The table goes on there. Returned are also the tables of the window.
        """
        tables: Tables = []
        found = self._found(window, 0, tables)
        if table is not None:
            row = window.rfind(b"\n", 0, done) + 1
            going_on = table_spans(window, (), table, row)
            found += [(start, end, len(self._marks) - 1) for start, end in going_on.spans]
            tables += going_on.tables
        merged: list[_Span] = []
        for start, end, mark in sorted(found):
            if end <= done:
                continue
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]), min(mark, merged[-1][2]))
            else:
                merged.append((max(start, done), end, mark))
        return merged, tables

    def _found(self, text: bytes, depth: int, tables: Tables | None = None) -> list[_Span]:
        """What is to be masked, in any order: as it is written, and as it is shown. Tables are added to those given."""
        found = self._written(text, depth, tables)
        for offset, view in as_shown(text, self._holds):
            if b"PRIVATE" in view.text and (whole := wholly_shown(text)) is not None:  # a key may go over several parts
                return found + [(*whole.source(start, end), mark) for start, end, mark in self._written(whole.text, depth)]
            spans = ((*view.source(start, end), mark) for start, end, mark in self._written(view.text, depth))
            found += [(offset + start, offset + end, mark) for start, end, mark in spans]
        return found

    def _holds(self, text: bytes) -> bool:
        """Whether there could be something to mask in a text if other characters stood around it; in doubt there could."""
        if self._is_loose:
            return True
        hits = self._hits(text)
        return len(hits) > _FEW_HITS or bool(self._loose._at_hits(text, hits, 0))

    @cached_property
    def _loose(self) -> Redactor:
        """The same without what shapes say about the characters around."""
        loose = copy(self)
        loose._is_loose = True
        loose._shapes = tuple(replace(shape, is_loose=True) for shape in self._shapes)
        return loose

    def _hits(self, text: bytes) -> list[tuple[int, int, int]]:
        """Which of what is looked for stands where. A colour with its escape is none: the terminal's view takes it out."""
        lowered = text.lower()
        if b"\x1b[" in lowered:
            lowered = lowered.replace(b"\x1b[", b"\x1b\x1b")
        found = self._finder.find_matches_as_indexes(lowered, overlapping=True)
        return [(key, start, end) for key, start, end in found if _is_meant(text, start, end)]

    def _written(self, text: bytes, depth: int, tables: Tables | None = None) -> list[_Span]:
        hits = self._hits(text)
        if not hits:
            return []
        named = self._named(text, hits)
        if tables is not None:
            tables += named.tables
        last = len(self._marks) - 1
        return self._at_hits(text, hits, depth) + [(start, end, last) for start, end in named.spans]

    def _named(self, text: bytes, hits: Iterable[tuple[int, int, int]]) -> Found:
        """What keys name that stand elsewhere."""
        words = [(start, end) for key, start, end in hits if key in self._names]
        found = table_spans(text, words)
        found.spans.extend(credential_layouts.values(text, words))
        return found

    def _at_hits(self, text: bytes, hits: Iterable[tuple[int, int, int]], depth: int) -> list[_Span]:
        found: list[_Span] = []
        ends = [0] * len(self._shapes)
        around: dict[int, list[list[int]]] = {}
        lines: list[list[int]] = []
        speaks_of_keys = False
        for key, start, end in hits:
            at_start, near = self._tried[key]
            speaks_of_keys = speaks_of_keys or key < len(private_keys.WORDS)
            for number in at_start:
                if start >= ends[number] and (span := self._tried_at(number, text, start)):
                    found.append(span)
                    ends[number] = span[1]
            if not lines or end > lines[-1][1]:
                _join(lines, *_line_around(text, start, end))
            for number in near:
                places = around.setdefault(number, [])
                if not places or end > places[-1][1]:
                    _join(places, *_line_around(text, start, end))
        if speaks_of_keys:
            found += [(start, end, 0) for start, end in private_keys.bodies(text)]
        for number, places in around.items():
            shape = self._shapes[number]
            found += [(*shape.masked_in(match), number + 2) for lo, hi in places for match in shape.compiled.finditer(text, lo, hi)]
        for lo, hi in lines:
            found += self._encoded(text, lo, hi, depth)
        return found

    def _tried_at(self, number: int, text: bytes, start: int) -> _Span | None:
        shape = self._shapes[number]
        reach = start + _REACH
        line_end = text.find(b"\n", start, reach)
        match = shape.compiled.match(text, start, line_end if line_end >= 0 else reach)
        if match is None:
            return None
        if match.end() == reach:  # a long one is masked up to its end
            line_end = text.find(b"\n", reach, start + _LONGEST)
            match = shape.compiled.match(text, start, line_end if line_end >= 0 else start + _LONGEST) or match
        return (*shape.masked_in(match), number + 2)

    def _encoded(self, text: bytes, lo: int, hi: int, depth: int) -> list[_Span]:
        """What is to be masked in a part of a text once its encoding is undone."""
        view = decoded(text[lo:hi])
        if view is None:
            return []
        if depth == _DEEPEST:
            return [(lo, hi, 1)]
        spans = ((*view.source(start, end), mark) for start, end, mark in self._found(view.text, depth + 1) if end > start)
        return [(lo + start, lo + end, mark) for start, end, mark in spans]


def _is_meant(text: bytes, start: int, end: int) -> bool:
    """Whether a mark of an encoding is followed by what makes it one; the short ones stand in any text."""
    if end - start == 2:
        return _MEANT.match(text, start) is not None
    return text[start] != 0x3D or end - start > 4 or text[start:end].upper() == text[start:end]


def _as_encoded(key: bytes) -> Iterator[bytes]:
    """What of a text stands in all its encodings, or what these are: where it is found, the encoding is undone."""
    longest = max(_PLAIN_RUN.findall(key), key=len, default=b"")
    if longest == key:
        return
    if len(longest) >= _RUN_ENOUGH:
        yield longest
        return
    forms = {key}
    for _ in range(2):
        forms |= {form for one in forms for form in _encoded_once(one)}
    yield from (form.lower() for form in forms)


def _encoded_once(text: bytes) -> Iterator[bytes]:
    """A text as encoders write it that leave letters and digits alone."""
    yield quote(text, safe="").encode()
    yield quote(text, safe="/").encode()
    yield quote(text, safe="/").encode().replace(b"%20", b"+")
    yield html.escape(text.decode()).encode()
    for form in (b"\\u00%02x", b"\\x%02x", b"&#x%02x;", b"=%02x"):
        yield re.sub(rb"[=&<>/\"':? ]", lambda match, form=form: form % match[0][0], text)  # type: ignore[misc]


def _line_around(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The line of an anchor, as much of it as a credential could reach."""
    floor, ceiling = max(0, start - _REACH), end + _REACH
    newline = text.find(b"\n", end, ceiling)
    return text.rfind(b"\n", floor, start) + 1 or floor, newline if newline >= 0 else min(ceiling, len(text))


def _join(places: list[list[int]], lo: int, hi: int) -> None:
    """Adds a place to those before it; with one that it touches it becomes one."""
    if places and lo <= places[-1][1]:
        places[-1][1] = max(places[-1][1], hi)
    else:
        places.append([lo, hi])


def _cut(spans: Iterable[_Span], done: int, cut: int) -> int:
    """Where a block ends: where it should, or before or behind what is to be masked there."""
    for start, end, _ in spans:
        if start < cut < end:
            return start if start > done else end
    return cut


def _between(spans: Iterable[_Span], start: int, end: int) -> list[_Span]:
    """Those in a block, counted from its beginning."""
    return [(first - start, last - start, mark) for first, last, mark in spans if first < end]


def _blanked(body: bytes, mark: bytes) -> bytes:
    """A mark for what is masked; where that goes over lines, one in each."""
    return b"\n".join(mark if line.strip() else line for line in body.split(b"\n")) if b"\n" in body else mark
