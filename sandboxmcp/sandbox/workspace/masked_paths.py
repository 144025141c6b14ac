"""What of a workspace must not be reached from inside: sockets of the host's programs, and files that hold credentials."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.sandbox.workspace.secret_names import kind_of

_PRIVATE = (b"PRIVATE KEY", b"PuTTY-User-Key-File", b"OpenVPN Static key", b"<auth-user-pass>")
_BARE_KEY = re.compile(rb"\s*[\w+/=-]{16,512}\s*")
"""A `.key` of one word, as Rails writes them."""
_LOOKED_AT = 1 << 20
"""Bytes of a possible key that are read; a bundle of certificates holds none."""
_DULL = ("/.git/objects", "/__pycache__")
"""Folders with very many files that would use up the look."""
_LONGEST = 2_000
"""Bytes of a folder's path: much longer ones cannot be mounted, and a script can make paths that nobody can name."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A file that may hold credentials, as a relative path."""

    path: str
    known_as: str
    """The path by whose name its content is read: its own, or that of a link or of another name of the same file."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What of the workspace must not be reached from inside, as relative paths."""

    sockets: tuple[str, ...]
    """Of programs of the host: a read-only bind does not keep anyone from connecting. Covered by something empty."""
    secrets: tuple[Secret, ...]
    """Files whose name or content says that they hold credentials. Covered by a masked copy."""
    unseen: tuple[str, ...] = ()
    """Folders, as whole paths, that cannot be looked into: a script may have closed them. Covered by an empty one."""


def covered(workspace: Path, most_entries: int = 100_000) -> Covered:
    """Sockets and secrets among the first `most_entries` entries of the workspace, those near its top first.

    A link with such a name leads to a secret of another name; so does a hard link. Not covered: what is made later, what lies
    deeper than that, what else holds a secret.
    """
    sockets: list[str] = []
    secrets: dict[str, str] = {}
    unseen: list[str] = []
    for entry in _entries(workspace, most_entries, unseen):
        with contextlib.suppress(FileNotFoundError):
            if entry.is_file(follow_symlinks=False):
                if is_secret(entry.path):
                    secrets[entry.path] = entry.path
            elif entry.is_symlink():
                if kind_of(entry.path) is not None and (target := _inside(entry.path, workspace)) and is_secret(target, entry.path):
                    secrets.setdefault(target, entry.path)
            elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                sockets.append(os.path.relpath(entry.path, workspace))
    secrets |= _other_names(secrets, _entries(workspace, most_entries, []))
    found = (Secret(os.path.relpath(path, workspace), os.path.relpath(known, workspace)) for path, known in secrets.items())
    return Covered(tuple(sorted(sockets)), tuple(sorted(found, key=lambda one: one.path)), tuple(sorted(unseen)))


def _entries(workspace: Path, most: int, unseen: list[str]) -> Iterator[os.DirEntry[str]]:
    """Everything but folders, those near the top first; `unseen` takes the folders that cannot be looked into.

    A script could move a secret into any folder, so dull ones are looked into as well, at last and up to as many entries again.
    """
    dull: list[str] = []
    yield from _walked(deque([os.fspath(workspace)]), most, unseen, dull)
    yield from _walked(deque(dull), most, unseen, None)


def _walked(waiting: deque[str], most: int, unseen: list[str], dull: list[str] | None) -> Iterator[os.DirEntry[str]]:
    seen = 0
    while waiting and seen < most:
        folder = waiting.popleft()
        if len(os.fsencode(folder)) > _LONGEST:
            unseen.append(folder)
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry
                    elif dull is not None and entry.path.endswith(_DULL):
                        dull.append(entry.path)
                    else:
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it has gone meanwhile
        except OSError:
            unseen.append(folder)


def _inside(link: str, workspace: Path) -> str:
    """The regular file in the workspace that a link leads to; empty: there is none."""
    root, real = os.path.realpath(workspace), os.path.realpath(link)
    inside = real.startswith(f"{root}/") and os.path.isfile(real)
    return os.path.join(workspace, os.path.relpath(real, root)) if inside else ""


def _other_names(secrets: Mapping[str, str], entries: Iterator[os.DirEntry[str]]) -> dict[str, str]:
    """Hard links to these files; looked for only if one of them has several names."""
    shared: dict[int, str] = {}
    for path, known in secrets.items():
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if status.st_nlink > 1:
                shared[status.st_ino] = known
    if not shared:
        return {}
    return {one.path: shared[one.inode()] for one in entries if one.inode() in shared and one.path not in secrets}


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


def is_secret(path: str, known_as: str = "") -> bool:
    """Whether a file's name, or the other one by which it is known, says that it may hold credentials.

    What would be one only as a private key is looked into; one that is too large for that counts as one.
    """
    kind = kind_of(known_as or path)
    if kind is None or kind.degree != "key":
        return kind is not None
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            head = file.read(_LOOKED_AT)
    except OSError:
        return True
    return _looks_like_key(head) or (path.lower().endswith(".key") and _is_bare_key(head)) or len(head) == _LOOKED_AT


def _looks_like_key(head: bytes) -> bool:
    text = head.replace(b"\0", b"")  # as in UTF-16
    return any(mark in text for mark in _PRIVATE)


def _is_bare_key(head: bytes) -> bool:
    """One word, or a key in DER, which begins with a sequence of more than 127 bytes."""
    return _BARE_KEY.fullmatch(head) is not None or head[:2] in (b"0\x81", b"0\x82")


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
