"""The list of tools. A tool is a module in `tools/specs/` with a `SPEC`, and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from sandboxmcp.tools.toolspec import ToolSpec

_MODULES = (
    "batch_execute",
    "execute",
    "execute_file",
    "jobs",
    "kernels",
    "search",
    "index",
    "fetch_and_index",
    "read",
    "sources",
    "purge",
    "stats",
    "doctor",
)
"""In the order in which clients, the README and the groups of the command line list them."""


def _loaded(modules: Iterable[str]) -> Mapping[str, ToolSpec]:
    specs: list[ToolSpec] = [import_module(f"sandboxmcp.tools.specs.{module}").SPEC for module in modules]
    by_name = {spec.name: spec for spec in specs}
    if len(by_name) != len(specs):
        raise ValueError("two tools have one name: " + ", ".join(spec.name for spec in specs))
    return by_name


TOOLS: Mapping[str, ToolSpec] = _loaded(_MODULES)
