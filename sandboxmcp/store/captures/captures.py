"""Captured bytes on disk: one compressed file per content, readable by line range without inflating the whole.

A file is a chain of independent zstandard frames, one per 256 KiB of content, then the block index inside a skippable frame
(RFC 8878, 3.1.2), so that `zstd -d` restores the content from the file alone:

    frame … frame | magic, length | (offset, newlines before) per block | block size, blocks, bytes, newlines, ends in "\\n"

Files are named by the SHA-256 of their content, written under a temporary name, renamed, flushed; mode 0600, folders 0700.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from sandboxmcp.core.errors import StoreError
from sandboxmcp.store.captures.disk import prepare_folder, unwritable
from sandboxmcp.store.captures.incoming import DRAFT

_BLOCK = 256 << 10
_LEVEL = 3
_FRAME = struct.Struct("<II")
_SKIPPABLE = 0x184D2A5E
_ENTRY = struct.Struct("<QQ")
_TRAILER = struct.Struct("<IIQQB4s")
_MARK = b"SMC1"


@dataclass(frozen=True, slots=True)
class Draft:
    """A capture that is written in full under a temporary name, not yet part of the store."""

    path: Path
    digest: str
    bytes: int
    lines: int


class Captures:
    """The folder of captures. Reference counting is the store's business."""

    def __init__(self, folder: Path, drafts: Callable[[], Path] | None = None) -> None:
        """`drafts` gives a folder on the same disk for what is being written; without it that is the folder itself."""
        self._folder = folder
        self._drafts = drafts or (lambda: folder)

    def write(self, pieces: Iterable[bytes]) -> Draft:
        """The content compressed; memory is one block, whatever the size.

        Raises:
            StoreError: the folder is not writable or the disk is full. Nothing stays behind.
        """
        path: Path | None = None
        try:
            prepare_folder(self._folder)
            descriptor, name = tempfile.mkstemp(prefix=DRAFT, dir=self._drafts())
            path = Path(name)
            with os.fdopen(descriptor, "wb") as file:
                digest, size, lines = _compress(pieces, file)
        except BaseException as error:
            if path is not None:
                path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise unwritable(self._folder, error) from None
            raise
        return Draft(path, digest, size, lines)

    def scratch(self) -> BinaryIO:
        """An empty file without a name on the same disk, gone when it is closed.

        Raises:
            StoreError: the folder is not writable or the disk is full.
        """
        try:
            prepare_folder(self._folder)
            return cast("BinaryIO", tempfile.TemporaryFile(dir=self._drafts()))
        except OSError as error:
            raise unwritable(self._folder, error) from None

    def keep(self, draft: Draft) -> tuple[Path, ...]:
        """Gives the draft its final name. Called inside the write transaction that records it, so that no `delete` races it.

        Returns what must be flushed before the transaction is committed.
        """
        final = self.path(draft.digest)
        try:
            if final.exists():
                draft.path.unlink()
                return ()
            fresh = not final.parent.exists()
            final.parent.mkdir(mode=0o700, exist_ok=True)
            draft.path.rename(final)
            return (final, final.parent, *([self._folder] if fresh else []))
        except OSError as error:
            raise unwritable(self._folder, error) from None

    def digests(self) -> set[str]:
        """Those of all captures that are kept."""
        return {path.stem for path in self._folder.glob("??/*.zst")}

    def drop(self, draft: Draft) -> None:
        draft.path.unlink(missing_ok=True)

    def delete(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def path(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}.zst"

    @contextlib.contextmanager
    def open(self, digest: str) -> Iterator[Capture]:
        """The capture, open for reading.

        Raises:
            StoreError: the file is missing or damaged.
        """
        with self._opened(self.path(digest)) as capture:
            yield capture

    @contextlib.contextmanager
    def peek(self, draft: Draft) -> Iterator[Capture]:
        """The draft, open for reading before it has its name."""
        with self._opened(draft.path) as capture:
            yield capture

    @contextlib.contextmanager
    def _opened(self, path: Path) -> Iterator[Capture]:
        try:
            file = path.open("rb")
            with file:
                yield Capture(file)
        except (OSError, zstandard.ZstdError, struct.error) as error:
            raise StoreError(f"The capture {path} cannot be read: {error}", "Forget its source and capture it again.") from error


class Capture:
    """One open capture: its bytes by offset, its lines by number. Lines end at "\\n" of the raw bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end: int = file.seek(-_TRAILER.size, os.SEEK_END)
        self._block: int
        self._count: int
        self._newlines: int
        self.size: int
        self._block, self._count, self.size, self._newlines, self._complete, mark = _TRAILER.unpack(file.read(_TRAILER.size))
        if mark != _MARK:
            raise OSError("it has no block index")
        self._inflate = zstandard.ZstdDecompressor()

    @property
    def lines(self) -> int:
        return self._newlines + (self.size > 0 and not self._complete)

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to `stop` in pieces of at most one block."""
        stop = self.size if stop is None else min(stop, self.size)
        while start < stop:
            number, offset = divmod(start, self._block)
            piece = self._inflated(number)[offset : offset + stop - start]
            if not piece:
                raise OSError(f"block {number} is cut short")
            yield piece
            start += len(piece)

    def line_at(self, offset: int) -> int:
        """The number of the line that the byte at `offset` lies in."""
        number, within = divmod(min(offset, self.size - 1), self._block) if self.size else (0, 0)
        return 1 + self._newlines_before[number] + self._inflated(number)[:within].count(b"\n") if self.size else 1

    def offset_of(self, line: int) -> int:
        """Where a line starts; past the end for lines that do not exist."""
        if line <= 1:
            return 0
        if line > self.lines:
            return self.size
        number = bisect.bisect_left(self._newlines_before, line - 1) - 1
        block = self._inflated(number)
        position = -1
        for _ in range(line - 1 - self._newlines_before[number]):
            position = block.index(b"\n", position + 1)
        return number * self._block + position + 1

    def head_and_tail(self, head: int, tail: int) -> list[tuple[int, int]]:
        """Byte ranges: all of it, or so much of both ends, cut at line ends unless a line would cost half of them."""
        if self.size <= head + tail:
            return [(0, self.size)]
        begin = self.size - tail
        stop = self.offset_of(self.line_at(head))
        start = self.offset_of(self.line_at(begin - 1) + 1)
        return [(0, stop if stop * 2 > head else head), (start if start < begin + tail // 2 else begin, self.size)]

    def raw_lines(self, first: int = 1, last: int | None = None, keep: int | None = None) -> Iterator[tuple[int, bytes, int]]:
        """(number, bytes without "\\n", bytes cut off) of the lines from `first` to `last`, at most `keep` bytes of each."""
        number, line, cut = first, bytearray(), 0
        started = False
        for piece in self.read(self.offset_of(first)):
            parts = piece.split(b"\n")
            for index, part in enumerate(parts):
                if index:
                    yield number, bytes(line), cut
                    number, cut, started = number + 1, 0, False
                    line.clear()
                    if last is not None and number > last:
                        return
                started = started or bool(part)
                room = len(part) if keep is None else max(0, keep - len(line))
                line += part[:room]
                cut += len(part) - min(room, len(part))
        if started and (last is None or number <= last):
            yield number, bytes(line), cut

    @cached_property
    def _index(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        size = self._count * _ENTRY.size
        self._file.seek(self._end - size)
        entries = list(_ENTRY.iter_unpack(self._file.read(size)))
        return tuple(offset for offset, _ in entries), tuple(before for _, before in entries)

    @property
    def _newlines_before(self) -> tuple[int, ...]:
        return self._index[1]

    def _inflated(self, number: int) -> bytes:
        offsets = self._index[0]
        self._file.seek(offsets[number])
        end = offsets[number + 1] if number + 1 < self._count else self._end - self._count * _ENTRY.size - _FRAME.size
        return self._inflate.decompress(self._file.read(end - offsets[number]), max_output_size=self._block)


def _compress(pieces: Iterable[bytes], file: BinaryIO) -> tuple[str, int, int]:
    """Writes the whole file. Returns the digest, the bytes and the lines of the content."""
    squeeze = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    digest = hashlib.sha256()
    entries: list[tuple[int, int]] = []
    size = newlines = offset = 0
    complete = True
    for block in _blocks(pieces):
        digest.update(block)
        entries.append((offset, newlines))
        offset += file.write(squeeze.compress(block))
        size += len(block)
        newlines += block.count(b"\n")
        complete = block.endswith(b"\n")
    index = b"".join(_ENTRY.pack(*entry) for entry in entries)
    index += _TRAILER.pack(_BLOCK, len(entries), size, newlines, complete, _MARK)
    file.write(_FRAME.pack(_SKIPPABLE, len(index)) + index)
    return digest.hexdigest(), size, newlines + (not complete)


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        while len(waiting) >= _BLOCK:
            yield bytes(waiting[:_BLOCK])
            del waiting[:_BLOCK]
    if waiting:
        yield bytes(waiting)
