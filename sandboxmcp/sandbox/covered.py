"""What of a workspace must not be reached from inside: sockets of the host's programs, and files that hold credentials."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CREDENTIALS = frozenset(
    ".netrc _netrc .npmrc .pypirc .git-credentials .pgpass credentials .credentials credentials.json credentials.toml".split()
)
_KEY_NAME = re.compile(r"id_[a-z0-9_]+")
"""ssh's own names for private keys have no ending; `id_rsa.pub` and `id_map.py` do."""
_KEY_FILES = (".pem", ".key", ".ppk")
_PRIVATE = (b"PRIVATE KEY", b"PuTTY-User-Key-File")
_LOOKED_AT = 1 << 20
"""Bytes of a possible key that are read; a bundle of certificates holds none."""
_DULL = ("/.git/objects", "/__pycache__")
"""Folders with very many files that would use up the look."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What of the workspace must not be reached from inside, as relative paths: each is covered by something empty."""

    sockets: tuple[str, ...]
    """Of programs of the host: a read-only bind does not keep anyone from connecting."""
    secrets: tuple[str, ...]
    """Files whose name or content says that they hold credentials."""


def covered(workspace: Path, most_entries: int = 100_000) -> Covered:
    """Sockets and secrets among the first `most_entries` entries of the workspace, those near its top first.

    Not covered: what is made later, what lies deeper than that, links (they are resolved inside), what else holds a secret.
    """
    sockets: list[str] = []
    secrets: list[str] = []
    waiting, seen = deque([os.fspath(workspace)]), 0
    while waiting and seen < most_entries:
        with contextlib.suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                seen += 1
                if entry.is_dir(follow_symlinks=False):
                    if not entry.path.endswith(_DULL):
                        waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    if is_secret(entry.path):
                        secrets.append(os.path.relpath(entry.path, workspace))
                elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                    sockets.append(os.path.relpath(entry.path, workspace))
    return Covered(tuple(sorted(sockets)), tuple(sorted(secrets)))


def sockets_of_host(workspace: Path, listed: Path = Path("/proc/net/unix")) -> frozenset[str]:
    """Sockets in the workspace on which processes of this machine listen, by the kernel's own list: no folder is searched.

    Not seen: those of containers with a network of their own, and one that was bound by a path relative to another folder.
    """
    found, inside = set(), f"{workspace}/"
    with contextlib.suppress(OSError):
        for line in listed.read_text(errors="surrogateescape").splitlines()[1:]:
            path = line.split(None, 7)[7:]
            if not path or path[0].startswith("@") or (path[0].startswith("/") and not path[0].startswith(inside)):
                continue
            whole = os.path.normpath(os.path.join(workspace, path[0]))
            if whole.startswith(inside) and _is_socket(whole):
                found.add(whole)
    return frozenset(found)


def is_secret(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name says that it holds credentials; what might be a key is looked into."""
    name = os.path.basename(path)
    if name in _CREDENTIALS or name.startswith(".env") or _KEY_NAME.fullmatch(name):
        return True
    if not name.endswith(_KEY_FILES) and not name.startswith("id_"):
        return False
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            head = file.read(_LOOKED_AT)
    except OSError:
        return True
    return any(mark in head for mark in _PRIVATE)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def is_uncovered(init: int, cover: Path, paths: Iterable[str]) -> bool:
    """Whether one of these files is seen inside, where `cover` should be: the host has replaced it, which takes a mount off.

    `init`: the host's number of the sandbox's first process, through whose root the inside is looked at.
    """
    expected = cover.stat()
    for path in paths:
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{init}/root{path}", follow_symlinks=False)
            if (found.st_dev, found.st_ino) != (expected.st_dev, expected.st_ino):
                return True
    return False
