"""The checkout's own repository: what of it scripts may write under `git = "rw"`, and what of it lies outside the workspace.

By default the repository is read-only inside. Where it is writable, an allow-list says what scripts may have written: objects,
refs, logs, index, heads, messages, and the state of a rebase or cherry-pick that runs no command. Everything else git obeys or
follows (settings, hooks, links, alternates, an `exec` line), so it is bound read-only where it exists, and moved aside where
it appears.
Sources: gitrepository-layout(5), git-worktree(1).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from sandboxmcp.sandbox.openat import FOLDER, reader
from sandboxmcp.sandbox.repositories.git_content import runs_nothing, says_what_runs
from sandboxmcp.sandbox.repositories.git_exec_paths import first_line, settings_in

_COMMON_PARTS = ("HEAD", "config", "description", "hooks", "info", "logs", "objects", "packed-refs", "refs", "shallow", "worktrees")
"""What reading commands need of a repository that holds other folders too."""

Kind = Literal["file", "folder", "other"]
_LOCK = r"(?:\.lock)?"
_FILE = re.compile(
    rf"(?:HEAD|[A-Z][A-Z_]*_HEAD|MERGE_(?!RR)[A-Z]+|SQUASH_MSG|AUTO_MERGE|[A-Z]+_EDITMSG|index|packed-refs|shallow){_LOCK}"
    r"|packed-refs\.new|sharedindex\.[0-9a-f]+(?:\.lock)?|sharedindex_\w{6}|shallow_\w{6}|next-index-\d+(?:\.lock)?|gc\.(?:pid|log)(?:\.lock)?"
)
_OBJECT_INFO = re.compile(r"(?:packs|commit-graph|tmp_\w+)(?:\.lock)?|commit-graphs")
_LFS = frozenset({"cache", "incomplete", "objects", "tmp"})
_ASIDE = re.compile(r".*\.quarantined-[0-9a-f]+")
"""What was moved aside to the top of `.git`, where git obeys nothing of that name. Elsewhere a branch may have it."""
GIT = ".git"
_LONGEST = 4 << 20
_DEEPEST = 64
"""Folders within folders: each is an open descriptor while it is looked into."""
_MOST_MODULES = 500


def writable_folders(workspace: Path) -> tuple[str, ...]:
    """The repositories of the checkout and of its submodules below `.git/modules`, relative; none where `.git` is no folder."""
    if not _is_folder(workspace / ".git"):
        return ()
    return (".git", *_modules(workspace, ".git/modules"))


def _modules(workspace: Path, folder: str) -> Iterator[str]:
    """A submodule's name may have slashes, and it may have submodules of its own. Those beyond the bound stay read-only."""
    waiting, found = [folder], 0
    while waiting and found < _MOST_MODULES:
        place = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(workspace / place) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                path = f"{place}/{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if os.path.lexists(workspace / path / "HEAD"):
                    found += 1
                    yield path
                    path = f"{path}/modules"
                waiting.append(path)


def outside_folders(workspace: Path) -> tuple[str, ...]:
    """Folders outside the workspace that hold its repository, where `.git` is a file: of a linked worktree or a submodule.

    Only what says itself, where no script can write, that this workspace is its own: else a planted `.git` file would show any
    folder of the host. Absolute, resolved paths.
    """
    entry = workspace / ".git"
    line = first_line(entry)
    if not line.startswith("gitdir:"):
        return ()
    folder = Path(os.path.realpath(workspace / line.removeprefix("gitdir:").strip()))
    if folder.is_relative_to(workspace):
        return ()
    common = folder.parent.parent
    if folder.parent.name == "worktrees" and _leads_to(folder / "commondir", common) and _leads_to(folder / "gitdir", entry):
        return _parts_without(common, workspace) if _is_repository(common) else ()
    worktrees = [value for key, value in settings_in(folder / "config") if key == "core.worktree"]
    if worktrees and Path(os.path.realpath(folder / worktrees[-1])) == workspace and _is_repository(folder):
        return _parts_without(folder, workspace)
    return ()


def _leads_to(pointer: Path, place: Path) -> bool:
    line = first_line(pointer)
    return bool(line) and os.path.realpath(pointer.parent / line) == os.path.realpath(place)


def _parts_without(repository: Path, workspace: Path) -> tuple[str, ...]:
    """The whole repository, but where the workspace lies in it: then what reading needs, and none of the folders beside it."""
    if repository.is_relative_to(workspace):
        return ()
    if not workspace.is_relative_to(repository):
        return (os.fspath(repository),)
    return tuple(os.fspath(repository / name) for name in _COMMON_PARTS if os.path.exists(repository / name))


def _is_repository(folder: Path) -> bool:
    return os.path.lexists(folder / "HEAD") and all((folder / name).is_dir() for name in ("objects", "refs"))


def is_listed(path: str) -> bool:
    """Whether a regular file of the checkout's repository is on the allow-list by its name; `path` is relative to `.git`.

    The state of a rebase and of submodules is not: what it holds cannot be told by a name.
    """
    first, _, rest = path.partition("/")
    if first == "objects":
        return bool(rest) and (not rest.startswith("info/") or bool(_OBJECT_INFO.fullmatch(rest.split("/")[1])))
    return bool(_FILE.fullmatch(path)) if not rest else first in ("refs", "logs")


def unlisted(root: int, folder: str, repositories: Iterable[str]) -> Iterator[str]:
    """What is in one of the `repositories` and not on the allow-list, relative to the open folder `root`.

    What cannot be read or understood counts as not listed. Links are never followed.
    """
    modules = {name for name in repositories if name.startswith(f"{folder}/modules/")}
    with _entered(root, folder) as fd:
        for name, kind in _entries(fd):
            path = f"{folder}/{name}"
            if (kind == "file" and _FILE.fullmatch(name)) or (folder == GIT and _ASIDE.fullmatch(name)):
                continue
            if kind == "folder" and name in _FOLDERS:
                yield from (f"{folder}/{one}" for one in _FOLDERS[name](fd, name))
            elif kind == "folder" and name == "modules" and modules:
                yield from _beside_modules(root, path, modules)
            else:
                yield path


def _beside_modules(root: int, folder: str, modules: set[str]) -> Iterator[str]:
    """What stands beside the repositories of known submodules; their own content is looked at by itself."""
    with _entered(root, folder) as fd:
        for name, kind in _entries(fd):
            path = f"{folder}/{name}"
            if path in modules:
                continue
            if kind == "folder" and any(one.startswith(f"{path}/") for one in modules):
                yield from _beside_modules(root, path, modules)
            else:
                yield path


_clean: dict[tuple[int, int], int] = {}
"""Change times of folders that held nothing but files, by device and inode: they need not be listed again."""
_MOST_CLEAN = 20_000
_YOUNG_NS = 2_000_000_000


def _files_only(parent: int, name: str, depth: int = 1) -> Iterator[str]:
    """Links, special files, and folders deeper than a branch's name: git writes through links like `logs/HEAD -> ~/.bashrc`."""
    with _entered(parent, name) as fd:
        status = os.fstat(fd)
        which = status.st_dev, status.st_ino
        if _clean.get(which) == status.st_ctime_ns:
            return
        entries = _entries(fd)
        for one, kind in entries:
            if kind == "folder" and depth < _DEEPEST:
                yield from (f"{name}/{path}" for path in _files_only(fd, one, depth + 1))
            elif kind != "file":
                yield f"{name}/{one}"
        # A change within the tick of the clock in which it was read would not show.
        if all(kind == "file" for _, kind in entries) and status.st_ctime_ns < time.time_ns() - _YOUNG_NS:
            if len(_clean) >= _MOST_CLEAN:
                _clean.clear()
            _clean[which] = status.st_ctime_ns


def _objects(parent: int, name: str) -> Iterator[str]:
    """git replaces what a link among its packs and graphs leads to, and deletes in a folder that is one."""
    with _entered(parent, name) as fd:
        for one, kind in _entries(fd):
            if one == "info" and kind == "folder":
                yield from (f"{name}/{path}" for path in _only(fd, one, lambda leaf, _: bool(_OBJECT_INFO.fullmatch(leaf))))
            if kind == "folder":
                yield from (
                    f"{name}/{path}" for path in _files_only(fd, one) if not path.startswith("info/") or path.count("/") > 1
                )
            elif kind == "other":
                yield f"{name}/{one}"


def _lfs(parent: int, name: str) -> Iterator[str]:
    yield from _only(parent, name, lambda leaf, kind: kind == "folder" and leaf in _LFS)


def _only(parent: int, name: str, listed: Callable[[str, Kind], bool]) -> Iterator[str]:
    with _entered(parent, name) as fd:
        yield from (f"{name}/{one}" for one, kind in _entries(fd) if kind == "other" or not listed(one, kind))


def _sequencer(parent: int, name: str) -> Iterator[str]:
    """Files by which a rebase, `git am` or cherry-pick that goes on would run a command, or which cannot be read."""
    with _entered(parent, name) as fd:
        for one, kind in _entries(fd):
            if kind == "folder" and one == "rewritten":
                yield from (f"{name}/{path}" for path in _files_only(fd, one))
            elif kind != "file" or not _runs_nothing(fd, one):
                yield f"{name}/{one}"


def _runs_nothing(folder: int, name: str) -> bool:
    if not says_what_runs(name):
        return True
    try:
        with reader(folder, name) as file:
            content = file.read(_LONGEST + 1)
    except (OSError, ValueError):
        return False
    return len(content) <= _LONGEST and runs_nothing(name, content)


_FOLDERS: dict[str, Callable[[int, str], Iterator[str]]] = {
    "refs": _files_only,
    "logs": _files_only,
    "objects": _objects,
    "lfs": _lfs,
    "rebase-merge": _sequencer,
    "rebase-apply": _sequencer,
    "sequencer": _sequencer,
}


def _entries(folder: int) -> list[tuple[str, Kind]]:
    """Names and kinds in an open folder."""
    with os.scandir(folder) as entries:
        return sorted((entry.name, _kind(entry)) for entry in entries)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "folder" if entry.is_dir(follow_symlinks=False) else "other"


@contextlib.contextmanager
def _entered(parent: int, path: str) -> Iterator[int]:
    """A folder opened from another, name by name; its owner's rights are given back where a script took them away.

    Raises:
        OSError: it is gone, none, or cannot be read.
    """
    opened = [os.dup(parent)]
    try:
        for name in path.split("/"):
            try:
                opened.append(os.open(name, FOLDER, dir_fd=opened[-1]))
            except PermissionError:
                opened.append(_made_readable(opened[-1], name))
        yield opened[-1]
    finally:
        for fd in opened:
            os.close(fd)


def _made_readable(parent: int, name: str) -> int:
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", stat.S_IMODE(os.fstat(place).st_mode) | stat.S_IRWXU)
    finally:
        os.close(place)
    return os.open(name, FOLDER, dir_fd=parent)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise
