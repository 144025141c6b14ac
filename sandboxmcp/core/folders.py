"""Private folders for sockets and the like, outside our data: locked while their process lives, swept by the next one after that.

The lock is the operating system's, on the folder itself, and ends with the process however that ends. Numbers of processes would
not do: they are used again, and mean another process in another container that shares /tmp.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

_PREFIX = "sandboxmcp-run-"
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PrivateFolder:
    """A folder of mode 0700 below `base`, ours until `remove` or the end of this process. What dead processes left there goes."""

    def __init__(self, base: Path) -> None:
        """Raises: OSError, `base` cannot be written."""
        sweep(base)
        while (made := _locked(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base)))) is None:
            pass  # somebody swept it between its making and its locking
        self.path, self._fd = made

    def remove(self) -> None:
        """Safe to call twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _locked(path: Path) -> tuple[Path, int] | None:
    """The folder with its lock held; None when it is no longer the one at its path, or somebody else has the lock."""
    try:
        fd = os.open(path, _FLAGS)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.lstat(path)):
            return path, fd
    os.close(fd)
    return None


def sweep(base: Path) -> None:
    """Remove what nobody holds any more, of this user only."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_ours(entry) and (found := _locked(Path(entry.path))) is not None:
                shutil.rmtree(found[0], ignore_errors=True)
                os.close(found[1])


def _is_ours(entry: os.DirEntry[str]) -> bool:
    with contextlib.suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False
