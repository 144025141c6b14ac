"""From a tool's name and checked arguments to its answer: the one table of what runs what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio.to_thread

from sandboxmcp.render.answer import Answer
from sandboxmcp.session import Session
from sandboxmcp.tools.script_runs import Progress

Call = Callable[[Session, dict[str, Any], Progress], Awaitable[Answer]]


async def _batch(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.execution import batch_execute

    return await batch_execute(session, arguments.pop("commands"), **arguments, progress=progress)


async def _execute(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.execution import execute

    return await execute(session, arguments.pop("code"), **arguments, progress=progress)


async def _execute_file(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.execution import execute_file

    return await execute_file(session, arguments.pop("code"), **arguments, progress=progress)


async def _fetch(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.fetching import fetch_and_index

    return await fetch_and_index(session, **_budgeted(session, arguments), progress=progress)


async def _jobs(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.jobs import jobs

    return await jobs(session, **_budgeted(session, arguments))


async def _kernels(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.kernels import kernels

    return await kernels(session, **_budgeted(session, arguments))


async def _doctor(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
    from sandboxmcp.tools.admin import doctor

    return await doctor(session)


def _budgeted(session: Session, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"budget_tokens": session.settings.budget_tokens} | arguments


def _on_thread(module: str, name: str, *, budgeted: bool = True) -> Call:
    """A blocking tool: imported and run on a worker thread, which a cancellation waits for."""

    def run(session: Session, arguments: dict[str, Any]) -> Answer:
        from importlib import import_module

        tool: Callable[..., Answer] = getattr(import_module(f"sandboxmcp.tools.{module}"), name)
        return tool(session, **(_budgeted(session, arguments) if budgeted else arguments))

    async def call(session: Session, arguments: dict[str, Any], progress: Progress) -> Answer:
        return await anyio.to_thread.run_sync(partial(run, session, arguments))

    return call


CALLS: Mapping[str, Call] = {
    "ctx_batch_execute": _batch,
    "ctx_execute": _execute,
    "ctx_execute_file": _execute_file,
    "ctx_jobs": _jobs,
    "ctx_kernels": _kernels,
    "ctx_search": _on_thread("knowledge", "search"),
    "ctx_index": _on_thread("indexing", "index"),
    "ctx_fetch_and_index": _fetch,
    "ctx_read": _on_thread("reading", "read"),
    "ctx_sources": _on_thread("knowledge", "sources"),
    "ctx_purge": _on_thread("purging", "purge"),
    "ctx_stats": _on_thread("admin", "stats", budgeted=False),
    "ctx_doctor": _doctor,
}
