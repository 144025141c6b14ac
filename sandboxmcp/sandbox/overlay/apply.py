"""Carry what an overlay's layer changes over into the workspace.

Scripts wrote it: links are never followed on the way, protected paths are left out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

from sandboxmcp.sandbox.openat import FOLDER, reader, way_to
from sandboxmcp.sandbox.overlay.changes import Change, changes
from sandboxmcp.sandbox.overlay.layer import changing
from sandboxmcp.sandbox.protection import look_at
from sandboxmcp.sandbox.repositories.folder_walk import folded
from sandboxmcp.sandbox.repositories.git_folder import is_listed
from sandboxmcp.sandbox.repositories.watch import OBEYED


def apply(layer: Path, workspace: Path) -> tuple[list[Change], list[Change]]:
    """Carry the changes over into the workspace. Returns those that were, and those that were left out.

    Scripts may run meanwhile: a file that is being written is left out, and so applied the next time.

    Raises:
        OSError: the workspace cannot be written; what was not applied stays.
    """
    done: list[Change] = []
    skipped: list[Change] = []
    with contextlib.ExitStack() as held:
        root, upper = (_held_open(folder, held) for folder in (workspace, layer / "upper"))
        held.enter_context(changing(layer))
        names = look_at(workspace, git_writable=True).names
        for change in changes(layer, workspace):
            (skipped if _protected(change, names) or not _carried(root, upper, change) else done).append(change)
    return done, skipped


def _held_open(folder: Path, held: contextlib.ExitStack) -> int:
    fd = os.open(folder, FOLDER)
    held.callback(os.close, fd)
    return fd


def _protected(change: Change, names: Collection[str]) -> bool:
    """Whether it touches a protected path, or takes away a folder that holds one; or a repository in a subfolder.

    Tools run what a repository's configuration and hooks name, and git looks at a submodule's when it is asked about the project.
    A `HEAD` makes a repository of the folder that it is in.
    """
    parts = [folded(part) for part in change.path.split("/")]
    if OBEYED.intersection(parts[1:]) or OBEYED.intersection(parts[:1]) - {".git"}:
        return True
    if parts[-1] == "head" and parts[0] != ".git":
        return True
    if parts[0] == ".git" and change.kind != "folder" and not is_listed(change.path.partition("/")[2]):
        return True
    removes = change.kind in ("deleted", "added", "changed") or change.replaces
    return any(
        change.path == name or change.path.startswith(name + "/") or (removes and name.startswith(change.path + "/"))
        for name in names
    )


def _carried(root: int, upper: int, change: Change) -> bool:
    """Make one change below the open folder. False: it is not what it was, is neither a file that can be read, folder nor link."""
    try:
        with way_to(root, change.path) as (parent, leaf):
            if change.kind in ("deleted", "folder"):
                _make(parent, leaf, None, change)
            else:
                with way_to(upper, change.path) as (source, _):
                    _make(parent, leaf, source, change)
    except (NotADirectoryError, FileNotFoundError, ValueError):
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link in the place of a folder, or of the file
            return False
        raise
    return True


def _make(parent: int, leaf: str, source: int | None, change: Change) -> None:
    if change.kind == "deleted" or change.replaces:
        _remove(parent, leaf)
    if change.kind == "folder":
        with contextlib.suppress(FileExistsError):
            os.mkdir(leaf, 0o755, dir_fd=parent)
    elif source is not None:
        new = f".{secrets.token_hex(8)}.new"
        _copy(parent, new, source, leaf, links=not change.path.startswith(".git/"))
        with contextlib.suppress(IsADirectoryError):
            os.rename(new, leaf, src_dir_fd=parent, dst_dir_fd=parent)
            return
        _remove(parent, leaf)
        os.rename(new, leaf, src_dir_fd=parent, dst_dir_fd=parent)


def _copy(parent: int, new: str, source: int, leaf: str, *, links: bool) -> None:
    """A link as it is, where there may be `links` (git writes through them); a file with its permissions, and without the bits
    that would give it its owner's rights.

    Raises:
        ValueError: it is neither, or is being written.
    """
    if links and stat.S_ISLNK(os.stat(leaf, dir_fd=source, follow_symlinks=False).st_mode):
        try:
            target = os.readlink(leaf, dir_fd=source)
        except OSError as error:
            if error.errno == errno.EINVAL:  # a script has replaced it since
                raise ValueError(f"{leaf} is no link any more") from None
            raise
        os.symlink(target, new, dir_fd=parent)
        return
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with reader(source, leaf) as read, os.fdopen(os.open(new, flags, 0o600, dir_fd=parent), "wb") as writer:
        before = os.fstat(read.fileno())
        shutil.copyfileobj(read, writer, 1 << 20)
        after = os.fstat(read.fileno())
        os.fchmod(writer.fileno(), after.st_mode & 0o777)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        os.unlink(new, dir_fd=parent)
        raise ValueError(f"{leaf} is being written")


def _remove(parent: int, leaf: str) -> None:
    status = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(leaf, dir_fd=parent)
    else:
        os.unlink(leaf, dir_fd=parent)
