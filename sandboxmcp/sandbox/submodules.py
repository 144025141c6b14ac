"""Submodules by a repository's index: git looks into them when it is asked about the project, and runs what their settings name.

A script can call any folder a submodule (`git update-index --cacheinfo 160000,…`), so the index is asked before it runs, for what
to protect, and after, for what is new. Read here, not by git, which would run what is looked for.
Not seen: repositories that no index names; git does not look into those by itself, editors do.
Source: gitformat-index(5), gitrepository-layout(5).
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

_GITLINK = struct.pack(">I", 0o160000)
_HEAD, _MODE_AT, _STATS = 12, 24, 40
_LONGEST_NAME = 0xFFF
_EXTENDED = 0x4000
_RUN = ("hooks", "config", "config.worktree", "commondir")
"""What of a repository makes git run something, or leads it to where that stands."""
_MOST_FOLDERS = 1_000
_MOST_KNOWN = 256
_known: dict[tuple[int, ...], tuple[str, ...]] = {}
"""Links by what fstat(2) says of an index: device, inode, size and time of change."""


def submodules(workspace: Path) -> tuple[str, ...]:
    """The folders that the project's index calls submodules, and their indexes in turn, as relative paths."""
    found: dict[str, None] = {}
    waiting = [("", ".git")]
    while waiting and len(found) < _MOST_FOLDERS:
        folder, repository = waiting.pop()
        for link in _gitlinks(workspace / repository):
            path = os.path.normpath(os.path.join(folder, link))
            if path not in found and path != "." and not path.startswith(("../", "/")):
                found[path] = None
                waiting.append((path, _repository_of(workspace, path)))
    return tuple(found)


def paths_to_protect(workspace: Path, folders: tuple[str, ...]) -> tuple[str, ...]:
    """What must stay as it is, so that git runs nothing of a script's when it looks into these submodules."""
    names: dict[str, None] = {}
    for folder in folders:
        own = f"{folder}/.git"
        repository = _repository_of(workspace, folder)
        if repository == own and _is_folder(workspace / own):
            names.update(dict.fromkeys(f"{own}/{name}" for name in _RUN))
        else:
            names[own] = None
            names.update(dict.fromkeys(f"{repository}/{name}" for name in _RUN if repository != own))
    return tuple(names)


def _repository_of(workspace: Path, folder: str) -> str:
    """Where a submodule's repository lies, relative to the workspace: `.git` in it, or where that file leads if that is inside."""
    own = f"{folder}/.git"
    try:
        with open(os.open(workspace / own, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            said = os.fsdecode(file.read(4096)).partition("\n")[0]
    except OSError:
        return own
    place = os.path.normpath(os.path.join(folder, said.removeprefix("gitdir:").strip()))
    return place if said.startswith("gitdir:") and place.startswith(".git/modules/") else own


def _gitlinks(repository: Path) -> Iterator[str]:
    """Of the index of a repository and of the shared one that it may be split from."""
    if not _is_folder(repository):
        return
    names = ["index", *(name for name in sorted(os.listdir(repository)) if name.startswith("sharedindex."))]
    for name in names:
        try:
            fd = os.open(repository / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            found = os.fstat(fd)
            if stat.S_ISREG(found.st_mode) and found.st_size > _HEAD:
                yield from _links_in(fd, (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns))
        finally:
            os.close(fd)


def _links_in(fd: int, facts: tuple[int, ...]) -> tuple[str, ...]:
    """The change time cannot be set by a program: as long as it and the size are the same, so is what is in it."""
    if facts not in _known:
        with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as data:
            # Nearly always there is none, and nothing need be understood.
            whole = bytes(data) if data.find(_GITLINK) >= 0 else b""
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        _known[facts] = tuple(dict.fromkeys(name for size in (20, 32) for name in _entries(whole, size))) if whole else ()
    return _known[facts]


def _entries(data: bytes, hash_size: int) -> Iterator[str]:
    """The names of submodules in an index, versions 2 to 4; what cannot be understood ends it."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3, 4):
        return
    at, name = _HEAD, b""
    try:
        for _ in range(count):
            start, mode = at, data[at + _MODE_AT : at + _MODE_AT + 4]
            (flags,) = struct.unpack_from(">H", data, at + _STATS + hash_size)
            at += _STATS + hash_size + (4 if flags & _EXTENDED else 2)
            if version == 4:
                strip, at = _varint(data, at)
                name = name[: len(name) - strip]
            else:
                name = b""
            end = data.index(b"\0", at)
            name += data[at:end]
            at = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
            if mode == _GITLINK:
                yield os.fsdecode(name)
    except (struct.error, ValueError, IndexError):
        return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An offset as git packs it, and where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
