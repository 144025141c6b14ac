"""Reads a small regular file, and nothing else: where one is expected, a repository may carry a link to a device or to standard
input, and a script may make a pipe that never ends.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 1 << 20


def read_regular(file: Path) -> bytes:
    """What is in it; links are followed, and nothing is waited for.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than 1 MiB; `strerror` says which.
    """
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB")
    return content
