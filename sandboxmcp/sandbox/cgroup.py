"""A control group for a sandbox, where one may be made: the kernel then counts its own memory (sockets, pipes) too.

Only control groups v2, and only where their tree is ours to extend: a user's systemd instance delegates memory and pids, root owns
all. Where it is not (version 1, most containers, a login session) the watchdog stands alone, and `doctor` says so. Being able to is
found by doing: a folder that exists may still refuse. Source: cgroups(7), "Delegation".
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")
_NEEDED = {"memory", "pids"}
_ROOM_FOR_OURS = 64 << 20
"""The launcher and a spare kernel are inside too, and are not the scripts' fault."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """An empty group with its limits set; whoever is to be in it writes itself into `procs`."""

    folder: Path

    @property
    def procs(self) -> str:
        return str(self.folder / "cgroup.procs")

    def out_of_memory_kills(self) -> int:
        """How many processes the kernel has killed in it for memory."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self.folder / "memory.events").read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    def remove(self) -> None:
        """Take it away, once everything in it has ended."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def make_control_group(memory: int, processes: int, mount: Path = _MOUNT, own: str | None = None) -> ControlGroup | None:
    """A group beside or below our own one with these limits (bytes, count); None where there can be none."""
    parent = _parent(mount, own if own is not None else _own_path())
    if parent is None:
        return None
    folder = parent / f"sandboxmcp-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    try:
        (folder / "memory.max").write_text(str(memory + _ROOM_FOR_OURS))
        (folder / "pids.max").write_text(str(processes))
        with contextlib.suppress(OSError):  # absent where the kernel has no swap accounting
            (folder / "memory.swap.max").write_text("0")
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return None
    return ControlGroup(folder)


def _own_path() -> str:
    """Our group in the version 2 tree, `/` first; empty when there is none."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::")), "")


def _parent(mount: Path, own: str) -> Path | None:
    """The nearest group that hands memory and pids to its children and lets us make one: beside ours, else below it."""
    if not own or not (mount / "cgroup.controllers").is_file():
        return None
    ours = mount / own.lstrip("/")
    for candidate in (ours.parent if ours != mount else ours, ours):
        with contextlib.suppress(OSError):
            given = set((candidate / "cgroup.subtree_control").read_text().split())
            if given >= _NEEDED and os.access(candidate, os.W_OK):
                return candidate
    return None
