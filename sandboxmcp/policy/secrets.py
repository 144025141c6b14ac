"""Credentials in captured output, masked before anything is stored, indexed or returned: by shapes that packs describe.

Lines stay lines, so that citations hold. Not covered: a secret that is split over lines (private keys apart), encoded once more,
or of no known shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_BLOCK = 1 << 20
_HELD = 64 << 10
"""Bytes at the end of a line without end, or of a private key without end, that wait for what follows."""
LONGEST_REPEAT = 300
"""Letters that a bounded repetition in a shape may take; lines are short and looked at one by one."""
_FILLER = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ"
_IN_RUN = re.compile(rb"[\w.~+-]+")
_SHAPE_OF_RUNS = bytes(ord("x") if _IN_RUN.fullmatch(bytes([code])) else ord(" ") for code in range(256))
_SHORTEST_RUN = b"x" * 16
"""What no credential with an anchor in it is shorter than."""
_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_MARK = b"[redacted:private-key]"
_ENDS = re.compile(rb"[\s\"',;&]")
_PART = re.compile(r"<(\d+)([hAd]?)>")


@dataclass(frozen=True, eq=False)
class Shape:
    """One kind of credential. What is masked is the first named group of the pattern that matched, or all where there is none."""

    name: str
    anchors: tuple[str, ...]
    """One of them is in every text that the pattern matches; in small letters if `caseless`. One of letters, digits and `.~+-`
    alone is looked for only in runs of at least 16 of these."""
    pattern: str
    caseless: bool = False
    masked: tuple[str, ...] = ()
    """Texts in which something must be masked. `<20>` stands for 20 letters and digits, `<20h>` for hexadecimal ones, `<20A>` for
    capitals and digits, `<20d>` for digits."""
    kept: tuple[str, ...] = ()
    """Texts that must stay as they are."""

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        return re.compile(self.pattern.encode(), re.IGNORECASE if self.caseless else 0)

    @cached_property
    def raw_anchors(self) -> tuple[bytes, ...]:
        return tuple(anchor.encode() for anchor in self.anchors)

    @cached_property
    def mark(self) -> bytes:
        return f"[redacted:{self.name}]".encode()

    def mask(self, data: bytes) -> bytes:
        return self.compiled.sub(self._replaced, data)

    def _replaced(self, match: re.Match[bytes]) -> bytes:
        group = next((name for name in self.compiled.groupindex if match[name] is not None), None)
        if group is None:
            return self.mark
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        return match[0][:start] + self.mark + match[0][end:]


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

    Lines are looked at only where an anchor stands. Most anchors stand in a run of letters that is longer than words are, so one
    pass over the runs finds them all; the few others are searched one by one.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._order = {shape: number for number, shape in enumerate(shapes)}
        self._in_runs: dict[bytes, list[Shape]] = {}
        self._anywhere: dict[tuple[bytes, bool], list[Shape]] = {}
        for shape in shapes:
            for anchor in shape.raw_anchors:
                if _IN_RUN.fullmatch(anchor) and not shape.caseless:
                    self._in_runs.setdefault(anchor, []).append(shape)
                else:
                    self._anywhere.setdefault((anchor, shape.caseless), []).append(shape)

    def __call__(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The stream with as many line ends as before, in pieces that are cut where no credential is."""
        waiting = bytearray()
        for piece in pieces:
            waiting += piece
            if len(waiting) >= _BLOCK and (cut := _cut(waiting)):
                yield self.masked(bytes(waiting[:cut]))
                del waiting[:cut]
        if waiting:
            yield self.masked(bytes(waiting))

    def masked(self, data: bytes) -> bytes:
        """A text that is looked at as a whole."""
        if b"PRIVATE KEY" in data:
            data = _without_keys(data)
        found = self._found(data)
        if not found:
            return data
        pieces: list[bytes] = []
        at = 0
        for start in sorted(found):
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            line = data[start:end]
            for shape in sorted(found[start], key=self._order.__getitem__):
                line = shape.mask(line)
            pieces += [data[at:start], line]
            at = end
        return b"".join([*pieces, data[at:]])

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """What `masked` would replace, as starts and ends, for whoever must keep the length; they may overlap."""
        at = 0
        while (begin := _BEGIN.search(data, at)) is not None:
            end = _END.search(data, begin.end())
            at = end.start() if end else len(data)
            yield begin.end(), at
        for start, shapes in self._found(data).items():
            stop = data.find(b"\n", start)
            for shape in shapes:
                for match in shape.compiled.finditer(data, start, len(data) if stop < 0 else stop):
                    group = next((name for name in shape.compiled.groupindex if match[name] is not None), 0)
                    yield match.span(group)

    def text(self, text: str) -> str:
        """The same for a text."""
        return self.masked(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def _found(self, data: bytes) -> dict[int, set[Shape]]:
        """The starts of the lines that hold anchors, each with the shapes that these belong to."""
        found: dict[int, set[Shape]] = {}
        for start, end in _runs(data):
            text = data[start:end]
            shapes = [shape for anchor, those in self._in_runs.items() if anchor in text for shape in those]
            if shapes:
                found.setdefault(data.rfind(b"\n", 0, start) + 1, set()).update(shapes)
        small = data.lower()
        for (anchor, caseless), shapes in self._anywhere.items():
            hay = small if caseless else data
            at = hay.find(anchor)
            while at >= 0:
                found.setdefault(data.rfind(b"\n", 0, at) + 1, set()).update(shapes)
                at = data.find(b"\n", at)
                at = hay.find(anchor, at) if at >= 0 else -1
        return found


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the runs of letters that are long enough begin and end: found as one text, ten times as fast as by a pattern."""
    shape = data.translate(_SHAPE_OF_RUNS)
    start = shape.find(_SHORTEST_RUN)
    while start >= 0:
        end = shape.find(b" ", start)
        end = len(shape) if end < 0 else end
        yield start, end
        start = shape.find(_SHORTEST_RUN, end)


def _cut(waiting: bytearray) -> int:
    """How much can be looked at now: whole lines, before a private key that has not ended; 0: wait for more."""
    cut = waiting.rfind(b"\n") + 1
    if not cut:
        floor = len(waiting) - _HELD
        blanks = [match.end() for match in _ENDS.finditer(waiting, floor)]
        cut = blanks[-1] if blanks else floor
    begun = [match.start() for match in _BEGIN.finditer(waiting, max(0, cut - _HELD), cut)]
    if begun and not _END.search(waiting, begun[-1], cut) and begun[-1]:
        return begun[-1]
    return cut


def _without_keys(data: bytes) -> bytes:
    """Private keys in PEM: the lines between their marks, or up to 64 KiB where the end is missing."""
    pieces: list[bytes] = []
    at = 0
    while (begin := _BEGIN.search(data, at)) is not None:
        end = _END.search(data, begin.end())
        stop = end.start() if end else min(len(data), begin.end() + _HELD)
        pieces += [data[at : begin.end()], _blanked(data[begin.end() : stop])]
        at = stop
    return b"".join([*pieces, data[at:]])


def _blanked(body: bytes) -> bytes:
    """Every line of a key's body as a mark; where the key stands in a text with `\\n` written out it is one."""
    return b"\n".join(_KEY_MARK if line.strip() else line for line in body.split(b"\n"))
