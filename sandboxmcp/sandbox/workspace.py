"""Which folder may be the workspace: writable inside the sandbox, so never one that holds more than a project."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from sandboxmcp.core.errors import UsageError

_SYSTEM = frozenset("bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys tmp usr var".split())
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
    home = _home()
    if real == Path("/") or (len(real.parts) == 2 and real.name in _SYSTEM) or _inside_system(real):
        raise UsageError(f"the workspace {real} belongs to the system", _FIX)
    if real == home or home.is_relative_to(real):
        raise UsageError(f"the workspace {real} is or holds your home folder, where secrets lie", _FIX)
    if any(ord(letter) < 32 for letter in str(real)):
        raise UsageError(f"the workspace {str(real)!r} has control characters in its name", _FIX)
    return real


def _home() -> Path:
    """The user's home by the password database: HOME is an argument that anybody can set."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    except KeyError:
        return Path(os.environ.get("HOME", "/nonexistent")).resolve()


def _inside_system(folder: Path) -> bool:
    """Folders below these are the sandbox's own read-only system, or the kernel's."""
    return any(
        folder.is_relative_to(f"/{name}") for name in ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr")
    )
