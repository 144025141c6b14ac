"""Named kernels: their variables live on between calls, and each call has its own output, time limit and end.

A call that takes too long or is cancelled is interrupted, not killed, so that the variables survive; only a kernel that does not
heed the interrupt is ended. One call runs at a time in a kernel; others wait their turn.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio

from sandboxmcp.core.errors import KernelGone, UsageError
from sandboxmcp.core.model import Outcome, Script, Status
from sandboxmcp.core.reasons import Reason
from sandboxmcp.kernels.binding import prelude
from sandboxmcp.kernels.jupyter.displayed import Displayed
from sandboxmcp.kernels.jupyter.kernelspecs import PREFIX, stateful_languages
from sandboxmcp.kernels.jupyter.live_kernel import KernelPlace, LiveKernel, Reply
from sandboxmcp.kernels.registry import Registry
from sandboxmcp.kernels.script_run import HEED_S, Begun, end_of, execute_both, lost_of, not_kept, with_losses
from sandboxmcp.render.reasons import sentence
from sandboxmcp.sandbox.usage import memory_of, tree

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_COUNT = re.compile(r"[0-9]{1,9}")
_MOST = 16
"""Named kernels of one session; each holds its variables in memory."""
_OWNER = "the process that owns it"
_GLANCE_S = 0.5
"""How long a kernel that none of our calls uses may take to answer before it counts as busy with another client's code."""
Interrupted = Literal["idle", "interrupted", "ended", "runs on"]
"""What an interrupt has come to: nothing ran; it has ended, its variables are kept; the kernel has ended; it did not heed."""
_COUNT_VARIABLES = "len([n for n in get_ipython().user_ns if n not in get_ipython().user_ns_hidden])"


@dataclass(frozen=True, slots=True)
class KernelState:
    """What `list` shows of one named kernel."""

    name: str
    language: str
    busy: bool
    calls: int
    age_s: float
    idle_s: float
    memory: int
    """Bytes."""
    variables: int | None
    """None while it is busy, or where the language does not tell."""


@dataclass(slots=True)
class _Named:
    """One kernel with what is known of its use."""

    name: str
    language: str
    live: LiveKernel
    started: float = field(default_factory=time.monotonic)
    used: float = field(default_factory=time.monotonic)
    calls: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    running: asyncio.Future[None] | None = None
    """Done when the call has ended that runs now."""
    interrupted_by: str = ""
    """Who has interrupted that call."""
    ending: bool = False
    """We are ending it, and who asked for that tells why."""


class NamedKernels:
    """The named kernels of one sandbox. `notices` collects what a later call should be told, such as a kernel that was ended."""

    def __init__(self, place: KernelPlace, captures: Path, registry: Registry | None = None) -> None:
        self._place = place
        self._registry = registry
        self._captures = captures
        self._kernels: dict[str, _Named] = {}
        self.notices: list[str] = []
        self._starting = asyncio.Lock()

    async def run(
        self,
        name: str,
        script: Script,
        watch: Callable[[LiveKernel], Callable[[], Reason | None]],
        on_begin: Callable[[Begun], None] | None = None,
        file: str | None = None,
        must_run: bool = False,
    ) -> Outcome:
        """Run a script in the kernel of that name, which is started on first use; `file`: path inside of a file to bind.

        `must_run`: in no other than the one that runs now.

        `watch` begins to watch the item and returns what ends that and says which limit was breached, if any. `on_begin` is
        called when the script's turn has come.

        Raises:
            UsageError: the name cannot be one, there are too many kernels, or it runs another language.
            KernelError: the kernel does not start.
            KernelGone: it must run already and does not, or ended while this call waited.
        """
        async with self._turn(name, script.language, must_run) as kernel:
            finish = watch(kernel.live)
            if on_begin is not None:
                on_begin(Begun(kernel.live.capture.stem, partial(kernel.live.item.signal, signal.SIGINT)))
            started = time.monotonic()
            stem = self._captures / secrets.token_hex(8)
            displayed = Displayed(kernel.live.capture.stem)
            reply = Reply(displayed=displayed)
            running = kernel.running = asyncio.get_running_loop().create_future()
            kernel.interrupted_by = ""
            try:
                status = await self._execute(kernel, script, reply, file)
            finally:
                running.set_result(None)
                kernel.running = None
            cancelled = status == "cancelled"
            with anyio.CancelScope(shield=True):
                out, err = await kernel.live.capture.cut(stem)
            breach = finish()
            kernel.used, kernel.calls = time.monotonic(), kernel.calls + 1
            outcome = _outcome(script, status, reply, kernel, time.monotonic() - started, breach, lost_of(displayed, out, err))
            if kernel.live.item.ended.done():
                await self._forget(kernel)
        outcome = Outcome(
            script, outcome.status, outcome.exit_code, outcome.wall_s, out, err, tuple(displayed.artifacts), outcome.reasons
        )
        if cancelled:
            raise CancelledRun(outcome)
        return outcome

    async def _execute(self, kernel: _Named, script: Script, reply: Reply, file: str | None) -> Status | None:
        try:
            async with asyncio.timeout(script.timeout_s):
                await execute_both(kernel.live, prelude(script, file), script.code, reply)
        except TimeoutError:
            await self._calm(kernel)
            return "timeout"
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._calm(kernel)
            return "cancelled"
        return None

    async def _calm(self, kernel: _Named) -> None:
        """Interrupt until the kernel answers again; end it when it does not."""
        for _ in range(2):
            kernel.live.item.signal(signal.SIGINT)
            if await kernel.live.answers(HEED_S / 2):
                return
        await kernel.live.item.killed(Reason("interrupt_unheeded", {"waited_s": HEED_S}))

    @asynccontextmanager
    async def _turn(self, name: str, language: str, must_run: bool) -> AsyncIterator[_Named]:
        """The kernel, ours alone for a while. One that ended while we waited for it is started anew, with a notice."""
        while True:
            if must_run and not self.alive(name):
                raise KernelGone(name)
            kernel = await self._get(name, language)
            async with kernel.turn:
                if self._kernels.get(name) is kernel:
                    yield kernel
                    return
            if must_run:
                raise KernelGone(name)
            self.notices.append(f"the kernel {name} ended while a call waited for its turn, which then ran in a new one, empty")

    async def _get(self, name: str, language: str) -> _Named:
        check_name(name)
        async with self._starting:
            kernel = self._kernels.get(name)
            if kernel is not None and kernel.live.item.ended.done():
                await self._miss(kernel)
                kernel = None
            if kernel is None:
                kernel = await self._start(name, language)
        if kernel.language != language:
            raise UsageError(f"the kernel {name!r} runs {kernel.language}, not {language}", "Use another name, or stop it first.")
        return kernel

    async def _start(self, name: str, language: str) -> _Named:
        if len(self._kernels) >= _MOST:
            raise UsageError(f"there are {_MOST} named kernels already", "Stop one of them first.")
        spec = language if language in self._place.allowed else PREFIX + language
        live = await LiveKernel.start(self._place, self._captures / secrets.token_hex(8), spec, "session")
        kernel = self._kernels[name] = _Named(name, language, live)
        if self._registry is not None:
            self._registry.add(name, language, live.connection)
        return kernel

    async def open(self, name: str, language: str) -> None:
        """Start the kernel of that name unless it runs. Raises as `run` does."""
        await self._get(name, language)

    def alive(self, name: str) -> bool:
        """Whether a kernel of that name runs."""
        return name in self._kernels and not self._kernels[name].live.item.ended.done()

    def busy(self, name: str) -> bool:
        """Whether a kernel of that name runs something."""
        return name in self._kernels and self._kernels[name].turn.locked()

    async def complete(self, name: str, code: str, cursor: int, timeout_s: float = 2.0) -> dict[str, Any]:
        """A complete_reply's content for the cursor's place in the code; empty while the kernel is busy.

        Raises:
            UsageError: there is no such kernel.
        """
        kernel = self._named(name)
        if kernel.turn.locked():
            return {}
        async with kernel.turn:  # two that wait on one client's socket would take each other's answers
            return await kernel.live.complete(code, cursor, timeout_s)

    async def inspect(self, name: str, code: str, cursor: int, detail: int = 0, timeout_s: float = 5.0) -> dict[str, Any]:
        """An inspect_reply's content for the name at the cursor; empty while the kernel is busy.

        Raises:
            UsageError: there is no such kernel.
        """
        kernel = self._named(name)
        if kernel.turn.locked():
            return {}
        async with kernel.turn:
            return await kernel.live.inspect(code, cursor, detail, timeout_s)

    def pids(self) -> list[int]:
        """The host's numbers of the first processes of those that run."""
        items = [kernel.live.item for kernel in self._kernels.values()]
        return [item.host_pid for item in items if not item.ended.done() and item.host_pid]

    def known(self) -> tuple[str, ...]:
        """The names, oldest first."""
        return tuple(self._kernels)

    async def states(self) -> list[KernelState]:
        """What each kernel is and has."""
        now = time.monotonic()
        found = []
        for kernel in list(self._kernels.values()):
            if kernel.live.item.ended.done() and not kernel.turn.locked():
                await self._miss(kernel)
                continue
            busy = kernel.turn.locked()
            variables = None if busy else await self._variables(kernel)
            pid = kernel.live.item.host_pid
            memory = sum(memory_of(process.pid) for process in tree(pid)) if pid else 0
            count = int(variables) if variables and _COUNT.fullmatch(variables) else None  # a script may have it say anything
            age, idle = now - kernel.started, now - kernel.used
            found.append(KernelState(kernel.name, kernel.language, busy, kernel.calls, age, idle, memory, count))
        return found

    async def _variables(self, kernel: _Named) -> str | None:
        async with kernel.turn:  # two that wait on one client's socket would take each other's answers
            return await kernel.live.evaluate(_COUNT_VARIABLES)

    async def interrupt(self, name: str, by: str = _OWNER) -> Interrupted:
        """Interrupt what a kernel runs, also inside C code: the signal comes from outside. Says what came of it.

        Raises:
            UsageError: there is no such kernel.
        """
        kernel = self._named(name)
        item, running = kernel.live.item, kernel.running
        if item.ended.done() or (running is None and await self._answers(kernel, _GLANCE_S)):
            return "ended" if item.ended.done() else "idle"
        kernel.interrupted_by = by
        item.signal(signal.SIGINT)
        if running is None:
            heeded = await self._answers(kernel, HEED_S)
        else:
            waited: set[asyncio.Future[Any]] = {running, item.ended}
            await asyncio.wait(waited, timeout=HEED_S, return_when=asyncio.FIRST_COMPLETED)
            heeded = running.done()
        return "ended" if item.ended.done() else "interrupted" if heeded else "runs on"

    async def _answers(self, kernel: _Named, timeout_s: float) -> bool:
        """Whether it answers within a time, or it is we who ask it something already."""
        if kernel.turn.locked():
            return True
        async with kernel.turn:  # two that wait on one client's socket would take each other's answers
            return await kernel.live.answers(timeout_s)

    async def stop(self, name: str, by: str = _OWNER) -> None:
        """End a kernel with all it started; its variables are gone. `by`: who wants that, for the call that runs in it.

        Raises:
            UsageError: there is no such kernel.
        """
        await self._end(self._named(name), Reason("kernel_stopped", {"by": by}))

    async def restart(self, name: str, by: str = _OWNER) -> None:
        """End a kernel and start it anew, empty.

        Raises:
            UsageError: there is no such kernel.
        """
        kernel = self._named(name)
        await self._end(kernel, Reason("kernel_restarted", {"by": by}))
        await self._get(name, kernel.language)

    async def reap_forever(self, idle_s: float) -> None:
        """End the kernels that nobody uses for so long, each at its time, until cancelled."""
        while True:
            unused = [time.monotonic() - one.used for one in self._kernels.values() if not one.turn.locked()]
            await asyncio.sleep(max(idle_s - max(unused, default=0.0), 0.01 * idle_s))
            for name in await self.reap(idle_s):
                self.notices.append(f"the kernel {name} was ended after {idle_s:g} s without use (kernel_idle_s)")

    async def reap(self, idle_s: float) -> list[str]:
        """End the kernels that nobody has used for so long. Returns their names."""
        now = time.monotonic()
        idle = [one for one in self._kernels.values() if not one.turn.locked() and now - one.used > idle_s]
        for kernel in idle:
            await self._end(kernel, Reason("kernel_idle"))
        return [kernel.name for kernel in idle]

    async def _miss(self, kernel: _Named) -> None:
        """One has ended while nothing ran in it: forget it, and tell, unless we have ended it."""
        _, _, how = end_of(Reply(), kernel.live.item)
        why = sentence(how) if how else "it exited by itself"
        if not kernel.ending:
            self.notices.append(f"the kernel {kernel.name} ended while none of its calls ran; its variables are gone ({why})")
        await self._forget(kernel)

    async def _end(self, kernel: _Named, why: Reason) -> None:
        """Kill it first: a call that runs in it ends then, and takes its output with it, before the rest is given up."""
        kernel.ending = True
        await kernel.live.item.killed(why)
        async with kernel.turn:
            if self._kernels.get(kernel.name) is kernel:
                await self._forget(kernel)

    def _named(self, name: str) -> _Named:
        if name not in self._kernels:
            known = ", ".join(self._kernels) or "none"
            raise UsageError(
                f"there is no kernel {name[:40]!r}", f"Running kernels: {known}. A first call with this name starts it."
            )
        return self._kernels[name]

    async def _forget(self, kernel: _Named) -> None:
        self._kernels.pop(kernel.name, None)
        if self._registry is not None:
            self._registry.remove(kernel.name)
        await kernel.live.forget()
        kernel.live.capture.discard()

    async def close(self, why: Reason) -> None:
        """End them all."""
        for kernel in list(self._kernels.values()):
            await self._end(kernel, why)


def check_name(name: str) -> None:
    """Raises: UsageError, the name cannot be a kernel's."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:40]!r} cannot be a kernel's name", "Use up to 64 letters, digits, dots, dashes and underscores.")


def check_stateful(language: str, allowed: Iterable[str]) -> None:
    """`allowed`: kernelspecs of the user's. Raises: UsageError, the language's kernels keep no variables."""
    languages = sorted({*stateful_languages(), *allowed})
    if language not in languages:
        fix = f"Leave `kernel` out, or use one of: {', '.join(languages)}."
        raise UsageError(f"{language[:60]!r} keeps no state between calls", fix)


class CancelledRun(asyncio.CancelledError):
    """A cancelled call, with what it had printed."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


def _outcome(
    script: Script,
    status: Status | None,
    reply: Reply,
    kernel: _Named,
    wall_s: float,
    breach: Reason | None,
    lost: Sequence[Reason],
) -> Outcome:
    """Status, exit code and reasons; the captures are filled in by the caller."""
    ended, exit_code, reasons = _ending(script, status, reply, kernel, breach)
    return Outcome(script, with_losses(ended, lost), exit_code, wall_s, reasons=(*reasons, *not_kept(reply), *lost))


def _ending(
    script: Script, status: Status | None, reply: Reply, kernel: _Named, breach: Reason | None
) -> tuple[Status, int | None, list[Reason]]:
    item, name = kernel.live.item, {"kernel": kernel.name}
    gone = [Reason("kernel_ended", name)] if item.ended.done() else []
    if breach:
        return "killed", None, [breach, *gone]
    if status == "timeout":
        return status, None, [Reason("timeout", {"timeout_s": script.timeout_s}), *(gone or [Reason("kernel_kept", name)])]
    if status is not None:
        return status, None, gone
    ended, exit_code, why = end_of(reply, item)
    interrupted = [Reason("interrupted", {"by": kernel.interrupted_by})] if kernel.interrupted_by and ended == "failed" else []
    return ended, exit_code, [*interrupted, *([why] if why else []), *gone]
