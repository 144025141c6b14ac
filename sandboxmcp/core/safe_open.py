"""Reads a small regular file, and nothing else: where one is expected, a repository may carry a link to a device or to standard
input, and a script may make a pipe that never ends.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 1 << 20


def read_regular(file: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """What is in it; links are followed, and nothing is waited for.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than `most_bytes`; `strerror` says which.
    """
    fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as opened:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        content = opened.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 20} MiB")
    return content
