"""What is given to the store: bytes, text or a file, read as bytes in pieces."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path

from sandboxmcp.core.errors import UsageError

_PIECE = 1 << 20


class Content:
    """Readable more than once, never held in memory when it is a file."""

    def __init__(self, given: bytes | str | Path) -> None:
        """Looks at a path, reads nothing yet.

        Raises:
            UsageError: a path that is not a regular file; a pipe or a device might never end.
        """
        self._path = given if isinstance(given, Path) else None
        # A text may carry surrogates: bytes that were not UTF-8 where it came from.
        self._data = (
            given.encode("utf-8", "surrogatepass") if isinstance(given, str) else given if isinstance(given, bytes) else b""
        )
        if self._path is not None:
            try:
                regular = stat.S_ISREG(self._path.stat().st_mode)
            except (OSError, ValueError) as error:
                raise _unreadable(self._path, error) from None
            if not regular:
                raise UsageError(f"{self._path} is not a regular file", "Give a file, or the text itself.")

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in order.

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
        digest = hashlib.sha256()
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest()

    def finish(self, consume: bool) -> None:
        """Deletes the file if it was given to be consumed."""
        if consume and self._path is not None:
            self._path.unlink(missing_ok=True)


def _unreadable(path: Path, error: Exception) -> UsageError:
    return UsageError(
        f"{path} cannot be read: {getattr(error, 'strerror', None) or error}", "Give a file that exists and is readable."
    )
