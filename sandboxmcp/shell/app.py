"""The shell as a whole: what it talks to is found out, the session started, inputs run until there are no more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import replace
from typing import Any, Protocol

import anyio

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.core.settings import Settings
from sandboxmcp.core.surface import speaking_to
from sandboxmcp.session import Session
from sandboxmcp.shell.commands import carry_out
from sandboxmcp.shell.frontends import Face, JsonFace, PipeFace, TerminalFace
from sandboxmcp.shell.plain import Lines, PlainPrompt
from sandboxmcp.shell.shell_session import Leave, ShellSession
from sandboxmcp.tools.kernel_rpc import shared
from sandboxmcp.tools.surfaces import SHELL

_INTERRUPTED = 130
_FOR_EVER_S = 365 * 86_400.0
_WRITES = {
    "rw": "writes in {} only",
    "ro": "reads {}, writes nothing there",
    "overlay": "what it changes in {} is kept aside (sandboxmcp workspace diff)",
}
"""What is said of the project, by `workspace_mode`."""
_DUMB = ("", "dumb", "unknown")


class Inputs(Protocol):
    """Where inputs come from."""

    async def ask_input(self) -> str:
        """The next one. Raises: KeyboardInterrupt when it was given up, EOFError at the end."""

    async def ask(self, question: str) -> str:
        """One line in answer to a question. Raises as `ask_input`."""


def run_shell(settings: Settings, kernel: str | None, language: str | None, *, as_json: bool) -> int:
    """Blocks until the end of the inputs.

    Returns the exit code: 0 after a session at a terminal, else that of the last input.

    Raises:
        UsageError: the name or the language cannot be used. SandboxUnavailable: nothing can run here.
        SandboxmcpError: the output cannot be written.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with speaking_to(SHELL):
            return anyio.run(_Shell(settings, as_json=as_json).run, kernel, language)
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is buffered cannot be written either, and the interpreter would try at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SandboxmcpError(f"the output cannot be written: {error.strerror}", "Make room, or write it elsewhere.") from None


class _Shell:
    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        # A kernel that somebody sits at is not given up because nothing was typed for an hour.
        self._session = Session(replace(settings, kernel_idle_s=_FOR_EVER_S))
        self._as_json = as_json
        self._person = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
        self._edits = self._person and os.environ.get("TERM", "") not in _DUMB
        self._inputs: Inputs | None = None
        self._shell = ShellSession(self._session, self._face(), carry_out)

    def _face(self) -> Face:
        if self._as_json:
            return JsonFace()
        return TerminalFace(styled=self._edits, ask=self._ask) if self._person else PipeFace()

    async def _ask(self, question: str) -> str:
        if self._inputs is None:
            raise EOFError
        return await self._inputs.ask(question)

    async def run(self, kernel: str | None, language: str | None) -> int:
        """The session from its start to its end."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._signalled, number, task)
        try:
            async with shared(self._session):
                await self._shell.start(kernel, language)
                self._inputs = self._make_inputs()
                self._greet()
                await self._talk(self._inputs)
        except asyncio.CancelledError:
            return _INTERRUPTED
        finally:
            with anyio.CancelScope(shield=True):
                await self._shell.close()
                await self._session.close()
        return 0 if self._person else self._shell.code

    def _signalled(self, number: signal.Signals, task: asyncio.Task[Any] | None) -> None:
        """Ctrl-C goes to what runs and never ends a person's shell; a pipe's ends when nothing runs, as other programs do."""
        if number == signal.SIGINT and (self._shell.interrupt() or self._person):
            return
        if task is not None:
            task.cancel()

    def _make_inputs(self) -> Inputs:
        shell = self._shell
        if self._edits:
            from sandboxmcp.shell.terminal import Prompt

            return Prompt(shell)
        title = lambda: shell.seat.title if shell.seat else shell.language  # noqa: E731
        return PlainPrompt(Lines(), lambda: shell.language, title, prompts=self._person)

    def _greet(self) -> None:
        if self._person:
            settings = self._session.enforced
            writes = _WRITES[settings.workspace_mode].format(settings.workspace)
            self._shell.face.note(f"sandboxed; {writes}. :help lists the commands, Ctrl-D leaves.")

    async def _talk(self, inputs: Inputs) -> None:
        while True:
            try:
                await self._shell.enter(await inputs.ask_input())
            except KeyboardInterrupt:
                continue
            except (EOFError, Leave):
                return
