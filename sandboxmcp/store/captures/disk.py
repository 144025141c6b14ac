"""The store's folders on disk: made private, flushed, and their troubles told with the fix."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from sandboxmcp.core.database import disk_full_fix
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


def flush(paths: Iterable[Path]) -> None:
    """Makes files, and the names in folders, durable.

    Raises:
        StoreError: a file cannot be flushed; what it holds may not be on the disk.
    """
    for path in paths:
        folder = path.is_dir()
        try:
            descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            if not folder:  # Windows opens no folders
                raise unwritable(path, error) from None


def unwritable(folder: Path, error: OSError) -> StoreError:
    """What to raise when writing under a folder of the store failed."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"The disk of {folder} is full", disk_full_fix())
    kind = ReadOnlyStore if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM) else StoreError
    return kind(f"{folder} cannot be written: {error.strerror or error}", _FIX)
