"""Paths of the workspace that turn a write into execution on the host, or rewrite the rules: they stay as they were.

What exists when the sandbox starts is bound read-only, and every folder above it inside the workspace is a mountpoint of its own,
since a mountpoint cannot be renamed and its parent can (`mv .husky h2; mkdir .husky` plants a hook otherwise; tried).
What does not exist cannot be bound: it is looked for after every script, and moved aside under a name that nothing obeys.
The checkout's repository is read-only as a whole, or where scripts may write it, all but an allow-list (gitdir.py). What its
settings, hooks and links lead to is protected too (leads.py). Repositories in other folders are judged by their content
(repositories.py). Not defended: settings of editors and agents in subfolders, the time between planting and sweeping, and build
files that people run. Source: protected.toml.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from sandboxmcp.sandbox.repositories.git_exec_paths import BARE_CONTENT, is_bare, leads
from sandboxmcp.sandbox.repositories.git_folder import unlisted, writable_folders
from sandboxmcp.sandbox.repositories.watch import GIT, Repositories
from sandboxmcp.sandbox.workspace.protected_paths import PROTECTED
from sandboxmcp.sandbox.workspace.quarantine import FOLDER, move_aside, planted, prefixes, present, reached

_TRIES = 3
"""Looks at a repository in which a script that still runs makes folders vanish."""


@dataclass(frozen=True, slots=True)
class Protection:
    """How the protected paths of one workspace stood when its sandbox was planned. Paths are relative, with `/`."""

    workspace: Path
    wanted: tuple[str, ...]
    """What is protected in every workspace, and what the user's settings add."""
    git_writable: bool
    """Scripts may write the checkout's repository, as far as the allow-list goes."""
    has_git: bool
    """There was a `.git`. One that appears later is judged by its content."""
    names: tuple[str, ...]
    """`wanted`, what of the repository is not to be written, and what its settings and links lead to."""
    existing: tuple[str, ...]
    """Can be bound read-only."""
    identity: tuple[int, int]
    """Device and inode of the workspace itself; (0, 0) when it is gone."""
    links: tuple[tuple[str, str], ...]
    """(path, target): a link, or a path through one. It cannot be bound; a changed one is put back."""
    writable: tuple[str, ...] = ()
    """Git folders in which an allow-list says what scripts may have written."""
    identities: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """What each of `existing` was. What the host replaces (git and editors save so) takes our read-only mount off it."""
    read: tuple[str, ...] = ()
    """Whole paths of what else was read to know `names`."""
    stamp: list[object] = field(default_factory=list, compare=False)
    """What lstat(2) said of all that this was made from, when it was last found to be so."""
    repositories: Repositories | None = field(default=None, compare=False)
    """What is looked at in every folder; None: scripts do not write in the workspace."""

    @property
    def mountpoints(self) -> tuple[str, ...]:
        """Folders above protected paths that exist, outermost first: each must be a mountpoint."""
        parents = {str(parent) for name in (*self.names, *self.writable) for parent in PurePosixPath(name).parents} - {"."}
        movable = (parents | set(self.writable)) - set(self.existing)
        return tuple(sorted(one for one in movable if _is_real_folder(self.workspace, one)))

    @property
    def outdated(self) -> bool:
        """Whether the host has meanwhile changed a protected path, or the workspace itself: then a sandbox must bind anew.

        Only where something that this was made from has another time of change, all of it is looked at again.
        """
        if self.repositories is not None and self.repositories.outdated:
            return True
        if self._has_unlisted():
            return True
        now = self._stamped()
        if self.stamp == now:
            return False
        if look_at(self.workspace, self.wanted, git_writable=self.git_writable, has_git=self.has_git) != self:
            return True
        self.stamp[:] = now
        return False

    def sweep(self) -> list[str]:
        """Move aside what was planted, put back links that were changed. Returns a sentence for each.

        Nothing is followed on the way: an item that still runs may swap any component for a link to the host's files.
        """
        try:
            root = os.open(self.workspace, FOLDER)
        except OSError:
            return []  # the workspace itself is gone; whoever asks for it next is told
        try:
            said = list(self._swept(root))
        finally:
            os.close(root)
        return [*said, *(self.repositories.look() if self.repositories is not None else ())]

    def _swept(self, root: int) -> Iterator[str]:
        links = dict(self.links)
        for name, which in self.identities:
            if _which(self.workspace / name) != which:
                yield f"{name} was changed on the host while a script ran, which could then write it: look at it"
        missing = set(self.names) - set(self.existing)
        for name in present(root, (name for name in self.names if name in missing)):
            yield from reached(root, name, partial(self._put_right, root, name, links))
        for folder in self.writable:
            for name in self._unlisted(root, folder):
                yield from reached(root, name, partial(self._put_right, root, name, links))

    def _unlisted(self, root: int, folder: str) -> list[str]:
        """What scripts may not have written in a repository; all of it where it cannot be looked through."""
        for _ in range(_TRIES):
            try:
                return [name for name in unlisted(root, folder, self.writable) if name not in self.existing]
            except FileNotFoundError:
                continue
            except OSError:
                break
        return [folder] if os.path.lexists(self.workspace / folder) else []

    def _put_right(self, root: int, name: str, links: dict[str, str]) -> list[str]:
        with planted(root, name, links) as found:
            if found is None or found[2] in self.existing:
                return []
            parent, leaf, path = found
            # In a repository a name that is free may be a branch's or a submodule's: git obeys none at the top of `.git`.
            in_git = path.startswith(f"{GIT}/") and bool(self.writable)
            top = os.open(GIT, FOLDER, dir_fd=root) if in_git else None
            try:
                aside = move_aside(parent, leaf, top)
            finally:
                if top is not None:
                    os.close(top)
            if path in links:
                os.symlink(links[path], leaf, dir_fd=parent)
            folder = PurePosixPath(GIT) if in_git else PurePosixPath(path).parent
            return [f"moved {path}, which is protected, to {folder / aside}"]

    def _has_unlisted(self) -> bool:
        """Whether the host has made something in a writable repository since the last sweep, which left nothing unlisted there."""
        if not self.writable:
            return False
        try:
            root = os.open(self.workspace, FOLDER)
        except OSError:
            return False
        try:
            known = dict(self.links)
            return any(name not in known for folder in self.writable for name in self._unlisted(root, folder))
        finally:
            os.close(root)

    def _stamped(self) -> list[object]:
        root = os.fspath(self.workspace)
        there = [_stamp(f"{root}/{name}") for name in (*self.existing, *(path for path, _ in self.links))]
        missing = [*present(root, sorted(set(self.names) - set(self.existing)))]
        return [_identity(self.workspace), there, missing, [_stamp(path) for path in self.read]]


def look_at(
    workspace: Path, names: tuple[str, ...] = PROTECTED, *, git_writable: bool = False, has_git: bool | None = None
) -> Protection:
    """How the protected paths stand now. `has_git`: whether its `.git` is the project's own; by default if there is one."""
    existing, links = dict[str, tuple[int, ...]](), {}
    wanted = names
    has_git = os.path.lexists(workspace / GIT) if has_git is None else has_git
    writable = writable_folders(workspace) if git_writable and has_git else ()
    if has_git:
        names += _unlisted(workspace, writable) if writable else (GIT,)
    if not git_writable and is_bare(workspace):
        names += tuple(name for name in BARE_CONTENT if os.path.lexists(workspace / name))
    found = leads(workspace, names)
    names += found.paths
    for name in present(os.fspath(workspace), names):
        link = next((part for part in prefixes(name) if os.path.islink(workspace / part)), None)
        # In a worktree or a submodule `.git` is a file that leads to the repository: what a folder would hold, it redirects.
        there = next((part for part in prefixes(name) if part == name or stat.S_ISREG(_mode(workspace / part))), name)
        if link is not None:
            links[link] = os.readlink(workspace / link)
        elif (which := _which(workspace / there)) is not None:
            existing[there] = which
    stood = Protection(
        workspace,
        wanted,
        git_writable,
        has_git,
        names,
        tuple(existing),
        _identity(workspace),
        tuple(sorted(links.items())),
        writable,
        tuple(existing.items()),
        found.read,
    )
    stood.stamp[:] = stood._stamped()
    return stood


def _unlisted(workspace: Path, writable: tuple[str, ...]) -> tuple[str, ...]:
    """What is in the writable git folders beside what scripts may write."""
    root = os.open(workspace, FOLDER)
    try:
        return tuple(name for folder in writable for name in unlisted(root, folder, writable))
    finally:
        os.close(root)


def _which(path: Path) -> tuple[int, ...] | None:
    """Device and inode; of a file also when it last changed, since an inode's number may be given again. None: it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, *(() if stat.S_ISDIR(found.st_mode) else (found.st_ctime_ns,)))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _is_real_folder(workspace: Path, name: str) -> bool:
    return all(stat.S_ISDIR(_mode(workspace / part)) for part in prefixes(name))


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0
