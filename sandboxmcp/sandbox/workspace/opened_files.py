"""Which files of a folder were opened, by inotify(7), or named by an output, and what an answer says of them.

Seen from outside, also through a bind mount, which shares the inode; nothing inside can keep it from being seen. Of several scripts
that run at the same time, all are told. A listing opens no file: its output names them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_IN_OPEN, _IN_CLOEXEC, _IN_NONBLOCK = 0x20, 0o2000000, 0o4000
_EVENT = struct.Struct("iIII")
_NAMED = 3
"""Names in a note."""
_LOOKED_AT = 64 << 10
"""Bytes at either end of an output in which names are looked for."""
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_libc = ctypes.CDLL(None, use_errno=True)


def watch_folder(folder: str) -> int:
    """An inotify instance that tells when a file of the folder is opened; -1: there can be none, as the user has too many."""
    fd = int(_libc.inotify_init1(_IN_CLOEXEC | _IN_NONBLOCK))
    if fd >= 0 and _libc.inotify_add_watch(fd, os.fsencode(folder), _IN_OPEN) < 0:
        os.close(fd)
        return -1
    return fd


def opened_files(watch: int) -> Iterator[str]:
    """Names of the files that were opened since the last call. Of more than the system keeps (16,384) some are missing."""
    with contextlib.suppress(BlockingIOError):
        while events := os.read(watch, 64 << 10):
            at = 0
            while at < len(events):
                *_, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                yield os.fsdecode(events[at - length : at].rstrip(b"\0"))


def output_ends(outputs: Iterable[Path]) -> bytes:
    """The first and last 64 KiB of each output, without colours."""
    shown = []
    for path in outputs:
        with contextlib.suppress(OSError), path.open("rb") as file:
            head = file.read(_LOOKED_AT)
            file.seek(max(len(head), file.seek(0, os.SEEK_END) - _LOOKED_AT))
            shown += [head, file.read(_LOOKED_AT)]
    return _COLOUR.sub(b"", b"\n".join(shown))


def names_file(shown: bytes, path: str) -> bool:
    """Whether an output names a file, by a word of its own; of a name without a dot by a line that ends with it."""
    name = os.fsencode(os.path.basename(path))
    if name not in shown:
        return False
    after = rb"(?![\w.-])" if b"." in name else rb"[ \t]*$"
    return re.search(rb"(?<![\w.-])" + re.escape(name) + after, shown, re.M) is not None


def note_on(paths: list[str]) -> str:
    """What an answer says of masked files. Their names may be texts that a script chose: plain letters of them are shown."""
    named = ", ".join(re.sub(r"[^\w./@+-]", "?", path)[-100:] for path in paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    are = "are" if len(paths) > 1 else "is"
    return f"{named}{more} {are} shown masked in the sandbox: credentials are hidden, and writing is refused"
