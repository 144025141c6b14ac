"""The tool `ctx_sources`, at the terminal `sources`: list or forget what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, SOURCE
from sandboxmcp.tools.toolspec import Argument, Command, ToolSpec


def _arranged(given: dict[str, Any], read_input: Callable[[], str]) -> dict[str, Any]:
    """`--forget HANDLE` is another action."""
    forget = bool(given["handle"])
    return {**given, "action": "forget" if forget else "list", "source": None if forget else given["source"]}


SPEC = ToolSpec(
    name="ctx_sources",
    toolset="knowledge",
    description="List or forget what is stored.",
    summary="lists what is stored, forgets what should not be",
    runs="sandboxmcp.tools.knowledge:sources",
    is_read_only=False,
    is_destructive=True,
    is_open_world=False,
    arguments=(
        Argument("action", "string", choices=("list", "forget"), is_hidden=True),
        SOURCE,
        Argument("handle", "string", help="Forget this handle.", flags=("--forget",)),
        BUDGET_TOKENS,
    ),
    commands=(Command("sources", "List this project's sources, newest first; or forget one.", arrange=_arranged),),
)
