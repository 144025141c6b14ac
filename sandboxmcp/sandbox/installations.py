"""Installations outside /usr that are visible inside: Python's own, and those that the user's settings name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.core.errors import UsageError

_INSTALLATION = ("bin", "include", "lib", "lib64", "share", "pyvenv.cfg")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter and its surroundings outside /usr."""

    executable: str
    """Absolute path, not resolved: a virtual environment is found through its own link."""
    folders: tuple[str, ...]
    """Absolute paths to bind read-only, outermost first."""
    links: dict[str, str]
    """Links on the way from `executable` to the real file that lie in none of the folders: path → target."""

    @property
    def scripts(self) -> str:
        """The folder of its commands."""
        return os.path.dirname(self.executable)


def running_interpreter(workspace: Path) -> Interpreter:
    """The interpreter that runs us. Its packages are the ones our kernels import.

    An installation that *is* or *holds* the workspace is narrowed to its own folders (bin, lib, …), so that the
    rest of it is not dragged in.
    """
    folders: list[str] = []
    for prefix in sorted({sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}):
        folders += _narrowed(Path(prefix), workspace)
    needed = outermost(folders)
    return Interpreter(sys.executable, needed, _links(sys.executable, needed))


def outermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Those that lie in none of the others, sorted."""
    all_of_them = set(folders)
    return tuple(folder for folder in sorted(all_of_them) if not any(_below(folder, other) for other in all_of_them))


def _narrowed(prefix: Path, workspace: Path) -> list[str]:
    if _system(str(prefix)):
        return []
    if not workspace.is_relative_to(prefix):
        return [str(prefix)]
    return [str(prefix / name) for name in _INSTALLATION if (prefix / name).exists()]


def _links(executable: str, folders: Iterable[str]) -> dict[str, str]:
    links: dict[str, str] = {}
    path = executable
    while os.path.islink(path):
        target = os.readlink(path)
        if not _system(path) and not any(_below(path, folder) for folder in folders):
            links[path] = target
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return links


def _system(path: str) -> bool:
    return path == "/usr" or path.startswith("/usr/")


def _below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder + "/")


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
