"""Judge, run and remember any number of scripts, so many at a time; what a cancelled run had printed is kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from sandboxmcp.core.errors import SandboxmcpError, StoreError
from sandboxmcp.core.model import Origin, Outcome, Script, Verdict
from sandboxmcp.core.reasons import Reason
from sandboxmcp.core.surface import current
from sandboxmcp.journal.journal import Ended, Entry, OpenRun
from sandboxmcp.render.items import Item
from sandboxmcp.session import Session
from sandboxmcp.tools.asking import ask_first, settled
from sandboxmcp.tools.remember import remember

if TYPE_CHECKING:
    from sandboxmcp.kernels.sandbox_session import OnBegin, RunSession

Progress = Callable[[int, int, str], Awaitable[None]]
"""Called as `(done, total, label)` after each item."""


async def no_progress(done: int, total: int, label: str) -> None:
    """For callers that show none."""


@dataclass(frozen=True, slots=True)
class Job:
    """Scripts that run as one batch in one sandbox. `labels` are shown, `source_labels` stored; both one per script."""

    scripts: tuple[Script, ...]
    labels: tuple[str, ...]
    source_labels: tuple[str, ...]
    origin: Origin
    batch: str
    concurrency: int = 1
    stop_on_error: bool = False
    kernel: str | None = None
    """The named kernel that all of them run in; None: each is fresh."""
    kernel_must_run: bool = False
    """In no successor of it: the caller is told when it has ended."""
    on_begin: OnBegin | None = None
    """Called when a script's turn has come."""
    notes: tuple[str, ...] = ()
    """What the answer says first: an argument that was not taken as it was."""


async def run_job(session: Session, job: Job, progress: Progress = no_progress, items: dict[int, Item] | None = None) -> list[Item]:
    """Every script's item, in the order given. A refused script is an item too and does not stop the others.

    `items` is filled in on the way, by the scripts' places: it holds what there is when the job does not come to its end.

    Cancellation kills what runs, stores what it had printed, and goes on to the caller.

    Raises:
        SandboxUnavailable: there is no sandbox to run in. BrokenPack: no policy, so nothing runs. StoreError. KernelGone.
    """
    judged = await anyio.to_thread.run_sync(_judge_all, session, job.scripts)
    verdicts = await settled(judged, job.scripts)
    row = await anyio.to_thread.run_sync(_log_all, session, job, judged, verdicts)
    run = _Run(session, job, progress, row)
    if items is not None:
        run.items = items
    otherwise = Ended("failed")
    try:
        async with AsyncExitStack() as stack:
            if any(verdict.action == "allow" for verdict in verdicts):
                runner = await anyio.to_thread.run_sync(lambda: session.runner)
                run.sandbox = await stack.enter_async_context(runner.session())
            await run.all(verdicts)
    except SandboxmcpError as error:
        otherwise = Ended("failed", reasons=[Reason("recorded", {"text": error.what}).as_json()])
        raise
    except asyncio.CancelledError:
        otherwise = Ended("cancelled")
        raise
    finally:
        if row is not None and len(row.closed) < len(job.scripts):
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_finish, session, row, otherwise)
    return [run.items[index] for index in range(len(job.scripts))]


def _finish(session: Session, row: OpenRun, otherwise: Ended) -> None:
    if session.journal is not None:
        session.journal.finish(row, otherwise)


async def ask_before(session: Session, job: Job) -> None:
    """Put the policy's questions about a job that will run in the background, while its caller can still be asked."""
    await ask_first(await anyio.to_thread.run_sync(_judge_all, session, job.scripts), job.scripts)


def _judge_all(session: Session, scripts: Sequence[Script]) -> list[Verdict]:
    engine = session.engine
    return [engine.judge(script.code, script.language) for script in scripts]


_TOOLS: Mapping[Origin, str] = {"execute": "ctx_execute", "batch": "ctx_batch_execute", "file": "ctx_execute_file"}
"""Which tool makes jobs of an origin, whoever calls it."""


def _log_all(session: Session, job: Job, judged: Sequence[Verdict], decided: Sequence[Verdict]) -> OpenRun | None:
    """Every verdict into the log before anything runs; what cannot be logged does not run. Returns the run's row of the journal."""
    try:
        for script, label, said, verdict in zip(job.scripts, job.source_labels, judged, decided, strict=True):
            session.audit.add("verdict", verdict_facts(session, script, label, said, verdict))
    except OSError as error:
        raise StoreError(f"the policy log cannot be written: {error.strerror}", "Nothing runs unlogged; free some space.") from None
    return _opened(session, job, decided)


def _opened(session: Session, job: Job, decided: Sequence[Verdict]) -> OpenRun | None:
    """The run's row of the journal; None where none is kept, or the store cannot be opened, which is told elsewhere."""
    try:
        journal = session.journal
    except StoreError:
        return None
    if journal is None:
        return None
    entries = [
        Entry(label, script.language, script.code, verdict.action, verdict.rule)
        for script, label, verdict in zip(job.scripts, job.source_labels, decided, strict=True)
    ]
    kernel = job.kernel or next((script.kernel for script in job.scripts if script.kernel), None)
    return journal.open(_TOOLS.get(job.origin, job.origin), current().name, entries, job.batch, kernel)


@dataclass(slots=True)
class _Run:
    """One job on its way."""

    session: Session
    job: Job
    progress: Progress
    row: OpenRun | None
    """Of the journal."""
    sandbox: RunSession | None = None
    items: dict[int, Item] = field(default_factory=dict)
    stopped: bool = False
    error: SandboxmcpError | None = None

    async def all(self, verdicts: Sequence[Verdict]) -> None:
        limiter = anyio.CapacityLimiter(self.job.concurrency)
        async with anyio.create_task_group() as group:
            for index, verdict in enumerate(verdicts):
                group.start_soon(self._guarded, index, verdict, limiter, group.cancel_scope)
        if self.error is not None:
            raise self.error

    async def _guarded(self, index: int, verdict: Verdict, limiter: anyio.CapacityLimiter, scope: anyio.CancelScope) -> None:
        """One item when its turn comes; a failure of ours ends the job and is raised once, not as a group."""
        try:
            async with limiter:
                await self._one(index, verdict)
        except SandboxmcpError as error:
            self.error = self.error or error
            scope.cancel()

    async def _one(self, index: int, verdict: Verdict) -> None:
        script = self.job.scripts[index]
        if self.stopped:
            outcome = Outcome(script, "skipped", None, 0.0, reasons=(Reason("stop_on_error"),))
        elif verdict.action != "allow":
            outcome = Outcome(script, "denied", None, 0.0, verdict=verdict)
        else:
            outcome = await self._run(index, script)
        await self._keep(index, outcome)
        self.stopped = self.job.stop_on_error and (self.stopped or outcome.status != "ok")
        await self.progress(len(self.items), len(self.job.scripts), self.job.labels[index] or script.language)

    async def _run(self, index: int, script: Script) -> Outcome:
        """In a task of its own: anyio cancels every await anew, the runner's clean-up needs some in peace."""
        assert self.sandbox is not None  # noqa: S101 - an allowed script has a sandbox
        partial: list[Outcome] = []
        kernel, on_begin = script.kernel or self.job.kernel, self.job.on_begin
        if kernel is None:
            running = self.sandbox.run(script, partial.append, on_begin)
        else:
            running = self.sandbox.run_in(kernel, script, partial.append, on_begin, self.job.kernel_must_run)
        task = asyncio.create_task(running)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                partial.append(task.result())  # it had ended before the cancellation reached it
            for outcome in partial:
                await self._keep(index, outcome)
            raise

    async def _keep(self, index: int, outcome: Outcome) -> None:
        """Storing is never interrupted: nothing captured is lost to a cancellation."""
        with anyio.CancelScope(shield=True):
            self.items[index] = await anyio.to_thread.run_sync(self._remembered, index, outcome)

    def _remembered(self, index: int, outcome: Outcome) -> Item:
        job, row = self.job, self.row
        journal = self.session.journal if row is not None else None
        ended = _ended(outcome)
        item = remember(
            self.session,
            outcome,
            label=job.labels[index],
            source_label=job.source_labels[index],
            origin=job.origin,
            batch=job.batch,
            closing=None if journal is None or row is None else partial(journal.closing, row, index, ended),
        )
        if journal is not None and row is not None:
            stored = (*item.artifacts, *(stream.source for stream in item.streams))
            journal.close(row, index, ended, [source.handle for source in stored])
        return item


def _ended(outcome: Outcome) -> Ended:
    streams = [one for one in (outcome.stdout, outcome.stderr) if one is not None]
    size = sum(one.total for one in streams) + sum(one.size for one in outcome.artifacts)
    reasons = [] if outcome.status == "denied" else [one.as_json() for one in outcome.reasons]
    return Ended(outcome.status, outcome.exit_code, reasons, outcome.wall_s, size)


def verdict_facts(session: Session, script: Script, label: str, said: Verdict, verdict: Verdict) -> dict[str, Any]:
    """What the audit log keeps of one verdict; of the code only its digest, since code may hold secrets.

    `said` is what the policy said, `verdict` what came of it once the user had been asked.
    """
    return {
        "session": session.id,
        "project": session.project,
        "setting": "kernel",
        "label": label,
        "language": script.language,
        "code": hashlib.sha256(script.code.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "verdict": verdict.action,
        "asked": said.action == "ask",
        "pack": said.pack,
        "rule": said.rule,
        "program": said.program,
        "line": said.line,
        "unknown": len(said.unknown),
    }
