"""What the package imports is what it declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
OPTIONAL = {"pytest"}
"""Imported only where somebody else has installed it: the plugin of pytest is loaded by pytest."""


def imported(folder: Path) -> set[str]:
    """Top-level names of other packages, wherever in a module they are imported."""
    names: set[str] = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"sandboxmcp"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return {normal(match[0]) for one in wanted if (match := re.match(r"[\w.-]+", one))}


def test_every_imported_package_is_declared() -> None:
    distributions, known = packages_distributions(), declared()
    missing = {
        name: distributions.get(name, ["not installed"])
        for name in imported(ROOT / "sandboxmcp") - OPTIONAL
        if not known & {normal(one) for one in distributions.get(name, [])}
    }
    assert missing == {}
