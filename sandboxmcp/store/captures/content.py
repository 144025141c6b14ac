"""What is given to the store: bytes, text or a file, read as bytes in pieces; UTF-16 with its mark as UTF-8.

Lines, masks and terminals all go by bytes of ASCII, so that what Windows programs write in UTF-16 would be neither found nor
shown, nor would a credential in it be masked.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sandboxmcp.core.errors import StoreError, UsageError

_PIECE = 1 << 20
SAMPLE_BYTES = 8 << 10
"""So much of the beginning tells a text from binary data."""
_BLANKS = "\t\n\f\r\x1b"
_NO_TEXT = frozenset(("Cc", "Cn", "Co", "Cs"))
_WRITTEN_WITH_CJK = frozenset(("HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA", "FULLWIDTH", "HALFWIDTH"))


class Content:
    """Readable more than once, never held in memory when it is a file."""

    def __init__(
        self, given: bytes | str | Path, mask: Callable[[Iterable[bytes]], Iterator[bytes]] | None = None, *, text: bool = True
    ) -> None:
        """Looks at a path, reads nothing yet. `mask` rewrites what is read; `text` says that it is to be read by people.

        Raises:
            UsageError: a path that is not a regular file; a pipe or a device might never end.
        """
        self._mask = mask
        self._text = text
        self.shrunk = 0
        """Bytes that the mask, or another encoding, took away when the pieces were last read."""
        self._path = given if isinstance(given, Path) else None
        # A text may carry surrogates: bytes that were not UTF-8 where it came from.
        self._data = (
            given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given if isinstance(given, bytes) else b""
        )
        self._size = len(self._data)
        if self._path is not None:
            try:
                status = self._path.stat()
            except (OSError, ValueError) as error:
                raise _unreadable(self._path, error) from None
            self._size = status.st_size
            if not stat.S_ISREG(status.st_mode):
                raise UsageError(f"{self._path} is not a regular file", "Give a file, or the text itself.")

    def pieces(self) -> Iterator[bytes]:
        """The bytes, masked, in order. Raises as `raw_pieces` does."""
        self.shrunk = 0
        given = _as_utf8(self._counted(), self._size) if self._text else self._counted()
        for piece in given if self._mask is None else self._mask(given):
            self.shrunk -= len(piece)
            yield piece

    def _counted(self) -> Iterator[bytes]:
        for piece in self.raw_pieces():
            self.shrunk += len(piece)
            yield piece

    def raw_pieces(self) -> Iterator[bytes]:
        """The bytes as they were given, in order.

        Raises:
            UsageError: the file cannot be read (any more).
        """
        if self._path is None:
            yield self._data
            return
        try:
            with self._path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
        except OSError as error:
            raise _unreadable(self._path, error) from None

    def digest(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        return _digest(self.pieces())

    def raw_digest(self) -> str:
        return _digest(self.raw_pieces())

    def finish(self, consume: bool) -> None:
        """Deletes the file if it was given to be consumed."""
        if consume and self._path is not None:
            self._path.unlink(missing_ok=True)


class RawCopies:
    """What was captured before it was masked: private files that only the user opens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, handle: str, given: Content, kept: str) -> None:
        """Copy the content if what was kept of it (a digest) is something else.

        Raises:
            StoreError: it cannot be written.
        """
        if given.raw_digest() == kept:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(self._folder / handle, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.writelines(given.raw_pieces())
        except OSError as error:
            what = f"{self._folder} cannot be written: {error.strerror}"
            raise StoreError(what, "Free some space, or unset capture.raw.") from None

    def forget(self, handles: Iterable[str]) -> None:
        for handle in handles:
            (self._folder / handle).unlink(missing_ok=True)


def is_utf16(beginning: bytes, size: int) -> bool:
    """Is this the beginning of a text of `size` bytes in UTF-16 with a byte order mark? Binary data may begin alike.

    Such data rarely decode, and read as text they are of characters from everywhere. Half of a character at the end is more
    likely theirs than that of a text that was cut: then nothing may be odd.
    """
    if not beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    try:
        text = codecs.getincrementaldecoder("utf-16")().decode(beginning[:SAMPLE_BYTES])
    except UnicodeDecodeError:
        return False
    return _oddness(text) <= (0 if size % 2 else 0.5)


def _oddness(text: str) -> float:
    """0: letters of one script and nothing that is no text; 1: a hundredth is none, or every letter is of another script."""
    no_text = sum(character not in _BLANKS and unicodedata.category(character) in _NO_TEXT for character in text)
    scripts = Counter(_script(character) for character in text if character.isalpha())
    strangers = 1 - max(scripts.values()) / scripts.total() if scripts else 0.0
    return max(100 * no_text / max(len(text), 1), strangers)


def _script(letter: str) -> str:
    """The first word of its name; what is written together in East Asia as one."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if name in _WRITTEN_WITH_CJK else name


def _as_utf8(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    decoder: codecs.IncrementalDecoder | None = None
    first = True
    for piece in pieces:
        if first and is_utf16(piece, size):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        first = False
        yield piece if decoder is None else decoder.decode(piece).encode()
    if decoder is not None and (rest := decoder.decode(b"", True)):
        yield rest.encode()


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(
        f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", "Give a file that exists and is readable."
    )
