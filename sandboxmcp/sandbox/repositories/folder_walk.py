"""A walk over all folders of a workspace that finds entries by their names, and reads only those folders anew that have changed.

The system tells which have (folder_events.py). A folder that cannot be watched is compared by its device, inode and change
time, which no script can set. That time has a coarse tick: what had changed less than two seconds before it was read is read
again the next time. (For folders that are not watched, a file system of another machine whose clock is behind ours can hide a
change within one tick.) Breadth first, so that a bound leaves out what lies deepest; loose objects of repositories come last.
Links are not followed: each folder is opened without following one on the way, since a script that still runs may swap any
component for a link.
"""

from __future__ import annotations

import os
import stat
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sandboxmcp.sandbox.openat import FOLDER
from sandboxmcp.sandbox.repositories.folder_events import FolderEvents

MOST_FOLDERS = 20_000
"""Reading them takes half a second; comparing them, where they cannot be watched, 50 ms. Nearly every project has fewer."""
MOST_ENTRIES = 1_000_000
"""Read anew in one walk; a folder of a million files takes half a second."""
_MOST_BYTES_OF_PATH = 4_000
"""PATH_MAX is 4,096: deeper folders cannot be opened by their path, nor can git."""
YOUNG_NS = 2_000_000_000
_GIT = ".git"
_Kind = Literal["folder", "file", "link", "other"]


class Found(NamedTuple):
    """An entry that was looked for."""

    path: str
    name: str
    """As it was looked for: in small letters."""
    kind: _Kind


@dataclass(frozen=True)
class Wanted:
    """What is looked for, in small letters."""

    names: frozenset[str]
    endings: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    """Names of folders of which every file is wanted."""


@dataclass(slots=True)
class _Folder:
    """What a folder held when it was read."""

    which: tuple[int, int, int]
    settled: bool
    """Whether a later change must show in the change time."""
    watched: bool = False
    subfolders: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()
    is_git: bool = False
    """It is called `.git`, or has the shape of a repository without a worktree."""
    head: str = ""
    """In a folder of that shape, the entry without which git takes it for none."""
    odd: bool = False
    """It holds links, sockets, pipes or devices."""


@dataclass(slots=True)
class Walked:
    """What a walk came across."""

    found: list[Found] = field(default_factory=list)
    bare: dict[str, str] = field(default_factory=dict)
    """Folders of the shape of a repository that are not called `.git`, with their entry `HEAD`."""
    odd: set[str] = field(default_factory=set)
    """Git folders with a link, socket, pipe or device in them."""
    left_out: int = 0
    """Folders that were not looked at for the bounds, at least."""


class _Waiting(NamedTuple):
    path: str
    owner: str
    """The git folder that it lies in; empty: in none."""
    late: bool
    """It is among the objects of one, which are looked at last."""
    sure: bool


class FolderWalk:
    """Walks over one workspace again and again. Not safe for threads."""

    def __init__(self, wanted: Wanted, most_folders: int = MOST_FOLDERS, most_entries: int = MOST_ENTRIES) -> None:
        self._wanted = wanted
        self._most_folders = most_folders
        self._most_entries = most_entries
        self._known: dict[str, _Folder] = {}
        self._entries = 0
        self._events = FolderEvents()
        self._last: tuple[frozenset[str], Walked] | None = None

    def walk(self, root: int, skip: frozenset[str] = frozenset(), opens: Callable[[int], None] | None = None) -> Walked:
        """Everything below the open folder but the folders in `skip`. The caller does not change the result.

        `opens`: makes a folder of ours passable that could not be read, given an open descriptor of it.
        """
        changed = self._events.changed()
        if self._last is not None and self._last[0] == skip and changed == set() and self._unchanged(root, "", set(), sure=False):
            return self._last[1]
        walked, fresh, self._entries = Walked(), dict[str, _Folder](), 0
        waiting: deque[_Waiting] = deque([_Waiting("", "", False, False)])
        last: deque[_Waiting] = deque()
        all_watched = True
        while waiting or last:
            if len(fresh) >= self._most_folders or self._entries > self._most_entries:
                walked.left_out += len(waiting) + len(last)
                break
            path, owner, late, sure = (waiting or last).popleft()
            known = self._unchanged(root, path, changed, sure=sure)
            folder = known or self._read(root, path, walked, opens)
            all_watched &= folder is not None and folder.watched
            if folder is None:
                continue
            fresh[path] = folder
            owner = _noted(walked, path, owner, folder)
            for below in folder.subfolders:
                if below not in skip:
                    objects = late or (folder.is_git and below.endswith("/objects"))
                    (last if objects else waiting).append(_Waiting(below, owner, objects, known is not None))
        self._known, self._last = fresh, (skip, walked) if all_watched else None
        return walked

    def _unchanged(self, root: int, path: str, changed: set[str] | None, *, sure: bool) -> _Folder | None:
        """What is known of a folder, if it holds. `sure`: the folder above is unchanged, and so this is the same one as before."""
        known = self._known.get(path)
        if known is None:
            return None
        unchanged = known.watched and changed is not None and path not in changed
        if unchanged and sure:
            return known
        if not unchanged and not known.settled:
            return None
        try:
            found = os.stat(path or ".", dir_fd=root, follow_symlinks=False)
        except OSError:
            return None
        return known if known.which == (found.st_dev, found.st_ino, found.st_ctime_ns) else None

    def _read(self, root: int, path: str, walked: Walked, opens: Callable[[int], None] | None) -> _Folder | None:
        if len(os.fsencode(path)) > _MOST_BYTES_OF_PATH:
            walked.left_out += 1
            return None
        try:
            fd = open_below(root, path, opens)
        except PermissionError:
            return self._shut(root, path, walked, opened=opens is not None)
        except OSError:
            return None  # it has gone, or is none any more: then the folder above has changed
        try:
            return self._listed(fd, path, walked)
        finally:
            os.close(fd)

    def _shut(self, root: int, path: str, walked: Walked, *, opened: bool) -> _Folder | None:
        """One that we may not read as it stands, `opened` in vain or left so. A script would have to change it to see into it."""
        try:
            found = os.stat(path, dir_fd=root, follow_symlinks=False)
        except OSError:
            walked.left_out += 1
            return None
        ours = found.st_uid == os.geteuid()  # so that a script may have shut it
        walked.left_out += opened and ours
        return _Folder((found.st_dev, found.st_ino, found.st_ctime_ns), settled=not (opened and ours))

    def _listed(self, fd: int, path: str, walked: Walked) -> _Folder:
        watched = self._events.watch(fd, path)  # before it is read: no change falls between
        now = time.time_ns()
        status = os.fstat(fd)
        folder = _Folder((status.st_dev, status.st_ino, status.st_ctime_ns), status.st_ctime_ns < now - YOUNG_NS, watched)
        subfolders, found, shape = list[str](), list[Found](), dict[str, str]()
        before = f"{path}/" if path else ""
        names, endings = self._wanted.names, self._wanted.endings
        every_file = path.rpartition("/")[2].lower() in self._wanted.folders
        with os.scandir(fd) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > self._most_entries:
                    walked.left_out += 1
                    folder.settled = folder.watched = False
                    break
                kind = _kind(entry)
                lowered = folded(entry.name)
                if kind == "folder":
                    subfolders.append(before + entry.name)
                elif kind != "file":
                    folder.odd = True
                if lowered in names or (kind != "folder" and (every_file or lowered.endswith(endings))):
                    found.append(Found(before + entry.name, lowered, kind))
                if lowered in ("head", "objects", "refs", "commondir"):
                    shape[lowered] = entry.name
        folder.subfolders, folder.found = tuple(subfolders), tuple(found)
        if "head" in shape and ("commondir" in shape or ("objects" in shape and "refs" in shape)):
            folder.head = shape["head"]
        folder.is_git = bool(path) and (bool(folder.head) or path.rpartition("/")[2].lower() == _GIT)
        return folder


def _noted(walked: Walked, path: str, owner: str, folder: _Folder) -> str:
    """The git folder that its subfolders lie in; what was found in it is put down."""
    walked.found.extend(folder.found)
    if folder.is_git:
        owner = path
        if folder.head and path.rpartition("/")[2].lower() != _GIT:
            walked.bare[path] = folder.head
    if folder.odd and owner:
        walked.odd.add(owner)
    return owner


def _kind(entry: os.DirEntry[str]) -> _Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def folded(name: str) -> str:
    """A name as a file system that ignores capitals compares it (ext4, f2fs: casefolded, ignorable letters left out)."""
    if name.isascii():
        return name.lower()
    return "".join(letter for letter in unicodedata.normalize("NFD", name).casefold() if unicodedata.category(letter) != "Cf")


def open_below(root: int, path: str, opens: Callable[[int], None] | None = None) -> int:
    """A descriptor of a folder that can be listed, no link being followed on the way.

    Raises:
        OSError: it is gone, is none or cannot be read, or a component is a link.
    """
    if (whole := _opened_whole(root, path)) is not None:
        return whole
    above, _, name = path.rpartition("/")
    # The folders above were made passable before: only the last step may have to be taken by itself.
    reached = _opened_whole(root, above) if above else None
    fd = os.dup(root) if reached is None else reached
    try:
        for part, is_last in _parts(path if reached is None else name):
            fd = _stepped(fd, part, FOLDER if is_last else os.O_PATH | FOLDER, opens)
        return fd
    except BaseException:
        os.close(fd)
        raise


def _opened_whole(root: int, path: str) -> int | None:
    """The same in one step, if the system says that no link was followed: for deep folders steps take long."""
    try:
        fd = os.open(path or ".", FOLDER, dir_fd=root)
    except OSError:
        return None
    if not path or os.readlink(f"/proc/self/fd/{fd}") == os.path.join(os.readlink(f"/proc/self/fd/{root}"), path):
        return fd
    os.close(fd)
    return None


def _parts(path: str) -> Iterator[tuple[str, bool]]:
    parts = path.split("/") if path else ["."]
    return ((part, number == len(parts)) for number, part in enumerate(parts, 1))


def _stepped(fd: int, part: str, flags: int, opens: Callable[[int], None] | None) -> int:
    """The folder one step further; the one that it was reached from is closed."""
    try:
        following = os.open(part, flags, dir_fd=fd)
    except PermissionError:
        if opens is None:
            raise
        opens(fd)
        shut = os.open(part, os.O_PATH | FOLDER, dir_fd=fd)
        try:
            opens(shut)
        finally:
            os.close(shut)
        following = os.open(part, flags, dir_fd=fd)
    os.close(fd)
    return following


def make_passable(fd: int) -> None:
    """Give the owner back all rights to a folder of ours. A folder of another owner's is left: no script can have shut it."""
    found = os.fstat(fd)
    if found.st_mode & stat.S_IRWXU != stat.S_IRWXU and found.st_uid == os.geteuid():
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
