"""From a tool's specification and checked arguments to its answer."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from sandboxmcp.render.answer import Answer
from sandboxmcp.session import Session
from sandboxmcp.tools.toolspec import BUDGET, ToolSpec

if TYPE_CHECKING:
    from sandboxmcp.tools.script_runs import Progress


async def call(tool: ToolSpec, session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    """Run the tool. A blocking one runs on a worker thread, which a cancellation waits for."""
    if tool.module not in sys.modules:
        await anyio.to_thread.run_sync(import_module, tool.module)  # other calls need not wait for it
    function = tool.function()
    if tool.has_budget:
        arguments = {BUDGET: session.settings.budget_tokens} | arguments
    if _takes_progress(function):
        arguments = arguments | {"progress": progress}
    if inspect.iscoroutinefunction(function):
        answer: Answer = await function(session, **arguments)
        return answer
    return await anyio.to_thread.run_sync(partial(function, session, **arguments))


@cache
def _takes_progress(function: Callable[..., Any]) -> bool:
    return "progress" in inspect.signature(function).parameters
