"""From a tool's name and checked arguments to its answer: the one table of what runs what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio.to_thread

from sandboxmcp.services import Services
from sandboxmcp.tools.answer import Answer
from sandboxmcp.tools.running import Progress

Call = Callable[[Services, dict[str, Any], Progress], Awaitable[Answer]]


async def _batch(services: Services, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.execution import batch_execute

    return await batch_execute(services, arguments.pop("commands"), **arguments, progress=progress)


async def _execute(services: Services, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.execution import execute

    return await execute(services, arguments.pop("code"), **arguments, progress=progress)


def _on_thread(module: str, name: str, *, budgeted: bool = True) -> Call:
    """A blocking tool: imported and run on a worker thread, which a cancellation waits for."""

    def run(services: Services, arguments: dict[str, Any]) -> Answer:
        from importlib import import_module

        tool: Callable[..., Answer] = getattr(import_module(f"sandboxmcp.tools.{module}"), name)
        if budgeted:
            arguments.setdefault("budget_tokens", services.settings["budget_tokens"])
        return tool(services, **arguments)

    async def call(services: Services, arguments: dict[str, Any], progress: Progress) -> Answer:
        return await anyio.to_thread.run_sync(partial(run, services, arguments))

    return call


CALLS: Mapping[str, Call] = {
    "ctx_batch_execute": _batch,
    "ctx_execute": _execute,
    "ctx_search": _on_thread("knowledge", "search"),
    "ctx_index": _on_thread("indexing", "index"),
    "ctx_read": _on_thread("reading", "read"),
    "ctx_sources": _on_thread("knowledge", "sources"),
    "ctx_stats": _on_thread("admin", "stats", budgeted=False),
    "ctx_doctor": _on_thread("admin", "doctor", budgeted=False),
}
