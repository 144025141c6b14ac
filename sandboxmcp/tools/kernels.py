"""The tool `ctx_kernels`: the named kernels of this server, listed, interrupted, started anew, stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from sandboxmcp.core.errors import UsageError
from sandboxmcp.services import Services
from sandboxmcp.tools.answer import Answer, answer
from sandboxmcp.tools.budget import checked_budget
from sandboxmcp.tools.receipt import counted, duration

if TYPE_CHECKING:
    from sandboxmcp.kernels.session import RunSession

_MIB = 1 << 20
_DONE: Mapping[str, str] = {
    "interrupt": "interrupted; its variables are kept",
    "restart": "started anew, empty",
    "stop": "stopped; its variables are gone",
}


async def kernels(services: Services, *, action: str = "list", kernel: str | None = None, budget_tokens: int) -> Answer:
    """List the kernels, or do something with one.

    Raises:
        UsageError: there is no such kernel, or the action needs one.
    """
    budget_tokens = checked_budget(budget_tokens)
    runner = await anyio.to_thread.run_sync(lambda: services.runner)
    session = runner.running
    if action == "list":
        return await _listed(session, [*runner.take_notices()], budget_tokens)
    if kernel is None:
        raise UsageError(f"{action} wants a kernel", "ctx_kernels lists them.")
    if session is None:
        raise UsageError(f"there is no kernel {kernel[:40]!r}", "None runs. A first call with this name starts it.")
    done = _DONE[action]
    if action == "interrupt":
        done = done if session.named.busy(kernel) else "it runs nothing that could be interrupted"
        session.named.interrupt(kernel)
    else:
        await (session.named.restart(kernel) if action == "restart" else session.named.stop(kernel))
    return answer([f"{kernel}: {done}"], budget_tokens, {"kernel": kernel, "action": action})


async def _listed(session: RunSession | None, notices: list[str], budget_tokens: int) -> Answer:
    states = [] if session is None else [asdict(state) for state in await session.states()]
    lines = [f"note: {notice}" for notice in notices] + [_line(state) for state in states]
    lines += [] if states else ["no named kernels run; ctx_execute with `kernel` starts one"]
    facts = [{**state, "age_s": round(state["age_s"], 1), "idle_s": round(state["idle_s"], 1)} for state in states]
    return answer(lines, budget_tokens, {"kernels": facts})


def _line(state: Mapping[str, Any]) -> str:
    doing = "busy" if state["busy"] else f"idle {duration(state['idle_s'])}"
    variables = [] if state["variables"] is None else [counted(state["variables"], "variable")]
    parts = [state["language"], doing, counted(state["calls"], "call"), *variables, f"{state['memory'] // _MIB} MiB"]
    return f"{state['name']}: {', '.join(parts)}, {duration(state['age_s'])} old"
