"""What an overlay's layer changes in its workspace, read as overlayfs wrote it: a character device 0/0 is a deletion, the attribute
user.overlay.opaque marks a folder that replaced another. Source: Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sandboxmcp.sandbox.openat import opened, reader, way_to

_LONGEST = 1 << 20
"""Bytes of a text that is shown line by line."""
_DEEPEST = 200
"""Folders within folders: each is an open descriptor while it is looked into."""
_OPAQUE = "user.overlay.opaque"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the layer and the workspace."""

    kind: Literal["added", "changed", "deleted", "folder"]
    path: str
    """Relative, with `/`."""
    replaces: bool = False
    """A folder that stands where something else was, none of which is seen through it."""


def changes(layer: Path, workspace: Path) -> Iterator[Change]:
    """What the layer changes, folders before what is in them. Unreadable folders count as unchanged.

    Raises:
        OSError: folders are nested more deeply than is looked into.
    """
    with opened(layer / "upper") as upper, opened(workspace) as lower:
        if upper is not None:
            yield from _changes(upper, lower, "")


def patch(layer: Path, workspace: Path, change: Change) -> list[str]:
    """A changed text's lines in unified form; empty for what is no text, or too long."""
    texts = []
    for base in (workspace, layer / "upper"):
        text = b""
        with contextlib.suppress(OSError, ValueError), opened(base) as root:
            if root is not None:
                with way_to(root, change.path) as (folder, leaf), reader(folder, leaf) as file:
                    text = file.read(_LONGEST + 1)
        texts.append(text)
    if change.kind == "folder" or any(len(text) > _LONGEST or b"\0" in text for text in texts):
        return []
    before, after = (text.decode(errors="replace").splitlines() for text in texts)
    return list(difflib.unified_diff(before, after, f"a/{change.path}", f"b/{change.path}", lineterm=""))


def _changes(upper: int, lower: int | None, name: str, *, alone: bool = False) -> Iterator[Change]:
    """`alone`: nothing of the workspace's folder of this name is seen through the layer's."""
    if name.count("/") > _DEEPEST:
        raise OSError(errno.ELOOP, "folders are nested too deeply", name[:200])
    entries = sorted(os.listdir(upper))
    if alone and lower is not None:
        yield from (Change("deleted", f"{name}/{one}") for one in sorted(set(os.listdir(lower)) - set(entries)))
    for entry in entries:
        path = f"{name}/{entry}" if name else entry
        status, below = _status(upper, entry), _status(lower, entry)
        if status is None:
            continue
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            if below is not None:
                yield Change("deleted", path)
        elif stat.S_ISDIR(status.st_mode):
            replaces = below is not None and not stat.S_ISDIR(below.st_mode)
            if below is None or replaces:
                yield Change("folder", path, replaces)
            with opened(entry, upper) as inner, _opened_if(entry, lower) as other:
                if inner is not None:
                    yield from _changes(inner, other, path, alone=alone or _is_opaque(inner))
        elif below is None:
            yield Change("added", path)
        elif not _same(upper, lower, entry, status, below):
            yield Change("changed", path)


@contextlib.contextmanager
def _opened_if(name: str, inside: int | None) -> Iterator[int | None]:
    if inside is None:
        yield None
        return
    with opened(name, inside) as fd:
        yield fd


def _status(folder: int | None, name: str) -> os.stat_result | None:
    try:
        return None if folder is None else os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def _is_opaque(folder: int) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE) == b"y"
    except OSError:
        return False


def _same(upper: int, lower: int | None, name: str, status: os.stat_result, below: os.stat_result) -> bool:
    if lower is None or (status.st_mode, status.st_size) != (below.st_mode, below.st_size):
        return False
    try:
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(name, dir_fd=upper) == os.readlink(name, dir_fd=lower)
        if not stat.S_ISREG(status.st_mode):
            return True
        with reader(upper, name) as left, reader(lower, name) as right:
            while piece := left.read(1 << 20):
                if piece != right.read(len(piece)):
                    return False
            return right.read(1) == b""
    except (OSError, ValueError):
        return False
