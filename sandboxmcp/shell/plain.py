"""Inputs from a pipe, or from a terminal that cannot edit: lines as they come, cut into inputs."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable

from sandboxmcp.shell.inputs import Splitter

_PIECE = 1 << 16


class Lines:
    """Lines of standard input, read on a thread of its own.

    The descriptor is read, not `sys.stdin`: a thread that waits in the latter holds a lock that the interpreter's end needs.
    """

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._rest = b""
        self._ready: list[bytes] = []
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        piece = b"?"
        while piece:
            try:
                piece = os.read(self._fd, _PIECE)
            except OSError:
                piece = b""
            try:
                loop.call_soon_threadsafe(self._queue.put_nowait, piece)
            except RuntimeError:
                return  # the loop ended first

    async def next(self) -> str | None:
        """The next line without its end; None when there is none."""
        while not self._ready:
            piece = await self._queue.get()
            if not piece:
                self._queue.put_nowait(b"")
                last, self._rest = self._rest, b""
                return last.decode("utf-8", "replace") if last else None
            *lines, self._rest = (self._rest + piece).split(b"\n")
            self._ready = lines
        return self._ready.pop(0).removesuffix(b"\r").decode("utf-8", "replace")


class PlainPrompt:
    """Inputs from lines. With `prompts`, somebody types them: they are asked for, and an empty line ends a block."""

    def __init__(self, lines: Lines, language: Callable[[], str], title: Callable[[], str], *, prompts: bool) -> None:
        self._lines = lines
        self._language = language
        self._title = title
        self._prompts = prompts
        self._splitter = Splitter(blank_ends=prompts)
        self._ready: list[str] = []

    async def ask_input(self) -> str:
        """The next input. Raises: EOFError at the end."""
        while not self._ready:
            self._show(f"{self._title()}> " if not self._splitter.waiting else "... ")
            line = await self._lines.next()
            if line is None:
                if self._splitter.waiting:
                    return self._splitter.rest()
                raise EOFError
            self._ready = list(self._splitter.feed(line, self._language()))
        return self._ready.pop(0)

    async def ask(self, question: str) -> str:
        """One line in answer to a question. Raises: EOFError at the end."""
        self._show(question)
        line = await self._lines.next()
        if line is None:
            raise EOFError
        return line

    def _show(self, text: str) -> None:
        if self._prompts:
            sys.stdout.write(text)
            sys.stdout.flush()
