"""A file that only takes up room, so that a full disk leaves enough of it to delete something.

SQLite writes before it frees: the pages that a deletion changes go to the write-ahead log first. On a disk that has plenty there
is no such file.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_BYTES = 8 << 20
_SCARCE = 512 << 20
"""A disk with less than this free gets the file."""
_FULL = 2 << 20
"""With less than this free even a small transaction may fail."""


class Reserve:
    """Some room on the disk of a store. Several processes may share one; none of its functions raises."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def hold(self) -> None:
        """Sets the room aside if the disk is getting full and still has it."""
        if not self._path.exists() and _BYTES + _FULL < self.free() < _SCARCE:
            with contextlib.suppress(OSError):
                descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    os.posix_fallocate(descriptor, 0, _BYTES)
                except (OSError, AttributeError):  # macOS has no such call
                    self._path.unlink()
                finally:
                    os.close(descriptor)

    def release(self) -> bool:
        """Gives the room back if the disk is full; says whether it did."""
        if self.free() >= _FULL:
            return False
        with contextlib.suppress(OSError):
            self._path.unlink()
            return True
        return False

    def free(self) -> int:
        """Bytes that may still be written; as many as you like where that cannot be known."""
        try:
            disk = os.statvfs(self._path.parent)
        except (OSError, AttributeError):  # Windows has no statvfs
            return 1 << 62
        return disk.f_bavail * disk.f_frsize
