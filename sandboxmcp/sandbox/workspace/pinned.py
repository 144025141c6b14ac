"""Files of secrets that this process has masked, found again wherever a script has moved them.

A script can move a folder with a masked file in it, or remove the link by which the file was known, and then end its sandbox; the
next one must cover the file all the same. An open descriptor (O_PATH, it reads nothing) keeps the file's number from being used
again, and /proc tells where the file lies now. Not covered: files beyond the first MOST, and a new start of the server.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.core.errors import UsageError
from sandboxmcp.sandbox.openat import FOLDER, way_to
from sandboxmcp.sandbox.workspace.masked_paths import Covered, Secret

MOST = 128
"""Descriptors that are kept open, an ordinary user has 1,024; those of another workspace make room for those of a new one."""
_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True)
class _Pin:
    fd: int
    known_as: str
    workspace: Path


_lock = threading.Lock()
_pins: dict[tuple[int, int], _Pin] = {}
"""By device and inode."""


def pin(workspace: Path, secrets: Iterable[Secret]) -> None:
    """Keep track of these files from now on."""
    with contextlib.suppress(OSError), _lock:
        root = os.open(workspace, FOLDER)
        try:
            for secret in secrets:
                _pin(root, secret, workspace)
        finally:
            os.close(root)


def _pin(root: int, secret: Secret, workspace: Path) -> None:
    if len(_pins) >= MOST and not _drop_one_of_another(workspace):
        return
    with contextlib.suppress(OSError), way_to(root, secret.path) as (folder, leaf):
        fd = os.open(leaf, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) in _pins:
            os.close(fd)
        else:
            _pins[status.st_dev, status.st_ino] = _Pin(fd, secret.known_as, workspace)


def _drop_one_of_another(workspace: Path) -> bool:
    other = next((number for number, one in _pins.items() if one.workspace != workspace), None)
    if other is not None:
        os.close(_pins.pop(other).fd)
    return other is not None


def moved(workspace: Path, hide: Covered) -> list[Secret]:
    """Those of the pinned files that lie in the workspace, were not found there, and lie in no folder that is covered.

    Raises:
        UsageError: one lies so deep that its path cannot be told.
    """
    known = {one.path for one in hide.secrets}
    with _lock:
        there = list(_still_there(workspace, hide.unseen))
    return [one for one in there if one.path not in known]


def _still_there(workspace: Path, unseen: tuple[str, ...]) -> Iterator[Secret]:
    for number, one in [pinned for pinned in _pins.items() if pinned[1].workspace == workspace]:
        if os.fstat(one.fd).st_nlink == 0:
            os.close(_pins.pop(number).fd)
            continue
        path = _path_of(one, unseen)
        covered = any(path.startswith(f"{folder}/") for folder in unseen)
        if path.startswith(f"{workspace}/") and not covered and not path.endswith(_DELETED):
            yield Secret(os.path.relpath(path, workspace), one.known_as)


def _path_of(one: _Pin, unseen: tuple[str, ...]) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{one.fd}")
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG and unseen:  # far longer than what is looked into: it lies below a covered folder
            return ""
        why = f"a script has moved a file of secrets ({one.known_as}) to where it cannot be covered: {error.strerror}"
        raise UsageError(why, "Find the file in the project's deepest folder, and move it back.") from None
