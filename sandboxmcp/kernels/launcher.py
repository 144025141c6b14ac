"""The host's end of the launcher inside a sandbox: orders go in, what became of each item comes back.

The launcher (kernels/guest/launcher.py) describes the messages. What it says is believed only as far as it concerns its own
items: it runs inside the sandbox, so it may lie about them and about nothing else.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import anyio

from sandboxmcp.broker.broker import Broker
from sandboxmcp.broker.service import Service
from sandboxmcp.core.errors import KernelError
from sandboxmcp.core.reasons import Reason
from sandboxmcp.core.settings import Settings
from sandboxmcp.policy.sources import masker_of
from sandboxmcp.sandbox.bwrap import GUEST, REFUSED_LIMITS
from sandboxmcp.sandbox.cgroup import make_control_group
from sandboxmcp.sandbox.overlay.layer import identity
from sandboxmcp.sandbox.plan import Plan, plan_sandbox
from sandboxmcp.sandbox.process import SandboxProcess, start_sandbox
from sandboxmcp.sandbox.usage import children, host_pid
from sandboxmcp.sandbox.workspace.masked_copies import Masker
from sandboxmcp.sandbox.workspace.masked_paths import sockets_of_host

_T = TypeVar("_T")
_READY_TIMEOUT_S = 30.0
_ANSWER_TIMEOUT_S = 10.0
_OBEY_S = 1.0
_spawner = ThreadPoolExecutor(1, "sandboxmcp-spawner")
"""Bubblewrap dies with the thread that started it; this one lives as long as the interpreter."""


class Item:
    """One forked process of a sandbox: a kernel or a script, with whatever it starts."""

    def __init__(self, launcher: Launcher, number: int) -> None:
        self._launcher = launcher
        self.number = number
        self.pid = 0
        """Of its first process, as numbered inside the sandbox."""
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        """The exit code, negative for a signal; None when the whole sandbox ended under it."""
        self.cpu_s = 0.0
        """Seconds of processor time that its first process had used when it ended; the launcher says so."""
        self._why: Reason | None = None
        self._host_pid = 0

    @property
    def host_pid(self) -> int:
        """The host's number of its first process, looked for once; 0 when it had ended before it could be found."""
        if not self._host_pid and not self.ended.done():
            self._host_pid = host_pid(self._launcher.process.init_pid or 0, self.pid)
        return self._host_pid

    @property
    def why(self) -> Reason | None:
        """Why we ended it, or its sandbox; None while it lives, and when it was none of our doing."""
        if not self.ended.done():
            return None
        if self.ended.result() is None:
            return self._why or self._launcher.why
        limit = self._launcher.cpu_limit
        overrun = Reason("cpu_limit", {"limit": limit, "setting": "limits.cpu"}, "raise_limit")
        return self._why or (overrun if self.cpu_s >= limit else None)

    def kill(self, why: Reason | None = None) -> None:
        """End the item and everything it started. Returns at once; `ended` tells when it is done. `why`: for who ran it."""
        if not self.ended.done():
            self._why = self._why or why
            self._launcher.post({"op": "end", "id": self.number})

    def signal(self, signum: int) -> None:
        """Send a signal to the item's process group. Of SIGINT the launcher says more: a kernel's children end first."""
        self._launcher.post({"op": "signal", "id": self.number, "signum": signum})

    def settled(self) -> None:
        """What a kernel of others' has started by now belongs to it: an interrupt leaves it alone."""
        self._launcher.post({"op": "settled", "id": self.number})

    async def killed(self, why: Reason | None = None) -> None:
        """Kill and wait until nothing of the item is left.

        A launcher that does not obey is woken (a script may have stopped it); one that still does not loses its whole sandbox.
        """
        self.kill(why)
        with anyio.CancelScope(shield=True):
            for wait_s in (_OBEY_S, _ANSWER_TIMEOUT_S):
                await asyncio.wait({self.ended}, timeout=wait_s)
                if self.ended.done():
                    return
                self._launcher.wake()
            self._launcher.kill(Reason("unkillable"))


class Launcher:
    """One running sandbox and the launcher in it. Bound to the event loop that started it."""

    def __init__(self, process: SandboxProcess, control: socket.socket, plan: Plan, broker: Broker | None = None) -> None:
        self._process = process
        self.protection = plan.protection
        self.written = plan.written
        """Where on the host that lands which scripts write in the workspace."""
        self._layer = plan.layer
        self._sockets = plan.sockets
        self.masked = plan.masked
        """What stands in for files of secrets."""
        self._mounted = identity(plan.layer) if plan.layer is not None else None
        self.path = plan.profile.path
        """Where programs are looked for inside."""
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._items: dict[int, Item] = {}
        self._forks: dict[int, asyncio.Future[int]] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self.alive = True
        self.why: Reason | None = None
        """Why we ended the sandbox, for the scripts that were in it."""
        self.cpu_limit = 0
        """Seconds of processor time that each process may use."""
        self.brokered = () if broker is None else tuple(broker.programs)
        """The programs that are let out."""
        self._broker = broker
        self._service: Service | None = None
        self._loop.add_reader(control.fileno(), self._read)

    @classmethod
    async def start(cls, settings: Settings, broker: Broker | None = None, mask: Masker | None = None) -> Launcher:
        """A sandbox for the workspace in force, its launcher ready to fork, its brokered programs served.

        `mask`: what of a file of secrets is shown; by default what the policy packs of the settings say.

        Raises:
            UsageError: the workspace may not be one.
            SandboxUnavailable: the sandbox does not start.
            KernelError: it starts, and the launcher in it does not; carries what it wrote.
        """
        programs, variables = ((), {}) if broker is None else (broker.programs, broker.session_variables)
        planning = partial(plan_sandbox, settings, programs, variables, mask or masker_of(settings))
        loop = asyncio.get_running_loop()
        plan = await _even_if_cancelled(loop.run_in_executor(None, planning), lambda plan: plan.masked.remove())
        try:
            process, ours = await cls._started(settings, plan)
        except BaseException:
            plan.masked.remove()
            raise
        launcher = cls(process, ours, plan, broker)
        launcher.cpu_limit = settings.limits.cpu
        try:
            await asyncio.wait_for(asyncio.shield(launcher._ready), _READY_TIMEOUT_S)
        except BaseException as error:
            launcher.kill()
            if isinstance(error, TimeoutError | KernelError):
                why = "the launcher inside the sandbox did not start"
                raise KernelError(why, "Run: sandboxmcp doctor.", process.log) from None
            raise
        return launcher

    @staticmethod
    async def _started(settings: Settings, plan: Plan) -> tuple[SandboxProcess, socket.socket]:
        """The sandbox, and our end of the socket by which its launcher is ordered."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        guest = [f"{GUEST}/launcher.py", str(theirs.fileno()), json.dumps(_limits(settings)), *settings.preload]
        command = [plan.interpreter.executable, "-I", *guest]
        try:
            group = make_control_group(settings.limits.memory, settings.limits.processes)
            starting = asyncio.get_running_loop().run_in_executor(_spawner, start_sandbox, plan.profile, command, [theirs], group)
            process = await _even_if_cancelled(starting, SandboxProcess.kill)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        return process, ours

    @property
    def process(self) -> SandboxProcess:
        return self._process

    @property
    def outdated(self) -> str:
        """Why it is to be replaced when nothing runs in it; empty while it is as good as a new one."""
        if self.protection.outdated:
            return "protected files of the project have changed on the host"
        if self.masked.outdated(self._process.init_pid or 0):
            return "a file of secrets in the project was changed on the host"
        if self._layer is None and sockets_of_host(self.protection.workspace) - self._sockets:
            return "a socket of another program has appeared in the project"
        if self._layer is not None and identity(self._layer) != self._mounted:
            return "the changes that the overlay kept were discarded"
        return ""

    async def fork_kernel(
        self, sockets: Sequence[int], streams: tuple[int, int], key: str, mode: str, language: Mapping[str, Any] | None = None
    ) -> Item:
        """A kernel on four listening sockets (shell, iopub, stdin, control) whose stdout and stderr are `streams`.

        `language`: what the wrapper kernel runs (kernels/guest/wrapper.py).
        """
        return await self._fork({"op": "kernel", "key": key, "mode": mode, "language": language}, [*sockets, *streams])

    async def fork_foreign(self, argv: Sequence[str], sockets: Sequence[int], streams: tuple[int, int], key: str) -> Item:
        """Any other Jupyter kernel; `{connection_file}` in `argv` becomes its connection file inside."""
        return await self._fork({"op": "foreign", "key": key, "argv": list(argv)}, [*sockets, *streams])

    async def fork_script(
        self, table: Mapping[str, Any], code: bytes, streams: tuple[int, int], folder: str = "", cwd: str | None = None
    ) -> Item:
        """A process for one script, started as the table says (kernels/guest/commands.py); `folder` is made for its files."""
        script = os.memfd_create("script", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(script), "wb") as file:
                file.write(code)
            os.lseek(script, 0, os.SEEK_SET)
            order = {"op": "script", "table": dict(table), "folder": folder, "cwd": cwd}
            return await self._fork(order, [script, *streams])
        finally:
            os.close(script)

    async def fork_copy(self, pipe: int, folder: str, name: str, streams: tuple[int, int]) -> Item:
        """A process that writes what comes through a pipe to a new file of a new folder inside."""
        return await self._fork({"op": "copy", "folder": folder, "name": name}, [pipe, *streams])

    async def _fork(self, order: dict[str, Any], fds: list[int]) -> Item:
        number = next(self._numbers)
        item = self._items[number] = Item(self, number)
        forked = self._forks[number] = self._loop.create_future()
        self.post({**order, "id": number}, fds)
        try:
            item.pid = await asyncio.wait_for(asyncio.shield(forked), _ANSWER_TIMEOUT_S)
        except TimeoutError:
            self.kill(Reason("launcher_silent"))
            raise KernelError("the launcher inside the sandbox does not answer", "Try again.", self._process.log) from None
        except asyncio.CancelledError:
            item.kill()
            raise
        finally:
            self._forks.pop(number, None)
        return item

    def post(self, order: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one order without waiting for its answer.

        Raises:
            KernelError: the sandbox has ended (orders without descriptors are dropped then: there is nothing left to order).
        """
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._control.sendmsg([json.dumps(order).encode()], ancillary)
        except OSError as error:
            if fds:
                self.kill()
                raise KernelError(f"the sandbox has ended ({error.strerror})", "Try again.", self._process.log) from None

    def _read(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._control, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            message, fds = b"", []
        self._serve(fds)
        if not message:
            self._gone()
            return
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            self._take(json.loads(message))

    def _serve(self, fds: list[int]) -> None:
        """The first descriptor, before any item runs, is the socket on which the shims are answered; no other is wanted."""
        for fd in fds:
            if self._broker is None or self._service is not None or self._ready.done():
                os.close(fd)
            else:
                self._service = Service(self._broker, socket.socket(fileno=fd))

    def _take(self, answer: dict[str, Any]) -> None:
        if "ready" in answer and not self._ready.done():
            self._ready.set_result(None)
        elif (forked := self._forks.get(answer.get("forked", 0))) is not None and not forked.done():
            forked.set_result(int(answer["pid"]))
        elif (refused := self._forks.get(answer.get("refused", 0))) is not None and not refused.done():
            self._items.pop(answer["refused"], None)
            why = f"no further process starts in the sandbox ({str(answer['why'])[:80]})"
            refused.set_exception(KernelError(why, "End what runs in it, or raise limits.processes."))
        elif (item := self._items.pop(answer.get("ended", 0), None)) is not None and not item.ended.done():
            with contextlib.suppress(KeyError, TypeError, ValueError):
                item.cpu_s = float(answer["cpu_s"])
            item.ended.set_result(os.waitstatus_to_exitcode(int(answer["status"])))
        elif answer.get("overrun") is True:
            self.why = self.why or Reason("fork_overrun")

    def _gone(self) -> None:
        """The sandbox has ended: so has everything in it."""
        if not self.alive:
            return
        self.alive = False
        self.masked.remove()
        self._loop.remove_reader(self._control.fileno())
        self._control.close()
        if self._service is not None:
            self._service.stop()
        lost = KernelError("the sandbox has ended", "Try again.", self._process.log)
        unanswered: list[asyncio.Future[Any]] = [self._ready, *self._forks.values()]
        for waiting in unanswered:
            if not waiting.done():
                waiting.set_exception(lost)
                waiting.exception()  # seen here: nobody may be waiting for it any more
        for item in self._items.values():
            if not item.ended.done():
                item.ended.set_result(None)
        self._items.clear()

    def process_kill(self, why: Reason) -> None:
        """Kill the sandbox from any thread; the event loop learns of it when the control socket closes."""
        self.why = self.why or why
        self._process.kill()

    def wake(self) -> None:
        """Continue the launcher, should it have been stopped from inside."""
        for pid in children(self._process.init_pid or 0):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill(self, why: Reason | None = None) -> None:
        """End the sandbox and everything in it, now. `why`: for those whose scripts run in it."""
        self.why = self.why or why
        self._process.kill()
        self._gone()

    async def close(self) -> None:
        """End the sandbox and wait until nothing of it is left."""
        self.kill()
        with anyio.CancelScope(shield=True):
            await self._loop.run_in_executor(None, self._process.end)
            if self._service is not None:
                await self._loop.run_in_executor(None, self._service.close)


def _limits(settings: Settings) -> dict[str, int]:
    """What the launcher sets on itself, and so on all below it (names as in setrlimit(2))."""
    return {
        "NPROC": settings.limits.processes,
        "NOFILE": settings.limits.descriptors,
        "FSIZE": settings.limits.file,
        "CPU": settings.limits.cpu,
        **REFUSED_LIMITS,
    }


async def _even_if_cancelled(starting: asyncio.Future[_T], end: Callable[[_T], object]) -> _T:
    """What was started; when we are cancelled meanwhile, it is ended as soon as it is there."""
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(lambda done: None if done.cancelled() or done.exception() else end(done.result()))
        raise
