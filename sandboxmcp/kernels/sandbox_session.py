"""One running sandbox and the scripts in it: each fresh or in a named kernel, watched, and ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import anyio

from sandboxmcp.broker.broker import Broker
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.loops import Loops, LoopState
from sandboxmcp.core.model import Outcome, Script, Status
from sandboxmcp.core.reasons import Reason, coded
from sandboxmcp.core.settings import Settings
from sandboxmcp.kernels.binding import bound, prelude, private_folder, remove_folder
from sandboxmcp.kernels.capture import ItemCapture
from sandboxmcp.kernels.guarding import Guard
from sandboxmcp.kernels.jupyter.connection import SocketFolder
from sandboxmcp.kernels.jupyter.live_kernel import KernelPlace, LiveKernel
from sandboxmcp.kernels.jupyter.manager import message_context
from sandboxmcp.kernels.languages import UnknownLanguage, script_languages
from sandboxmcp.kernels.launcher import Item, Launcher
from sandboxmcp.kernels.named_kernels import CancelledRun, KernelState, NamedKernels, check_stateful
from sandboxmcp.kernels.pool import BEHIND_S, KernelPool
from sandboxmcp.kernels.registry import Registry
from sandboxmcp.kernels.room import Room
from sandboxmcp.kernels.runtimes import NotInstalled, Runtimes
from sandboxmcp.kernels.script_run import Begun, Running
from sandboxmcp.render.reasons import sentence
from sandboxmcp.sandbox.hints import git_hint, limit_hint, network_hint
from sandboxmcp.sandbox.usage import thread_seconds
from sandboxmcp.sandbox.watch import Watchdog, Watched, WatchLimits
from sandboxmcp.sandbox.workspace.masked_copies import Masker

_MOST_AT_ONCE = 8
"""Items of one sandbox that run at the same time; more wait their turn, and their time starts then."""
OnPartial = Callable[[Outcome], None]
OnBegin = Callable[[Begun], None]


@dataclass(frozen=True, slots=True)
class SandboxStatistics:
    """What one sandbox has at the moment."""

    running: int
    """Scripts."""
    watched: int
    """Items that the watchdog looks at."""
    named: int
    """Named kernels."""
    has_spare: bool
    """A kernel stands ready, or is being started, for the next script."""
    tidying: int
    """Works that go on behind answers."""
    loops: tuple[LoopState, ...]


class RunSession:
    """One running sandbox, able to run any number of scripts at once."""

    def __init__(
        self, settings: Settings, captures: Path, launcher: Launcher, sockets: SocketFolder, registry: Registry | None = None
    ) -> None:
        self._captures = captures
        self._cap: int = settings.limits.output
        self._launcher = launcher
        self._context, receiving = message_context()
        self._sockets = sockets
        self._allowed: tuple[str, ...] = settings.kernelspecs
        place = KernelPlace(launcher, self._context, self._sockets, self._cap, self._allowed, settings.kernel_start_s)
        self._pool = KernelPool(place, captures)
        self.named = NamedKernels(place, captures, registry)
        self._scripts = script_languages()
        self._runtimes = Runtimes(launcher, captures)
        self.ending = Reason("server_ended")
        """Why the session is closed, for what still runs in it."""
        self._tidying: set[asyncio.Task[None]] = set()
        self._broken = ""
        """Why this sandbox may not be trusted with another script; then it is replaced."""
        self._loops = Loops(self._break)
        self._loops.start("reaping", self.named.reap_forever(settings.kernel_idle_s))
        self._running = 0
        self._room = Room(launcher.process.init_pid or 0, launcher.written)
        self._guard = Guard(launcher.protection, self.named.pids, lambda: self.named.notices)
        self._loops.start("guarding", self._guard.forever(lambda: self._running > 0))
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._limits = {f"limits.{name}": value for name, value in asdict(settings.limits).items()}
        self._watchdog = Watchdog(
            launcher.written,
            WatchLimits(settings.limits.memory, settings.limits.workspace, settings.limits.files),
            launcher.process_kill,
            partial(thread_seconds, receiving),
        )

    @classmethod
    async def start(
        cls,
        settings: Settings,
        captures: Path,
        broker: Broker | None = None,
        registry: Registry | None = None,
        mask: Masker | None = None,
    ) -> RunSession:
        starting = asyncio.ensure_future(Launcher.start(settings, broker, mask))
        await asyncio.sleep(0)  # it has begun: what follows costs no time of its own
        with contextlib.ExitStack() as held:
            held.callback(_give_up, starting)
            sockets = SocketFolder()
            held.callback(sockets.remove)
            launcher = await starting
            held.pop_all()
        return cls(settings, captures, launcher, sockets, registry)

    @property
    def alive(self) -> bool:
        """Whether the sandbox runs."""
        return self._launcher.alive

    @property
    def usable(self) -> bool:
        """False when the sandbox has ended, or is to be replaced for what the host has changed since, and nothing runs in it."""
        return self._launcher.alive and not (self._running == 0 and self.outdated)

    @property
    def outdated(self) -> str:
        """Why a sandbox that lives is to be replaced."""
        return self._broken or self._launcher.outdated

    @property
    def loops(self) -> tuple[LoopState, ...]:
        """The background loops, for statistics."""
        return self._loops.states

    @property
    def statistics(self) -> SandboxStatistics:
        """What there is at the moment."""
        return SandboxStatistics(
            self._running, self._watchdog.watched, len(self.named.known()), self._pool.has_spare, len(self._tidying), self.loops
        )

    def _break(self, why: str) -> None:
        self._broken = self._broken or why

    async def run(self, script: Script, on_partial: OnPartial | None = None, on_begin: OnBegin | None = None) -> Outcome:
        """Run one script to its end, at most `script.timeout_s` seconds.

        Cancelled, it kills the item with everything it started, passes what was captured to `on_partial`, and lets the
        cancellation go on. A language that is unknown or not installed is an outcome too: the script is skipped.

        Raises:
            UsageError: the script's file cannot be bound, or the code cannot be passed on (a NUL byte).
            KernelError: the sandbox or the kernel died before the script began.
        """
        async with self._turns, bound(self._launcher, script.file, self._captures) as file:
            since = self._launcher.masked.mark()
            try:
                running = await self._begin(script, file)
            except (NotInstalled, UnknownLanguage) as missing:
                return Outcome(script, "skipped", None, 0.0, reasons=(Reason("language_unavailable", {"message": str(missing)}),))
            running.opened_since = since
            return await self._run(script, running, on_partial, on_begin)

    async def _run(self, script: Script, running: Running, on_partial: OnPartial | None, on_begin: OnBegin | None) -> Outcome:
        if on_begin is not None:
            on_begin(running.begun)
        watched = self._watch(running.item, sends=running.kernel is not None)
        group = self._launcher.process.group
        running.out_of_memory = 0 if group is None else group.out_of_memory_kills()
        self._running += 1
        running.with_room = self._room.begin(alone=self._running == 1)
        started = time.monotonic()
        status: Status | None = None
        cancelled: asyncio.CancelledError | None = None
        try:
            async with asyncio.timeout(script.timeout_s):
                await running.finished()
        except TimeoutError:
            status = "timeout"
        except asyncio.CancelledError as error:
            status, cancelled = "cancelled", error
        except BaseException:
            await self._end(running, watched, "killed", time.monotonic() - started)  # a fault of ours must not leave it running
            raise
        ending = asyncio.ensure_future(self._end(running, watched, status, time.monotonic() - started))
        with anyio.CancelScope(shield=True):
            while not ending.done():
                try:
                    await asyncio.shield(ending)
                except asyncio.CancelledError as error:  # in the middle of the end: what was captured must not be lost now
                    cancelled = error
        if cancelled is None:
            return ending.result()
        if on_partial is not None:
            on_partial(ending.result())
        raise cancelled

    async def run_in(
        self,
        name: str,
        script: Script,
        on_partial: OnPartial | None = None,
        on_begin: OnBegin | None = None,
        must_run: bool = False,
    ) -> Outcome:
        """The same in the kernel of that name, whose variables live on; it is started on first use, or `must_run` already.

        Raises:
            UsageError: the name or the language cannot be used for a kernel that stays.
            KernelError: the kernel does not start.
            KernelGone: it must run already and does not, or ended while this script waited for its turn.
        """
        check_stateful(script.language, self._allowed)
        since = self._launcher.masked.mark()
        with_room: list[Callable[[Outcome, str], Outcome]] = []

        def watch(kernel: LiveKernel) -> Callable[[], Reason | None]:
            watching = self._watch_named(kernel)
            with_room.append(self._room.begin(alone=self._running == 1))
            return watching

        try:
            async with bound(self._launcher, script.file, self._captures) as file:
                outcome = await self.named.run(name, script, watch, on_begin, file, must_run)
        except CancelledRun as cancelled:
            with anyio.CancelScope(shield=True):
                outcome = _with_reasons(cancelled.outcome, [*await self._sweep(), *self._masked(cancelled.outcome, since)])
            if on_partial is not None:
                on_partial(outcome)
            raise
        for tell in with_room:
            outcome = tell(outcome, _said(outcome))
        return _with_reasons(outcome, [*self._git_hint(outcome), *await self._sweep(), *self._masked(outcome, since)])

    async def guarded(self) -> None:
        """See to what idle kernels did to protected paths since the last call; what else appeared is taken for the host's doing."""
        if self._running == 0:
            await asyncio.get_running_loop().run_in_executor(None, self._guard.prepare)

    async def states(self) -> list[KernelState]:
        """What each named kernel is and has."""
        return await self.named.states()

    async def runtimes(self) -> dict[str, str | NotInstalled]:
        """For each language that runs as a process: the program that does it here, or what is missing."""

        async def look(name: str) -> str | NotInstalled:
            try:
                return (await self._runtimes.find(self._scripts[name])).program
            except NotInstalled as missing:
                return missing

        return dict(zip(self._scripts, await asyncio.gather(*map(look, self._scripts)), strict=True))

    def _watch_named(self, kernel: LiveKernel) -> Callable[[], Reason | None]:
        watched = self._watch(kernel.item, sends=True)
        self._running += 1

        def finish() -> Reason | None:
            self._running -= 1
            self._watchdog.finish(watched)
            return watched.breach

        return finish

    async def _begin(self, script: Script, file: str | None) -> Running:
        if script.language in self._scripts:
            return await self._begin_process(script, file)
        if script.language != "python":
            if script.language in self._allowed:
                kernel = await self._pool.foreign(script.language)
                return Running(script, kernel.item, kernel.capture, kernel)
            raise UnknownLanguage(script.language, sorted({"python", *self._scripts, *self._allowed}))
        kernel = await self._pool.lease()
        return Running(script, kernel.item, kernel.capture, kernel, prelude(script, file))

    def _watch(self, item: Item, *, sends: bool) -> Watched:
        loop = asyncio.get_running_loop()

        def kill() -> None:
            loop.call_soon_threadsafe(item.kill)

        return self._watchdog.begin(item.host_pid, kill, sends=sends)

    async def _end(self, running: Running, watched: Watched, status: Status | None, wall_s: float) -> Outcome:
        """The outcome at once; what is left of the item is tidied up, and the next spare is started, behind it."""
        try:
            swept = asyncio.ensure_future(self._sweep()) if running.over else None
            outcome = await running.outcome(status, wall_s)
            moved = await (swept or self._sweep())
        finally:
            self._running -= 1
            self._watchdog.finish(watched)
        if running.folder:
            self._tidy(remove_folder(self._launcher, running.folder))
        if running.kernel is not None:
            self._tidy(self._forget(running.kernel))
            self._pool.replenish()
        return _with_reasons(self._explained(outcome, running, watched), [*moved, *self._masked(outcome, running.opened_since)])

    def _masked(self, outcome: Outcome, since: int) -> list[Reason]:
        """What is said of files of secrets that were opened since then, or that the output names."""
        outputs = [one.path for one in (outcome.stdout, outcome.stderr) if one is not None]
        return [Reason("workspace_guarded", {"note": note}) for note in self._launcher.masked.touched(since, outputs)]

    async def _forget(self, kernel: LiveKernel) -> None:
        """End it, and sweep once more: one that lied about its end could plant something until it was gone."""
        await kernel.forget()
        self.named.notices += map(sentence, await self._sweep())

    def _tidy(self, work: Coroutine[None, None, None]) -> None:
        """Do it behind the answer, which is on its way out of the loop first; the session's end waits for it."""

        async def later() -> None:
            try:
                await asyncio.sleep(BEHIND_S)
            finally:
                await work

        tidying = asyncio.ensure_future(later())
        self._tidying.add(tidying)
        tidying.add_done_callback(self._tidying.discard)

    async def _sweep(self) -> list[Reason]:
        """Move protected paths aside that appeared meanwhile; a reason for each."""

        def settled() -> list[Reason]:
            self._guard.settle()
            return [Reason("workspace_guarded", {"note": note}) for note in self._launcher.protection.sweep()]

        return await asyncio.get_running_loop().run_in_executor(None, settled)

    def _explained(self, outcome: Outcome, running: Running, watched: Watched) -> Outcome:
        """The same with the limit that ended it, or that it probably met."""
        if watched.breach:
            return replace(outcome, status="killed", exit_code=None, reasons=(watched.breach,))
        group = self._launcher.process.group
        if (
            outcome.status == "killed"
            and not running.item.why
            and group is not None
            and group.out_of_memory_kills() > running.out_of_memory
        ):
            facts = {"limit": self._limits["limits.memory"], "setting": "limits.memory"}
            return replace(outcome, reasons=(Reason("memory_group_limit", facts, "raise_limit"),))
        if outcome.status not in ("ok", "failed") or outcome.stderr is None:
            return outcome
        said, hints, signalled = _said(outcome), self._git_hint(outcome), coded(outcome.reasons, "signal")
        if (told := running.with_room(outcome, said)) != outcome:
            return _with_reasons(told, hints)
        if outcome.status == "failed":
            ended_by = signalled.facts["signal"] if signalled else ""
            hints += filter(None, (limit_hint(said, ended_by, self._limits), network_hint(said, self._launcher.brokered)))
        return _with_reasons(outcome, hints)

    def _git_hint(self, outcome: Outcome) -> list[Reason]:
        """A script goes on after a git command that could not write, so its status says nothing."""
        said = _said(outcome)
        if not said and outcome.status == "ok":
            return []
        hint = git_hint(said, outcome.script.code, writable=self._launcher.protection.git_writable)
        return [hint] if hint else []

    async def _begin_process(self, script: Script, file: str | None) -> Running:
        if "\0" in script.code:
            raise UsageError("the code has a NUL byte, which no shell can take", "Remove it, or write it as an escape such as \\0.")
        table = (await self._runtimes.find(self._scripts[script.language])).table(file)
        folder = private_folder("script") if table.get("name") or table.get("files") else ""
        capture = ItemCapture(self._captures, secrets.token_hex(8), self._cap, self._launcher.process.uid)
        try:
            code = script.code.encode(errors="surrogateescape")
            item = await self._launcher.fork_script(table, code, capture.streams, folder, script.cwd)
            capture.close_writers()
        except BaseException:
            capture.discard()
            raise
        running = Running(script, item, capture, None)
        running.folder = folder
        return running

    async def close(self) -> None:
        """End the sandbox; scripts that still run end as killed."""
        self._watchdog.stop()
        self._loops.stop()
        await self.guarded()
        self._launcher.why = self._launcher.why or self.ending
        await self._pool.close()
        await self.named.close(self.ending)
        await self._launcher.close()
        await asyncio.get_running_loop().run_in_executor(None, self._guard.look)  # the kernels' last moments
        await asyncio.gather(*self._tidying, return_exceptions=True)
        self._sockets.remove()
        self._context.destroy(linger=0)


def _give_up(starting: asyncio.Future[Launcher]) -> None:
    """Nobody wants the sandbox any more that is being started, or has just been."""
    if not starting.cancel() and not starting.cancelled() and starting.exception() is None:
        starting.result().kill()


def _with_reasons(outcome: Outcome, more: Sequence[Reason]) -> Outcome:
    return replace(outcome, reasons=(*outcome.reasons, *more)) if more else outcome


def _said(outcome: Outcome) -> str:
    """The end of what it wrote to stderr."""
    return _tail(outcome.stderr.path) if outcome.stderr is not None and outcome.stderr.kept else ""


def _tail(path: Path) -> str:
    """The last 4 KiB of a file, as text; nothing where a full disk had no room for one."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
