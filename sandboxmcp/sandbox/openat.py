"""Files reached from an open folder, name by name and never through a link, as openat(2) has it.

Scripts may run: whatever is reached by a path could be something of the host's a moment later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened(folder: str | Path, inside: int | None = None) -> Iterator[int | None]:
    """A folder; None: there is none."""
    try:
        fd = os.open(folder, FOLDER, dir_fd=inside)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ELOOP):
            raise
        fd = None
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def reader(folder: int, name: str) -> BinaryIO:
    """A regular file of an open folder.

    Raises:
        OSError: it cannot be opened. ValueError: it is none, or nobody may read it.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EACCES):  # a link, a socket, a deletion
            raise ValueError(f"{name} is no regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{name} is no regular file")
    return os.fdopen(fd, "rb")


@contextlib.contextmanager
def way_to(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The open folder that a path lies in, and its last name.

    Raises:
        OSError: a folder on the way is none, or a link.
    """
    *folders, leaf = path.split("/")
    with contextlib.ExitStack() as held:
        folder = root
        for name in folders:
            folder = os.open(name, FOLDER, dir_fd=folder)
            held.callback(os.close, folder)
        yield folder, leaf
