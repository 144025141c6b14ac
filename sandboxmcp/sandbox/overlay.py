"""A workspace whose changes are kept aside: scripts see and change a layer over it, and a person applies or discards that.

The layer lies beside the store, one per workspace: `upper` holds what was changed, as overlayfs writes it (a character device 0/0
is a deletion, the attribute user.overlay.opaque marks a folder that replaced another), `work` is overlayfs's own. One process at
a time may mount it: the system does not define what two mounts of one layer do. While it is mounted nothing in it is changed from
outside. What is applied is copied out of it and then makes no difference any more; what is discarded is moved aside as a whole,
and the sandbox that has it mounted is replaced when nothing runs in it.
What is applied was written by scripts: links are never followed on the way, protected paths are left out.
Source: Documentation/filesystems/overlayfs.rst.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from sandboxmcp.core.errors import UsageError
from sandboxmcp.sandbox.protect import PROTECTED

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 1 << 20
"""Bytes of a text that is shown line by line."""
_DEEPEST = 200
"""Folders within folders: each is an open descriptor while it is looked into."""
_OPAQUE = "user.overlay.opaque"
_ASIDE = "aside-"
"""Before the names of folders with what was discarded while it was mounted."""
_held: dict[Path, int] = {}
"""Locks of this process, which may use a layer any number of times one after the other."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the layer and the workspace."""

    kind: Literal["added", "changed", "deleted", "folder"]
    path: str
    """Relative, with `/`."""
    replaces: bool = False
    """A folder that stands where something else was, none of which is seen through it."""


def layer_of(data_dir: Path, workspace: Path) -> Path:
    """The folder of a workspace's layer, which need not exist."""
    return data_dir / "overlays" / hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]


def prepare(layer: Path, workspace: Path) -> Path:
    """The layer, there and ours until this process ends.

    Raises:
        UsageError: another process uses it, or it would lie inside the workspace.
    """
    if os.path.realpath(layer).startswith(os.path.realpath(workspace) + "/"):
        raise UsageError(f"the data folder lies in the workspace {workspace}, and so would its overlay", "Move data_dir elsewhere.")
    layer.mkdir(mode=0o700, parents=True, exist_ok=True)
    claim(layer)
    with _changing(layer):
        for name in ("upper", "work"):
            (layer / name).mkdir(mode=0o700, exist_ok=True)
    return layer


def claim(layer: Path) -> None:
    """Raises: UsageError, another process uses the layer."""
    if layer in _held:
        return
    fd = os.open(layer / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise UsageError("the overlay of this workspace is used by another process", "Stop that server first.") from None
    _held[layer] = fd
    for aside in layer.glob(f"{_ASIDE}*"):  # nobody has them mounted any more
        _remove_all(aside)


def is_ours(layer: Path) -> bool:
    """Claim it if nobody uses it. False: another process does."""
    try:
        claim(layer)
    except UsageError:
        return False
    return True


def identity(layer: Path) -> tuple[int, int]:
    """Which `upper` it has: another one after a discard by another process."""
    status = os.stat(layer / "upper")
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def _changing(layer: Path) -> Iterator[None]:
    """One process at a time makes, moves and applies."""
    with open(layer / "changing", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def release(layer: Path) -> None:
    """Let others have it."""
    if (fd := _held.pop(layer, None)) is not None:
        os.close(fd)


def changes(layer: Path, workspace: Path) -> Iterator[Change]:
    """What the layer changes, folders before what is in them. Unreadable folders count as unchanged.

    Raises:
        OSError: folders are nested more deeply than is looked into.
    """
    with _opened(layer / "upper") as upper, _opened(workspace) as lower:
        if upper is not None:
            yield from _changes(upper, lower, "")


@contextlib.contextmanager
def _opened(folder: str | Path, inside: int | None = None) -> Iterator[int | None]:
    """A folder, never through a link; None: there is none.

    Scripts may run: whatever is reached by a path could be something of the host's a moment later, so all that is in the layer is
    reached from an open folder, name by name.
    """
    try:
        fd = os.open(folder, _FOLDER, dir_fd=inside)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EACCES, errno.ENOTDIR, errno.ELOOP):
            raise
        fd = None
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


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
            with _opened(entry, upper) as inner, _opened_if(entry, lower) as other:
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
    with _opened(name, inside) as fd:
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
        with _reader(upper, name) as left, _reader(lower, name) as right:
            while piece := left.read(1 << 20):
                if piece != right.read(len(piece)):
                    return False
            return right.read(1) == b""
    except (OSError, ValueError):
        return False


def _reader(folder: int, name: str) -> BinaryIO:
    """A regular file of an open folder.

    Raises:
        OSError: it cannot be opened. ValueError: it is none, or nobody may read it.
    """
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EACCES):  # a link, a socket, a deletion
            raise ValueError(f"{name} is no regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ValueError(f"{name} is no regular file")
    return os.fdopen(fd, "rb")


@contextlib.contextmanager
def _way_to(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The open folder that a path lies in, and its last name.

    Raises:
        OSError: a folder on the way is none, or a link.
    """
    *folders, leaf = path.split("/")
    with contextlib.ExitStack() as held:
        folder = root
        for name in folders:
            folder = os.open(name, _FOLDER, dir_fd=folder)
            held.callback(os.close, folder)
        yield folder, leaf


def patch(layer: Path, workspace: Path, change: Change) -> list[str]:
    """A changed text's lines in unified form; empty for what is no text, or too long."""
    texts = []
    for base in (workspace, layer / "upper"):
        text = b""
        with contextlib.suppress(OSError, ValueError), _opened(base) as root:
            if root is not None:
                with _way_to(root, change.path) as (folder, leaf), _reader(folder, leaf) as file:
                    text = file.read(_LONGEST + 1)
        texts.append(text)
    if change.kind == "folder" or any(len(text) > _LONGEST or b"\0" in text for text in texts):
        return []
    before, after = (text.decode(errors="replace").splitlines() for text in texts)
    return list(difflib.unified_diff(before, after, f"a/{change.path}", f"b/{change.path}", lineterm=""))


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
        held.enter_context(_changing(layer))
        for change in changes(layer, workspace):
            (skipped if _protected(change) or not _carried(root, upper, change) else done).append(change)
    return done, skipped


def _held_open(folder: Path, held: contextlib.ExitStack) -> int:
    fd = os.open(folder, _FOLDER)
    held.callback(os.close, fd)
    return fd


def _protected(change: Change) -> bool:
    """Whether it touches a protected path, or takes away a folder that holds one; or a repository in a subfolder.

    git runs what a repository's configuration and hooks name, and looks at a submodule's when it is asked about the project.
    """
    parts = change.path.split("/")
    if ".git" in parts[1:] or parts[:2] in ([".git", "modules"], [".git", "worktrees"]):
        return True
    removes = change.kind in ("deleted", "added", "changed") or change.replaces
    return any(
        change.path == name or change.path.startswith(name + "/") or (removes and name.startswith(change.path + "/"))
        for name in PROTECTED
    )


def _carried(root: int, upper: int, change: Change) -> bool:
    """Make one change below the open folder. False: it is not what it was, is neither a file that can be read, folder nor link."""
    try:
        with _way_to(root, change.path) as (parent, leaf):
            if change.kind in ("deleted", "folder"):
                _make(parent, leaf, None, change)
            else:
                with _way_to(upper, change.path) as (source, _):
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
        _copy(parent, new, source, leaf)
        with contextlib.suppress(IsADirectoryError):
            os.rename(new, leaf, src_dir_fd=parent, dst_dir_fd=parent)
            return
        _remove(parent, leaf)
        os.rename(new, leaf, src_dir_fd=parent, dst_dir_fd=parent)


def _copy(parent: int, new: str, source: int, leaf: str) -> None:
    """A link as it is; a file with its permissions, and without the bits that would give it its owner's rights.

    Raises:
        ValueError: it is neither, or is being written.
    """
    if stat.S_ISLNK(os.stat(leaf, dir_fd=source, follow_symlinks=False).st_mode):
        os.symlink(os.readlink(leaf, dir_fd=source), new, dir_fd=parent)
        return
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with _reader(source, leaf) as reader, os.fdopen(os.open(new, flags, 0o600, dir_fd=parent), "wb") as writer:
        before = os.fstat(reader.fileno())
        shutil.copyfileobj(reader, writer, 1 << 20)
        after = os.fstat(reader.fileno())
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


def discard(layer: Path) -> None:
    """Forget every change. Scripts that run meanwhile go on with what they see, and what they write is forgotten too."""
    if not layer.exists():
        return
    ours = is_ours(layer)
    with _changing(layer):
        if not ours:
            aside = layer / f"{_ASIDE}{secrets.token_hex(8)}"
            aside.mkdir(mode=0o700)
        for name in ("upper", "work"):
            if not ours:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(layer / name, aside / name)
            else:
                _remove_all(layer / name)
            (layer / name).mkdir(mode=0o700, exist_ok=True)


def settle(layer: Path) -> None:
    """After `apply`: forget what was applied, unless a sandbox has it mounted; there it makes no difference any more."""
    if layer.exists() and is_ours(layer):
        discard(layer)


def _remove_all(folder: Path) -> None:
    """Overlayfs makes folders that nobody may enter, and scripts may too."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
