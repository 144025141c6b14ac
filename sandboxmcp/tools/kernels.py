"""The tool `ctx_kernels`: the named kernels of this server, listed, interrupted, started anew, stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.surface import call, quoted
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.render.receipt import counted, duration
from sandboxmcp.session import Session

if TYPE_CHECKING:
    from sandboxmcp.kernels.runner import Runner
    from sandboxmcp.kernels.sandbox_session import RunSession

_MIB = 1 << 20
INTERRUPTED: Mapping[str, str] = {
    "interrupted": "interrupted; its variables are kept",
    "idle": "it runs nothing that could be interrupted",
    "ended": "it has ended; its variables are gone",
    "runs on": "it was interrupted and runs on: it does not heed that. restart ends it, and its variables are gone then",
}
"""What an interrupt came to, in words."""
_BY = "ctx_kernels"
_DONE: Mapping[str, str] = {
    "restart": "started anew, empty",
    "stop": "stopped; its variables are gone",
}


async def kernels(session: Session, *, action: str = "list", kernel: str | None = None, budget_tokens: int) -> Answer:
    """List the kernels, or do something with one.

    Raises:
        UsageError: there is no such kernel, or the action needs one.
    """
    budget_tokens = checked_budget(budget_tokens)
    runner = await anyio.to_thread.run_sync(lambda: session.runner)
    sandbox = runner.running
    if action == "list":
        return await _listed(sandbox, runner, budget_tokens)
    if kernel is None:
        raise UsageError(f"{action} wants a kernel", f"{call('ctx_kernels')} lists them.")
    if sandbox is None:
        raise UsageError(f"there is no kernel {kernel[:40]!r}", "None runs. A first call with this name starts it.")
    facts = {"kernel": kernel, "action": action}
    if action == "interrupt":
        state = await sandbox.named.interrupt(kernel, f"{_BY} interrupt")
        return answer([f"{kernel}: {INTERRUPTED[state]}"], budget_tokens, facts | {"state": state}, is_error=state == "runs on")
    by = f"{_BY} {action}"
    await (sandbox.named.restart(kernel, by) if action == "restart" else sandbox.named.stop(kernel, by))
    return answer([f"{kernel}: {_DONE[action]}"], budget_tokens, facts)


async def _listed(sandbox: RunSession | None, runner: Runner, budget_tokens: int) -> Answer:
    states = [] if sandbox is None else [asdict(state) for state in await sandbox.states()]
    lines = [f"note: {notice}" for notice in runner.take_notices()] + [_line(state) for state in states]
    lines += [] if states else [f"no named kernels run; {call('ctx_execute')} with {quoted('kernel')} starts one"]
    facts = [{**state, "age_s": round(state["age_s"], 1), "idle_s": round(state["idle_s"], 1)} for state in states]
    return answer(lines, budget_tokens, {"kernels": facts})


def _line(state: Mapping[str, Any]) -> str:
    doing = "busy" if state["busy"] else f"idle {duration(state['idle_s'])}"
    variables = [] if state["variables"] is None else [counted(state["variables"], "variable")]
    parts = [state["language"], doing, counted(state["calls"], "call"), *variables, f"{state['memory'] // _MIB} MiB"]
    return f"{state['name']}: {', '.join(parts)}, {duration(state['age_s'])} old"
