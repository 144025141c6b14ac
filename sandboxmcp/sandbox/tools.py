"""Installations outside /usr that the user wants inside: version managers' runtimes, toolchains, SDKs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sandboxmcp.core.errors import UsageError


def tool_folders(names: Iterable[str]) -> tuple[str, ...]:
    """The real folders behind the setting, each once; those of /usr are inside anyway.

    Raises:
        UsageError: one is missing, or is so large a part of the machine that it would show what nobody meant to.
    """
    found: dict[str, None] = {}
    for name in names:
        folder = os.path.realpath(os.path.expanduser(name))
        if not os.path.isdir(folder):
            raise UsageError(f"tool_folders names {name}, which is no folder", "Correct or remove it.")
        if Path.home().is_relative_to(folder) or folder.count("/") < 2:
            raise UsageError(f"tool_folders names {name}, which holds more than an installation", "Name the installation itself.")
        if not folder.startswith("/usr/"):
            found[folder] = None
    return tuple(found)


def path_of(folder: str) -> str:
    """The folder of an installation's commands."""
    return f"{folder}/bin" if os.path.isdir(f"{folder}/bin") else folder
