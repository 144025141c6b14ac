"""Which folders have changed, by inotify(7): the system tells of each change, so that an unchanged folder costs nothing.

The system reports what is done by any process of this machine, through any mount, before the call that did it returns. Where
folders cannot be watched (limits of the account, other systems) `watch` says so, and whoever asks must look at them another
way. Not reported: a file system that is mounted over a folder, which only the host's administrator can do.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import weakref
from collections import defaultdict
from pathlib import Path

_IN_ATTRIB, _IN_MOVED, _IN_CREATE, _IN_DELETE, _IN_SELF = 0x4, 0xC0, 0x100, 0x200, 0xC00
_IN_ONLYDIR = 0x01000000
_IN_UNMOUNT, _IN_Q_OVERFLOW, _IN_IGNORED = 0x2000, 0x4000, 0x8000
_WANTED = _IN_ATTRIB | _IN_MOVED | _IN_CREATE | _IN_DELETE | _IN_SELF | _IN_ONLYDIR
_EVENT = struct.Struct("iIII")
_PIECE = 1 << 16
_SHARE = 4
"""Of the account's watches at most one in so many is taken: editors need them too."""
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


class FolderEvents:
    """Watches folders, named by the paths that the caller gives them. Not safe for threads."""

    def __init__(self, most: int | None = None) -> None:
        """`most`: folders that are watched at most."""
        self._fd = -1
        self._paths: defaultdict[int, set[str]] = defaultdict(set)
        with contextlib.suppress(OSError, AttributeError, ValueError):
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._most = int(_LIMIT.read_text()) // _SHARE if most is None else most
            self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd >= 0:
            weakref.finalize(self, os.close, self._fd)

    def watch(self, folder: int, path: str) -> bool:
        """Report changes of an open folder from now on. False: it cannot be watched."""
        if self._fd < 0 or len(self._paths) >= self._most:
            return False
        watch = self._libc.inotify_add_watch(self._fd, f"/proc/self/fd/{folder}".encode(), _WANTED)
        if watch > 0:
            self._paths[watch].add(path)
        return bool(watch > 0)

    def changed(self) -> set[str] | None:
        """Paths of folders that have changed since the last call. None: any may have."""
        changed, lost = set[str](), self._fd < 0
        while data := self._read():
            at = 0
            while at < len(data):
                watch, mask, _, length = _EVENT.unpack_from(data, at)
                at += _EVENT.size + length
                lost |= bool(mask & (_IN_Q_OVERFLOW | _IN_UNMOUNT))
                changed |= self._paths.get(watch, set())
                if mask & _IN_IGNORED:
                    self._paths.pop(watch, None)
        return None if lost else changed

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _PIECE) if self._fd >= 0 else b""
        except BlockingIOError:
            return b""
