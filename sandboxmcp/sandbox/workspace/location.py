"""Which folder may be the workspace: writable inside the sandbox, so never one that holds more than a project."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from sandboxmcp.core.errors import UsageError

_SYSTEM = frozenset("bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys tmp usr var".split())
_SECRETS = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config",
    ".docker",
    ".kube",
    ".local",
    ".password-store",
    ".mozilla",
    ".thunderbird",
)
"""Folders of a home that are no projects, nor is anything below most of them."""
_MAY_HOLD_PROJECTS = (".config", ".local")
_FIX = "Start in the project's folder, or name it with SANDBOXMCP_WORKSPACE."


def checked_workspace(folder: Path) -> Path:
    """The real path of a folder that may be bound writable.

    Raises:
        UsageError: it is missing, no folder, a home folder, `/`, a folder of the system, or above any of our users' homes.
    """
    try:
        real = folder.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError) as error:
        raise UsageError(f"the workspace {folder} cannot be used: {getattr(error, 'strerror', None) or error}", _FIX) from None
    if not stat.S_ISDIR(mode):
        raise UsageError(f"the workspace {real} is no folder", _FIX)
    if real == Path("/") or (len(real.parts) == 2 and real.name in _SYSTEM) or _inside_system(real):
        raise UsageError(f"the workspace {real} belongs to the system", _FIX)
    for home in _homes():
        if home.is_relative_to(real):
            raise UsageError(f"the workspace {real} is or holds a home folder, where secrets lie", _FIX)
        if real.is_relative_to(home) and _is_secret(real.relative_to(home)):
            raise UsageError(f"the workspace {real} holds settings or secrets of a user", _FIX)
    if any(ord(letter) < 32 for letter in str(real)):
        raise UsageError(f"the workspace {str(real)!r} has control characters in its name", _FIX)
    return real


def _homes() -> set[Path]:
    """The homes of people by the password database, and what HOME says: that one is an argument, so it can only add.

    System accounts (below 1000, but for root) have homes such as /bin, or the folder of a service's own project.
    """
    homes = {Path(entry.pw_dir) for entry in pwd.getpwall() if entry.pw_uid in (0, os.getuid()) or 1000 <= entry.pw_uid < 60000}
    if said := os.environ.get("HOME", "").strip():
        homes.add(Path(said))
    return {home.resolve() for home in homes if len(home.parts) > 1}


def _is_secret(inside_home: Path) -> bool:
    first = inside_home.parts[0]
    return first in _SECRETS and (len(inside_home.parts) == 1 or first not in _MAY_HOLD_PROJECTS)


def _inside_system(folder: Path) -> bool:
    """Folders below these are the sandbox's own read-only system, or the kernel's."""
    return any(
        folder.is_relative_to(f"/{name}")
        for name in ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr", "var/lib", "var/spool")
    )
