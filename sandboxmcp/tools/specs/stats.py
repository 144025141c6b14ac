"""The tool `ctx_stats`, at the terminal `stats`: how much was captured and how much returned."""

from __future__ import annotations

from sandboxmcp.tools.toolspec import Command, ToolSpec

SPEC = ToolSpec(
    name="ctx_stats",
    toolset="admin",
    description="Bytes captured and returned, per tool.",
    summary="bytes captured and returned, per tool",
    runs="sandboxmcp.tools.admin:stats",
    is_read_only=True,
    is_destructive=False,
    is_open_world=False,
    commands=(Command("stats", "Calls, bytes captured and bytes returned, per tool.", settings=("data_dir",)),),
)
