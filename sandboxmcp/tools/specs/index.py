"""The tool `ctx_index`, at the terminal `index`: store texts, files and folders for search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, SOURCE
from sandboxmcp.tools.toolspec import Argument, Command, ToolSpec


def _arranged(given: dict[str, Any], read_input: Callable[[], str]) -> dict[str, Any]:
    """One path is the tool's own argument, further paths are the terminal's alone; `-` is standard input."""
    paths: list[str] = given.pop("paths")
    what = {"content": read_input()} if paths == ["-"] else {"path": paths[0]}
    return {**what, **given, "more": tuple(paths[1:])}


_INDEX = Command(
    "index",
    "Store texts for search; folders as git would see them.",
    parameters=(
        Argument("paths", "strings", required=True, help="Files, folders or globs; or - for standard input.", is_positional=True),
        "source",
        "include",
        "exclude",
        "max_files",
        "budget_tokens",
    ),
    arrange=_arranged,
    beyond=("more",),
    settings=("workspace", "data_dir", "ingest_roots"),
)

SPEC = ToolSpec(
    name="ctx_index",
    toolset="knowledge",
    description="Store a text, file, folder (honours .gitignore) or glob for search.",
    summary="stores a text, a file, a folder (.gitignore is honoured) or a glob",
    runs="sandboxmcp.tools.indexing:index",
    is_read_only=False,
    is_destructive=False,
    is_open_world=False,
    arguments=(
        Argument("content", "string", "or path"),
        Argument("path", "string"),
        replace(SOURCE, description="label", help="The label; default: the path."),
        Argument("include", "strings", "globs", help="Only files that match; repeatable."),
        Argument("exclude", "strings", help="No files that match; repeatable."),
        Argument("max_files", "integer", minimum=1, default=2_000, help="At most this many files."),
        BUDGET_TOKENS,
    ),
    commands=(_INDEX,),
)
