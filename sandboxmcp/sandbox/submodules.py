"""Submodules by a repository's index: git looks into them when it is asked about the project, and runs what their settings name.

A script can call any folder a submodule (`git update-index --cacheinfo 160000,…`), so the index is asked before it runs, for what
to protect, and after, for what is new. Read here, not by git, which would run what is looked for.
Not seen: what an index names beyond its first 256 MiB; repositories that no index names, into which git does not look by itself and
editors do.
Source: gitformat-index(5), gitrepository-layout(5).
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterator
from io import BufferedReader, FileIO
from pathlib import Path

_GITLINK = struct.pack(">I", 0o160000)
_HEAD, _MODE_AT, _STATS = 12, 24, 40
_LONGEST_NAME = 0xFFF
_EXTENDED = 0x4000
_LONGEST_PATH = 4096
_LONGEST_INDEX = 256 << 20
"""Bytes that are looked at: some three million files. A script can write a longer one, and would have us read it after each run."""
_PIECE = 1 << 20
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
    """The change time cannot be set by a program: as long as it and the size are the same, so is what is in it.

    Read, never mapped: a script that cuts the file meanwhile would end us by SIGBUS.
    """
    if facts not in _known:
        found: dict[str, None] = {}
        with BufferedReader(FileIO(os.dup(fd)), _PIECE) as file:
            if _mentions_a_link(file):  # nearly always there is none, and nothing need be understood
                for hash_size in (20, 32):
                    file.seek(0)
                    found.update(dict.fromkeys(_entries(file, hash_size)))
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        _known[facts] = tuple(found)
    return _known[facts]


def _mentions_a_link(file: BufferedReader[FileIO]) -> bool:
    """Whether the mode of one stands anywhere among the bytes that are looked at."""
    before, looked_at = b"", 0
    while looked_at < _LONGEST_INDEX and (piece := file.read(_PIECE)):
        if _GITLINK in before + piece:
            return True
        before, looked_at = piece[-len(_GITLINK) :], looked_at + len(piece)
    return False


def _entries(file: BufferedReader[FileIO], hash_size: int) -> Iterator[str]:
    """The names of submodules in an index, versions 2 to 4; what cannot be understood ends it.

    Lengths are taken as git takes them, from the entry's flags: a name with a NUL in it must not make us read on elsewhere.
    """
    with contextlib.suppress(struct.error, EOFError):
        signature, version, count = struct.unpack(">4sII", file.read(_HEAD))
        if signature != b"DIRC" or version not in (2, 3, 4):
            return
        name, length = b"", 0
        for _ in range(count):
            if file.tell() > _LONGEST_INDEX:
                return
            fixed = _exactly(file, _STATS + hash_size + 2)
            (flags,) = struct.unpack_from(">H", fixed, _STATS + hash_size)
            more = len(_exactly(file, 2)) if flags & _EXTENDED else 0
            if version == 4:
                shared = max(length - _varint(file), 0)
                rest, rest_length = _name(file, (flags & _LONGEST_NAME) - shared, in_flags=flags & _LONGEST_NAME != _LONGEST_NAME)
                name, length = name[:shared] + rest, shared + rest_length
            else:
                name, length = _name(file, flags & _LONGEST_NAME, in_flags=flags & _LONGEST_NAME != _LONGEST_NAME)
                at = len(fixed) + more + length
                file.seek((at + 8) // 8 * 8 - at - 1, os.SEEK_CUR)  # padded with NULs, of which one is read already
            if fixed[_MODE_AT : _MODE_AT + 4] == _GITLINK:
                yield os.fsdecode(name.partition(b"\0")[0])


def _exactly(file: BufferedReader[FileIO], count: int) -> bytes:
    """So many bytes. Raises: EOFError, there are fewer."""
    data = file.read(max(count, 0))
    if len(data) < count:
        raise EOFError
    return data


def _name(file: BufferedReader[FileIO], length: int, *, in_flags: bool) -> tuple[bytes, int]:
    """A name and its length, the NUL behind it read too; its own end tells the length of one that is too long for the flags.

    Of a name that is longer than any path the start is returned.
    """
    if in_flags:
        return _exactly(file, max(length, 0) + 1)[:-1], max(length, 0)
    kept, seen = b"", 0
    while piece := file.peek(1):
        end = piece.find(b"\0")
        taken = file.read(len(piece) if end < 0 else end + 1)
        kept = kept if len(kept) > _LONGEST_PATH else kept + taken
        seen += len(taken)
        if end >= 0:
            return kept.rstrip(b"\0"), seen - 1
    raise EOFError


def _varint(file: BufferedReader[FileIO]) -> int:
    """An offset as git packs it."""
    (byte,) = _exactly(file, 1)
    value = byte & 0x7F
    while byte & 0x80:
        (byte,) = _exactly(file, 1)
        value = ((value + 1) << 7) | (byte & 0x7F)
        if value > _LONGEST_INDEX:
            raise EOFError
    return value


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
