"""Paths in code: where they lead, whether that is outside the workspace, and whether a rule's pattern covers them.

Nothing is looked up on a disk: a link may lead elsewhere, and the sandbox stands for that.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from sandboxmcp.policy.facts import HOLE, Access

_SCRATCH = (
    "/tmp", "/var/tmp", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd", "/dev/shm", "/proc/self",
)  # fmt: skip
"""Absolute places whose loss is nobody's loss."""


@dataclass(frozen=True, slots=True)
class Places:
    """Absolute paths that the code may spell out, empty: not known; and places of the network that the settings open."""

    workspace: str = ""
    home: str = ""
    allow_private: tuple[str, ...] = ()
    """Private addresses, networks and names, as `network.allow_private` has them."""


def resolved(path: str, cwd: str, places: Places) -> str:
    """The path without `.` and `..`: relative to the workspace if inside, else absolute or beginning with `~` or `..`."""
    joined = path if path.startswith(("/", "~")) else posixpath.join(cwd, path)
    if joined.startswith("~") and places.home:
        joined = places.home + joined[1:] if joined[1:2] in ("", "/") else joined
    if places.workspace and not joined.startswith(("/", "~", HOLE)):
        joined = posixpath.join(places.workspace, joined)
    joined = "/" + posixpath.normpath(joined).lstrip("/") if joined.startswith("/") else posixpath.normpath(joined)
    for root, name in ((places.workspace, "."), (places.home, "~")):
        if root and (joined == root or joined.startswith(root.rstrip("/") + "/")):
            return posixpath.normpath(name + joined[len(root) :])
    return joined


def is_outside(path: str) -> bool:
    """Whether a resolved path lies outside the workspace and is no scratch space."""
    if path.startswith(HOLE):
        return False
    if path.startswith(("/", "~")):
        return not is_scratch(path) or path in _SCRATCH[:2]
    return path == ".." or path.startswith("../")


def is_scratch(path: str) -> bool:
    """Whether a resolved path is for passing things, and its loss is nobody's loss."""
    return any(path == place or path.startswith(place + "/") for place in _SCRATCH)


def covers(patterns: Sequence[str], path: str, access: Access) -> bool:
    """Whether a resolved path is one of the patterns or below it; moving away a folder above one counts too.

    `~/x` and `/x` are anchored, `*` is every path, anything else matches wherever its parts stand in a row. Each part is a glob.
    """
    parts = _parts(path)
    return any(pattern == "*" or _covers(_parts_of_pattern(pattern), parts, access) for pattern in patterns)


def _covers(pattern: list[str], parts: list[str], access: Access) -> bool:
    starts = range(1) if pattern[0] in ("/", "~") else range(len(parts))
    for start in starts:
        if access != "move" and len(pattern) > len(parts) - start:
            return False
        row = parts[start : start + len(pattern)]
        if all(map(fnmatchcase, row, pattern)) and (len(row) == len(pattern) or (access == "move" and row)):
            return True
    return False


@lru_cache(maxsize=1024)
def _parts_of_pattern(pattern: str) -> list[str]:
    return _parts(pattern)


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".", "**")]
    return ["/", *parts] if path.startswith("/") else parts or ["."]
