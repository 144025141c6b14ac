"""Captures on their way to chunks: small ones are cut where they are asked for, large ones and those from outside by a worker.

This happens before anything is written, so that no content, however slow it is to understand, holds up whoever else writes. What
a worker has cut lies in a file without a name until it is written to the index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

from sandboxmcp.store.captures.captures import Capture, Captures
from sandboxmcp.store.chunking.cutting import Cut, cut, unpacked
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.readers.worker import Lost, Workers

SMALL_BYTES = 128 << 10
"""So much is cut in the process that asks: the start of another one would take longer."""
_CPU_S, _CPU_S_PER_MB = 30.0, 3.0
"""Processor time of a worker; ordinary texts take a quarter of a second for each megabyte."""
_IN_MEMORY = 4 << 20
"""Of a text of so many bytes, what a worker has cut takes no room on a disk that may be nearly full."""
_MOST_BYTES = 1 << 30
"""What a worker writes of one text: JSON has more of itself when it is laid out."""

Watched = Callable[[Iterable[bytes]], Iterator[bytes]]
"""Hands on a stream of bytes; may end it by raising."""


class Cuts:
    """What became of a text. Close it."""

    def __init__(self, cuts: Sequence[Cut] = (), file: BinaryIO | None = None, *, plain: bool = False) -> None:
        self._cuts = cuts
        self._file = file
        self.plain = plain
        """It, or its rest, was cut as plain lines, since its structure could not be read within the limits."""

    def __iter__(self) -> Iterator[Cut]:
        yield from self._cuts
        if self._file is not None:
            self._file.seek(0)
            for line in self._file:
                yield from unpacked(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Cutter:
    """Cuts captures."""

    def __init__(self, workers: Workers, captures: Captures) -> None:
        self._workers = workers
        self._captures = captures

    def cut(
        self,
        capture: Capture,
        parts: Sequence[tuple[int, int]],
        form: Form | None,
        *,
        outside: bool = False,
        watched: Watched = iter,
    ) -> Cuts:
        """Those parts of a capture, which are byte ranges, as chunks; without a form it has none.

        `outside`: nobody here wrote it, so that a worker reads it even if it is small.

        Raises:
            StoreError: the capture cannot be read, or the disk is full. Whatever `watched` raises.
        """
        size = sum(stop - start for start, stop in parts)
        if form is None or not size:
            return Cuts()
        if size <= SMALL_BYTES and not outside:
            return _cut_here(capture, parts, form, watched)
        for one in (form, "plain"):
            try:
                file, plain = self._cut_by_worker(capture, parts, one, size, watched)
                return Cuts(file=file, plain=plain or one != form)
            except Lost:
                continue
        return _cut_here(capture, parts, "plain", watched)

    def _cut_by_worker(
        self, capture: Capture, parts: Sequence[tuple[int, int]], form: str, size: int, watched: Watched
    ) -> tuple[BinaryIO, bool]:
        """The file with the chunks; and whether the text was too finely divided, so that a part of it is plain lines."""
        file = _in_memory() if size <= _IN_MEMORY else self._captures.scratch()
        plain = False
        try:
            for start, stop in parts:
                reply = self._workers.run(
                    {"order": "cut", "form": form, "first": capture.line_at(start)},
                    watched(capture.read(start, stop)),
                    file,
                    cpu_s=_CPU_S + _CPU_S_PER_MB * size / 1e6,
                    most_bytes=_MOST_BYTES,
                )
                plain |= reply.get("plain") is True
        except BaseException:
            file.close()
            raise
        return file, plain


def _in_memory() -> BinaryIO:
    return os.fdopen(os.memfd_create("sandboxmcp-cut"), "w+b")


def _cut_here(capture: Capture, parts: Sequence[tuple[int, int]], form: Form, watched: Watched) -> Cuts:
    def cuts(form: Form) -> Cuts:
        found, plain = list[Cut](), False
        for start, stop in parts:
            steps = Steps()
            found += cut(watched(capture.read(start, stop)), capture.line_at(start), form, steps)
            plain |= steps.is_plain
        return Cuts(found, plain=plain)

    try:
        return cuts(form)
    except (ArithmeticError, LookupError, RecursionError, MemoryError, TypeError, ValueError):  # a reader that failed
        return Cuts(list(cuts("plain")), plain=True)
