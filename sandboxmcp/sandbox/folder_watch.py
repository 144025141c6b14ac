"""Which of a set of folders have had entries made, removed or renamed since they were last asked about, by inotify(7).

It saves looking at each. What it cannot know (the queue ran over, the system's limits are reached) it says, and whoever asks
looks again by himself. Changes that another machine makes on a network's file system are not seen.
"""

from __future__ import annotations

import ctypes
import os
import struct
import weakref
from pathlib import Path

_IN_CREATE, _IN_DELETE, _IN_ATTRIB, _IN_MOVED = 0x100, 0x200, 0x4, 0xC0
_IN_DELETE_SELF, _IN_MOVE_SELF, _IN_ONLYDIR = 0x400, 0x800, 0x1000000
_IN_Q_OVERFLOW, _IN_IGNORED = 0x4000, 0x8000
_MASK = _IN_CREATE | _IN_DELETE | _IN_ATTRIB | _IN_MOVED | _IN_DELETE_SELF | _IN_MOVE_SELF | _IN_ONLYDIR
_EVENT = struct.Struct("iIII")
_SHARE = 4
"""We take at most this part of the watches that a user may have: editors need them too."""
_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """Watches folders, by the names that they are given. Not safe for threads."""

    def __init__(self) -> None:
        fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._fd: int | None = fd if fd >= 0 else None
        self._names: dict[int, str] = {}
        self._watched: set[str] = set()
        self._most = _most_watches() // _SHARE
        if self._fd is not None:
            weakref.finalize(self, os.close, self._fd)

    def add(self, folder: int, name: str) -> None:
        """Watch an open folder from now on, if the system lets us. Read it afterwards: then no change is missed."""
        if self._fd is None or len(self._names) >= self._most:
            return
        watch = _libc.inotify_add_watch(self._fd, f"/proc/self/fd/{folder}".encode(), _MASK)
        if watch >= 0:
            self._watched.discard(self._names.get(watch, ""))
            self._names[watch] = name
            self._watched.add(name)

    def changed(self) -> bool:
        """Forget the folders in which something has changed; they are watched no more. False: nothing has changed in any."""
        touched = False
        while (events := self._read()) is not None:
            at = 0
            while at < len(events):
                watch, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                touched = True
                if mask & _IN_Q_OVERFLOW:
                    self._watched.clear()
                self._watched.discard(self._names.get(watch, ""))
                if mask & _IN_IGNORED:
                    self._names.pop(watch, None)
        return touched

    def knows(self, name: str) -> bool:
        """Whether nothing in this folder has changed since it was added."""
        return name in self._watched

    def __len__(self) -> int:
        return len(self._watched)

    def _read(self) -> bytes | None:
        if self._fd is None:
            return None
        try:
            return os.read(self._fd, 1 << 16)
        except BlockingIOError:
            return None


def _most_watches() -> int:
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text())
    except (OSError, ValueError):
        return 0
