"""What a person types, run as an agent's call is: judged first, captured, stored. Its output can be followed while it flows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import BYTE_ORDER_MARK, Script
from sandboxmcp.kernels.languages import UnknownLanguage
from sandboxmcp.render.receipt import record
from sandboxmcp.session import Session
from sandboxmcp.tools.script_runs import Job, run_job

if TYPE_CHECKING:
    from sandboxmcp.kernels.runner import Runner
    from sandboxmcp.kernels.script_run import Begun

_NO_HURRY_S = 86_400.0
"""A person at a terminal stops what takes too long."""


class Desk:
    """The kernels of this process by name, for one person or for a program of another process (tools/kernel_rpc.py)."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def open(self, kernel: str, language: str) -> None:
        """Start the kernel unless it runs.

        Raises:
            UsageError: the name cannot be one, or the language keeps no state.
            SandboxUnavailable: there is no sandbox, or the kernel does not start.
        """
        runner = await self._runner()
        if language not in runner.languages():
            raise UnknownLanguage(language, runner.languages())
        async with runner.session() as sandbox:
            await sandbox.named.open(kernel, language)

    async def run(
        self,
        code: str,
        language: str,
        kernel: str | None = None,
        on_begin: Callable[[Begun], None] | None = None,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Run code in a kernel that runs, or fresh; what became of it as in structured content, and whether the `kernel_ended`.

        Raises:
            UsageError: the code cannot be run at all. KernelGone: the kernel has ended, perhaps while this waited for its turn.
            SandboxUnavailable, BrokenPack, StoreError: nothing could run or be kept.
        """
        if "\0" in code:
            raise UsageError("the code holds a NUL byte, which no interpreter accepts", "Take it out or write it as \\0.")
        script = Script("", language, code.removeprefix(BYTE_ORDER_MARK), min(timeout_s or _NO_HURRY_S, _NO_HURRY_S))
        labels = ("",), (f"execute:{language}",)
        job = Job(
            (script,),
            *labels,
            "execute",
            uuid.uuid4().hex[:12],
            kernel=kernel,
            kernel_must_run=kernel is not None,
            on_begin=on_begin,
        )
        (item,) = await run_job(self._session, job)
        facts = record(item)
        return {**facts, "kernel_ended": kernel is not None and facts["status"] != "denied" and not await self.alive(kernel)}

    async def notices(self) -> list[str]:
        """What happened to kernels since the last question, such as one that was ended."""
        return (await self._runner()).take_notices()

    async def alive(self, kernel: str) -> bool:
        """Whether the kernel runs."""
        async with (await self._runner()).session() as sandbox:
            return sandbox.named.alive(kernel)

    async def busy(self, kernel: str) -> bool:
        """Whether the kernel runs something."""
        async with (await self._runner()).session() as sandbox:
            return sandbox.named.busy(kernel)

    async def restart(self, kernel: str) -> None:
        """End the kernel and start it anew, empty.

        Raises:
            UsageError: there is no such kernel.
        """
        async with (await self._runner()).session() as sandbox:
            await sandbox.named.restart(kernel, "the shell's :restart")

    async def act(self, kernel: str, action: str, by: str) -> str | None:
        """Interrupt, restart or stop a kernel for someone else. Of an interrupt, what it came to (kernels/named_kernels.py).

        Raises:
            UsageError: there is no such kernel, or no such action.
        """
        sandbox = (await self._runner()).running
        if action not in ("interrupt", "restart", "stop"):
            raise UsageError(f"there is no action {action[:40]!r}", "It is interrupt, restart or stop.")
        if sandbox is None:
            raise UsageError(f"there is no kernel {kernel[:40]!r}", "None runs in this process.")
        if action == "interrupt":
            return await sandbox.named.interrupt(kernel, by)
        await (sandbox.named.restart(kernel, by) if action == "restart" else sandbox.named.stop(kernel, by))
        return None

    async def complete(self, kernel: str, code: str, cursor: int) -> dict[str, Any]:
        """A complete_reply's content; empty while the kernel is busy."""
        async with (await self._runner()).session() as sandbox:
            return await sandbox.named.complete(kernel, code, cursor)

    async def inspect(self, kernel: str, code: str, cursor: int, detail: int = 0) -> dict[str, Any]:
        """An inspect_reply's content; empty while the kernel is busy."""
        async with (await self._runner()).session() as sandbox:
            return await sandbox.named.inspect(kernel, code, cursor, detail)

    async def states(self) -> list[dict[str, Any]]:
        """What each kernel is and has: name, language, busy, calls, age_s, idle_s, memory in bytes, variables."""
        async with (await self._runner()).session() as sandbox:
            return [asdict(state) for state in await sandbox.states()]

    async def _runner(self) -> Runner:
        """On a thread: the first look imports what runs everything."""
        return await anyio.to_thread.run_sync(lambda: self._session.runner)
