"""The store's folders on disk: made private, flushed, and their troubles told with the fix."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from sandboxmcp.core.database import DISK_FULL_FIX
from sandboxmcp.core.errors import DiskFull, ReadOnlyStore, StoreError

_FIX = "Make the folder writable, or set SANDBOXMCP_DATA_DIR to another one."


def prepare_folder(folder: Path) -> None:
    """Makes a private folder.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def flush_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    with contextlib.suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def unwritable(folder: Path, error: OSError) -> StoreError:
    """What to raise when writing under a folder of the store failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"The disk of {folder} is full", DISK_FULL_FIX)
    kind = ReadOnlyStore if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) else StoreError
    return kind(f"{folder} cannot be written: {error.strerror or error}", _FIX)
