"""Paths of the workspace that turn a write into execution on the host, or rewrite the rules: they stay as they were.

What exists when the sandbox starts is bound read-only, and every folder above it inside the workspace is a mountpoint of its
own, since a mountpoint cannot be renamed and its parent can (`mv .git g2; mkdir -p .git/hooks` plants a hook otherwise; tried).
What does not exist cannot be bound: it is looked for after every script, and moved aside under a name that nothing obeys.
Submodules are protected likewise, since git looks into them when it is asked about the project, and so is what settings, hooks
and links lead to (leads.py). Repositories in other folders are judged by their content (repositories.py). Not defended:
settings of editors and agents in subfolders, the time between planting and sweeping, and build files that people run. Sources:
protected.toml; gitrepository-layout(5) for `commondir`, which redirects config and hooks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from sandboxmcp.sandbox.leads import leads
from sandboxmcp.sandbox.protected_paths import PROTECTED
from sandboxmcp.sandbox.quarantine import FOLDER, disowned, move_aside, planted, prefixes, present, reached
from sandboxmcp.sandbox.repositories import Repositories
from sandboxmcp.sandbox.submodules import paths_to_protect, submodules


@dataclass(frozen=True, slots=True)
class Protection:
    """How the protected paths of one workspace stood when its sandbox was planned. Paths are relative, with `/`."""

    workspace: Path
    names: tuple[str, ...]
    existing: tuple[str, ...]
    """Can be bound read-only."""
    identity: tuple[int, int]
    """Device and inode of the workspace itself; (0, 0) when it is gone."""
    links: tuple[tuple[str, str], ...]
    """(path, target): a link, or a path through one. It cannot be bound; a changed one is put back."""
    submodules: tuple[str, ...] = ()
    """Folders that the project's index called submodules; what of them must stay is among `names`."""
    wanted: tuple[str, ...] = PROTECTED
    """Those of the names that do not depend on submodules."""
    identities: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """What each of `existing` was. What the host replaces (git and editors save so) takes our read-only mount off it."""
    repositories: Repositories | None = field(default=None, compare=False)
    """What is looked at in every folder; None: scripts do not write in the workspace."""

    @property
    def mountpoints(self) -> tuple[str, ...]:
        """Folders above protected paths that exist, outermost first: each must be a mountpoint."""
        parents = {str(parent) for name in self.names for parent in PurePosixPath(name).parents} - {"."}
        return tuple(sorted(parent for parent in parents if _is_real_folder(self.workspace, parent)))

    @property
    def outdated(self) -> bool:
        """Whether the host has meanwhile changed a protected path, or the workspace itself: then a sandbox must bind anew."""
        if self.repositories is not None and self.repositories.outdated:
            return True
        return look_at(self.workspace, self.wanted) != self

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
        for folder in set(submodules(self.workspace)) - set(self.submodules):
            yield from reached(root, f"{folder}/.git", partial(disowned, root, folder, links))

    def _put_right(self, root: int, name: str, links: dict[str, str]) -> list[str]:
        with planted(root, name, links) as found:
            if found is None or found[2] in self.existing:
                return []
            parent, leaf, path = found
            aside = move_aside(parent, leaf)
            if path in links:
                os.symlink(links[path], leaf, dir_fd=parent)
            return [f"moved {path}, which is protected, to {PurePosixPath(path).parent / aside}"]


def look_at(workspace: Path, names: tuple[str, ...] = PROTECTED) -> Protection:
    """How the protected paths stand now."""
    existing, links = dict[str, tuple[int, ...]](), {}
    folders = submodules(workspace)
    wanted, names = names, (*names, *paths_to_protect(workspace, folders))
    names += leads(workspace, names)
    for name in present(os.fspath(workspace), names):
        link = next((part for part in prefixes(name) if os.path.islink(workspace / part)), None)
        # In a worktree or a submodule `.git` is a file that leads to the repository: what a folder would hold, it redirects.
        there = next((part for part in prefixes(name) if part == name or stat.S_ISREG(_mode(workspace / part))), name)
        if link is not None:
            links[link] = os.readlink(workspace / link)
        elif (found := _which(workspace / there)) is not None:
            existing[there] = found
    found_links, which = tuple(sorted(links.items())), tuple(existing.items())
    return Protection(workspace, names, tuple(existing), _identity(workspace), found_links, folders, wanted, which)


def _which(path: Path) -> tuple[int, ...] | None:
    """Device and inode; of a file also when it last changed, since an inode's number may be given again. None: it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, *(() if stat.S_ISDIR(found.st_mode) else (found.st_ctime_ns,)))


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
