"""Where output lies on its way into the store: a folder for each process, locked for as long as that process lives.

The lock is one that the operating system gives up with the process (flock), so a folder that can be locked belongs to nobody:
its owner was killed, and whoever opens the store next takes over what lies in it. Neither numbers of processes nor ages of
files tell that as surely.

    incoming/<random>/.owner         whose output it is: project and session
    incoming/<random>/…              stream files and artifacts of runs
    incoming/<random>/.draft-…       captures that are being compressed
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.store.captures.disk import unwritable

if sys.platform != "win32":
    import fcntl

DRAFT = ".draft-"
_OWNER = ".owner"
_STRAY_S = 7 * 86_400
"""Files that lie in `incoming/` itself are of an older version, whose processes had no lock."""


@dataclass(frozen=True, slots=True)
class Left:
    """What a process that was killed left behind: finished or not, nothing of it was acknowledged as stored."""

    files: tuple[Path, ...]
    project: str
    session: str


class Incoming:
    """The folders of all processes under one store, and this one's own. Shared by threads."""

    def __init__(self, parent: Path, owner: tuple[str, str] = ("", "")) -> None:
        """`owner`: the project and the session that this process stores for. Touches nothing yet."""
        self._parent = parent
        self._owner = owner
        self._lock = threading.Lock()
        self._descriptor = -1
        self._folder: Path | None = None

    def folder(self) -> Path:
        """This process's own, private, made when it is first asked for.

        Raises:
            StoreError: it cannot be made.
        """
        with self._lock:
            if self._folder is None:
                try:
                    self._folder = self._made()
                except OSError as error:
                    raise unwritable(self._parent, error) from None
            return self._folder

    def close(self) -> None:
        """Takes the folder away. What still lies in it stays, for the next process to take over."""
        with self._lock:
            if self._folder is not None:
                _remove(self._folder)
                os.close(self._descriptor)
                self._folder = None

    def left_behind(self) -> Iterator[Left]:
        """What processes that are no longer there left, one at a time; a folder that is empty afterwards goes."""
        with contextlib.suppress(OSError):
            for folder in sorted(self._parent.iterdir()):
                if not folder.is_dir():
                    _remove_stray(folder)
                elif (descriptor := _locked(folder)) is not None:
                    try:
                        yield _left_in(folder)
                        _remove(folder)
                    finally:
                        os.close(descriptor)

    def _made(self) -> Path:
        self._parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            folder = self._parent / secrets.token_hex(6)
            folder.mkdir(mode=0o700)
            # Until it is locked it looks like one that was left behind, and another process may just be taking it away.
            descriptor = _locked(folder)
            if descriptor is not None:
                with os.fdopen(os.open(folder / _OWNER, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                    json.dump(self._owner, file)
                self._descriptor = descriptor
                return folder


def at_work(parent: Path) -> int:
    """How many processes have a folder of their own there, this one too."""
    folders = [folder for folder in parent.iterdir() if folder.is_dir()] if parent.is_dir() else []
    locks = [_locked(folder) for folder in folders]
    for descriptor in locks:
        if descriptor is not None:
            os.close(descriptor)
    return locks.count(None)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock; None when another process holds it, or when the folder is gone."""
    if sys.platform == "win32":
        return None if (folder / _OWNER).exists() else os.open(os.devnull, os.O_RDONLY)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == folder.stat().st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _left_in(folder: Path) -> Left:
    """Drafts and empty files go at once: they hold nothing that was promised to anybody."""
    project = session = ""
    with contextlib.suppress(OSError, ValueError):
        project, session = map(str, json.loads((folder / _OWNER).read_text()))
    files = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(DRAFT) or (path.name != _OWNER and not path.stat().st_size):
            path.unlink(missing_ok=True)
        elif path.name != _OWNER:
            files.append(path)
    return Left(tuple(files), project, session)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if [path.name for path in folder.iterdir()] == [_OWNER]:
            (folder / _OWNER).unlink()
        folder.rmdir()


def _remove_stray(file: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - file.stat().st_mtime > _STRAY_S:
            file.unlink()
