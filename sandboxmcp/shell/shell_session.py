"""One person's session: where code runs at the moment, what an input does, and what Ctrl-C means just now."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from typing import Any

import anyio.to_thread

from sandboxmcp.core.errors import KernelGone, SandboxmcpError, UsageError
from sandboxmcp.core.reasons import from_json
from sandboxmcp.kernels.jupyter.kernelspecs import stateful_languages
from sandboxmcp.kernels.languages import UnknownLanguage
from sandboxmcp.kernels.registry import Shared, shared_kernels
from sandboxmcp.kernels.script_run import HEED_S, Begun
from sandboxmcp.render.fence import one_line
from sandboxmcp.render.reasons import said
from sandboxmcp.session import Session
from sandboxmcp.shell.follow import Follower, StreamName
from sandboxmcp.shell.frontends import Face
from sandboxmcp.shell.inputs import Input, parse
from sandboxmcp.shell.kernel_targets import Joined, OnBegin, Own, Seat
from sandboxmcp.shell.screen import Left, Output
from sandboxmcp.tools.asking import ASK, Question
from sandboxmcp.tools.interactive import Desk

OWN_KERNEL = "terminal"
"""The name of the shell's own kernel, unless another is asked for."""
_PATIENCE_S = 0.5
"""How long a script may wait for its turn before that is said."""
_CODES = {"ok": 0, "denied": 3}
_REASON_LENGTH = 400
_ENDINGS = {"killed": "killed", "timeout": "timed out", "cancelled": "cancelled"}


CarryOut = Callable[["ShellSession", str], Awaitable[None]]
"""Runs a command of the shell's own: the session, and the line without its colon."""


class Leave(Exception):
    """The person wants to go."""


class ShellSession:
    """Runs inputs one after the other. `code` is the exit code of the last one."""

    def __init__(self, session: Session, face: Face, carry_out: CarryOut) -> None:
        self.session = session
        self.face = face
        self._carry_out = carry_out
        self.desk = Desk(session)
        self.seat: Seat | None = None
        """None: the language keeps no state, and every input runs fresh."""
        self.language = "python"
        self.own_kernel = OWN_KERNEL
        self.more: tuple[str, int] | None = None
        """Handle and line at which `:more` goes on."""
        self.code = 0
        self._known_dead = False
        self._task: asyncio.Task[dict[str, Any]] | None = None
        self._begun: Begun | None = None
        self._presses = 0
        self._noting: asyncio.Task[None] | None = None
        self._asking = False
        """Whether a question of the policy's waits for an answer."""

    async def start(self, kernel: str | None, language: str | None) -> None:
        """Sit down: at a kernel of that name that another process of this project has, else at one of our own.

        Raises:
            UsageError: the name or the language cannot be used. SandboxUnavailable: nothing can run here.
        """
        self.own_kernel = kernel or OWN_KERNEL
        others = [
            one for one in await self.others() if one.name == kernel and one.workspace == str(self.session.settings.workspace)
        ]
        if len(others) == 1 and language in (None, others[0].language):
            await self.join(others[0])
        else:
            await self.speak(language or "python")

    async def speak(self, language: str) -> None:
        """Go on in a language: at the kernel of our own for it, or without one where it keeps no state.

        Raises:
            UsageError: there is no such language. SandboxUnavailable: its kernel does not start.
        """
        runner = await anyio.to_thread.run_sync(lambda: self.session.runner)
        if language not in runner.languages():
            raise UnknownLanguage(language, runner.languages())
        seat: Seat | None = None
        if keeps_state(self.session, language):
            name = self.own_kernel if language == "python" else f"{self.own_kernel}-{language}"[:64]
            await self.desk.open(name, language)
            seat = Own(self.desk, name, language)
        await self._sit(seat, language)

    async def join(self, kernel: Shared) -> None:
        """Go on at a kernel of another process. Raises: UsageError when it is gone."""
        await self._sit(await Joined.join(kernel), kernel.language)

    async def _sit(self, seat: Seat | None, language: str) -> None:
        if self.seat is not None:
            await self.seat.close()
        self.seat, self.language, self._known_dead = seat, language, False

    async def others(self) -> list[Shared]:
        """The named kernels of other processes."""
        here = self.session.registry.door
        found = await anyio.to_thread.run_sync(shared_kernels, self.session.settings.data_dir)
        return [kernel for kernel in found if kernel.door != here]

    async def enter(self, typed: str) -> None:
        """Do what was typed. What is wrong with it is told, never raised.

        Raises:
            Leave: it was asked for.
        """
        given = parse(typed, inspects=self.seat is not None)
        if given.kind == "nothing":
            return
        if given.kind == "leave":
            raise Leave
        facts: dict[str, Any] = {}
        ASK.set(self._put)
        try:
            facts = await self._do(given)
            self.code = facts.pop("code", _CODES.get(facts.get("status", "ok"), 1))
        except SandboxmcpError as error:
            self.face.complain(one_line(str(error), 2_000))
            self.code = error.exit_code
        self.face.ended({**facts, "code": self.code})

    async def _put(self, questions: Sequence[Question]) -> dict[str, bool]:
        """The policy's questions, to the person; none where nobody answers."""
        if not self.face.answers:
            return {}
        self._asking = True
        try:
            return {one.key: await self.face.confirm(one_line(one.text.partition("\n\n")[0], 400)) for one in questions}
        finally:
            self._asking = False

    async def _do(self, given: Input) -> dict[str, Any]:
        if given.kind == "command":
            await self._carry_out(self, given.text)
            return {"code": 0}
        if given.kind == "shell":
            return await self._run(lambda begin: self.desk.run(given.text, "shell", None, begin))
        if given.kind == "inspect":
            return await self._inspect(given.text, given.detail)
        if self.seat is None:
            return await self._run(lambda begin: self.desk.run(given.text, self.language, None, begin))
        return await self._run_at(self.seat, given.text)

    async def _run_at(self, seat: Seat, code: str) -> dict[str, Any]:
        if not await seat.alive():
            if not self._known_dead:
                why = "; ".join(await self.desk.notices()) or "it ended while nothing ran"
                wanted = await self._gone(seat, why)
                if self.seat is not seat or (self.face.answers and not wanted):
                    return {"code": 1}
            await self._revive(seat)
        try:
            facts = await self._run(lambda begin: seat.run(code, begin))
        except KernelGone:
            await self._outlived(seat)
            return {"code": 1}
        if facts.pop("kernel_ended", False):
            before = takewhile(lambda one: one.code != "kernel_ended", from_json(facts.get("reasons", ())))
            if await self._gone(seat, said(before) or f"exit {facts['exit_code']}"):
                await self._revive(seat)
        return facts

    async def _outlived(self, seat: Seat) -> None:
        """The kernel that an input waited for has ended. The input does not run in its successor: that has no variables."""
        why = "it ended while this input waited for its turn; the input was not run"
        if await seat.alive():
            self.face.complain(f"The kernel {seat.title} was started anew, and its variables are gone: {why}.")
        elif await self._gone(seat, why):
            await self._revive(seat)

    async def _gone(self, seat: Seat, why: str) -> bool:
        """Tell that a kernel has ended; whether another start is wanted. From one that was joined it goes back to our own."""
        self._known_dead = True
        self.face.complain(f"The kernel {seat.title} is gone, and its variables: {one_line(why, 400)}.")
        if isinstance(seat, Joined):
            await self.speak("python")
            self.face.note(f"back at {self.own_kernel}")
            return False
        return await self.face.confirm("Start it again?")

    async def _revive(self, seat: Seat) -> None:
        await seat.restart()
        self._known_dead = False
        self.face.note(f"{seat.title} runs again, empty")

    async def _run(self, start: Callable[[OnBegin], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Run something that begins sooner or later; show its output meanwhile."""
        output, ended = self.face.output(), asyncio.Event()
        following: list[asyncio.Task[None]] = []
        seen: set[StreamName] = set()

        def begin(begun: Begun) -> None:
            self._begun = begun
            follower = Follower(begun.stem)
            seen.update(("out", "err") if not follower.missed else ())
            following.append(asyncio.create_task(follower.follow(output.feed, ended)))

        async def started() -> dict[str, Any]:
            return await start(begin)

        self._presses = 0
        task = self._task = asyncio.create_task(started())
        waiting = asyncio.create_task(self._say_that_it_waits())
        try:
            facts = await task
        except asyncio.CancelledError:
            if not self._presses:
                raise
            facts = {"status": "cancelled", "exit_code": None, "kernel_ended": False}
        finally:
            self._task = self._begun = None
            waiting.cancel()
            if self._noting is not None:
                self._noting.cancel()
            ended.set()
            await asyncio.gather(*following)
        await self._catch_up(output, facts, seen)
        self._conclude(output, facts)
        return facts

    async def _say_that_it_waits(self) -> None:
        await asyncio.sleep(_PATIENCE_S)
        while self._asking:
            await asyncio.sleep(_PATIENCE_S)
        if self._begun is None and self.seat is not None and await self.seat.busy():
            self.face.note("the kernel is busy; waiting for its turn, Ctrl-C gives up")

    async def _say_that_it_runs_on(self, task: asyncio.Task[dict[str, Any]]) -> None:
        """A script may ignore Ctrl-C, which is then not taken for the end of it."""
        await asyncio.wait([task], timeout=HEED_S)
        if not task.done() and self._presses == 1:
            self.face.note("it runs on: it did not heed the interrupt; Ctrl-C again ends it")

    async def _catch_up(self, output: Output, facts: dict[str, Any], seen: set[StreamName]) -> None:
        """What had ended before it could be followed is read from the store."""
        handles: dict[StreamName, str | None] = {"out": facts.get("handle"), "err": facts.get("stderr")}
        for stream, handle in handles.items():
            if stream not in seen and handle:
                for piece in await anyio.to_thread.run_sync(self._stored, handle):
                    output.feed(stream, piece)

    def _stored(self, handle: str) -> list[bytes]:
        return list(self.session.store.raw(handle))

    def _conclude(self, output: Output, facts: dict[str, Any]) -> None:
        """The end of the output, and what is to be known beside it."""
        left = output.finish(lambda left: self._where(left, facts))
        self._remember_more(left, facts)
        status, reasons = facts["status"], from_json(facts.get("reasons", ()))
        reason = one_line(said(reasons, after_status=True), _REASON_LENGTH)
        if status == "denied":
            self.face.complain(f"denied: {reason}")
        elif status in _ENDINGS and not facts.get("kernel_ended"):  # else what became of the kernel is told, and why
            self.face.complain(": ".join(filter(None, (_ENDINGS[status], reason))))
        elif status == "failed" and not facts.get("kernel_ended") and (reason or not facts.get("stderr")):
            ending = f"exit {facts['exit_code']}" if facts["exit_code"] else "failed"
            self.face.note(", ".join(filter(None, (ending, reason))))
        for artifact in facts.get("artifacts", ()):
            self.face.note(f"{artifact['mime']} {artifact['handle']} {artifact['bytes']:,} B")

    def _where(self, left: Left, facts: dict[str, Any]) -> str:
        handles = " ".join(filter(None, (facts.get("handle"), facts.get("stderr"))))
        count = f"{left.lines:,} lines not shown" if left.lines else "lines cut"
        return f"{count}; :more shows them, all is in {handles}" if handles else count

    def _remember_more(self, left: Left, facts: dict[str, Any]) -> None:
        if not left.next_line:
            return
        handle, errors = facts.get("handle"), facts.get("stderr")
        if handle and left.next_line["out"] <= facts.get("lines", 0):
            self.more = handle, left.next_line["out"]
        elif errors and left.lines:
            self.more = errors, left.next_line["err"]

    async def _inspect(self, name: str, detail: int) -> dict[str, Any]:
        if self.seat is None or not await self.seat.alive():
            raise UsageError("no kernel runs that could be asked", "Run something first.")
        found = await self.seat.inspect(name, len(name), detail)
        text = found.get("data", {}).get("text/plain", "")
        if not found:
            raise UsageError("the kernel is busy", "Ask again when it has ended what it runs.")
        if not found.get("found") or not text:
            raise UsageError(f"there is nothing called {name!r}")
        output = self.face.output()
        output.feed("out", str(text).strip("\n").encode(errors="replace") + b"\n")
        output.finish(lambda left: f"{left.lines:,} lines not shown")
        return {"code": 0}

    def interrupt(self) -> bool:
        """Ctrl-C: interrupt what runs; give up what waits for its turn or did not heed. False when nothing runs."""
        if self._task is None or self._task.done():
            return False
        self._presses += 1
        if self._begun is not None and self._presses == 1:
            with contextlib.suppress(Exception):
                self._begun.interrupt()
            self._noting = asyncio.ensure_future(self._say_that_it_runs_on(self._task))
        else:
            self._task.cancel()
        return True

    async def close(self) -> None:
        """Leave the kernel."""
        if self.seat is not None:
            await self.seat.close()


def keeps_state(session: Session, language: str) -> bool:
    """Whether a language's variables live on between inputs."""
    return language in {*stateful_languages(), *session.settings.kernelspecs}
