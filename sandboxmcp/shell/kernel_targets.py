"""Where code runs: a kernel of this process's own, or one of another process that was joined."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from sandboxmcp.core.errors import KernelError, KernelGone, SandboxmcpError, UsageError
from sandboxmcp.core.surface import current
from sandboxmcp.kernels.registry import Shared
from sandboxmcp.kernels.script_run import Begun
from sandboxmcp.tools.asking import ASK, Ask, Question, nobody
from sandboxmcp.tools.interactive import Desk
from sandboxmcp.tools.kernel_client import LONGEST_LINE, connected

OnBegin = Callable[[Begun], None]
_ASKING_S = 6.0


class Seat(Protocol):
    """A kernel that one can sit at."""

    language: str

    @property
    def title(self) -> str:
        """How the prompt calls it."""

    async def run(self, code: str, on_begin: OnBegin) -> dict[str, Any]:
        """What became of the code, as `Desk.run` tells it. Cancelled, it ends what it runs."""

    async def complete(self, code: str, cursor: int) -> dict[str, Any]:
        """A complete_reply's content."""

    async def inspect(self, code: str, cursor: int, detail: int) -> dict[str, Any]:
        """An inspect_reply's content."""

    async def alive(self) -> bool:
        """Whether it runs."""

    async def busy(self) -> bool:
        """Whether it runs something."""

    async def restart(self) -> None:
        """Start it (again), empty."""

    async def close(self) -> None:
        """Leave. What is our own ends with us, what is another's goes on."""


class Own:
    """A named kernel of this process."""

    def __init__(self, desk: Desk, kernel: str, language: str) -> None:
        self._desk = desk
        self._kernel = kernel
        self.language = language

    @property
    def title(self) -> str:
        return self._kernel

    async def run(self, code: str, on_begin: OnBegin) -> dict[str, Any]:
        return await self._desk.run(code, self.language, self._kernel, on_begin)

    async def complete(self, code: str, cursor: int) -> dict[str, Any]:
        return await self._desk.complete(self._kernel, code, cursor)

    async def inspect(self, code: str, cursor: int, detail: int) -> dict[str, Any]:
        return await self._desk.inspect(self._kernel, code, cursor, detail)

    async def alive(self) -> bool:
        return await self._desk.alive(self._kernel)

    async def busy(self) -> bool:
        return await self._desk.busy(self._kernel)

    async def restart(self) -> None:
        if await self.alive():
            await self._desk.restart(self._kernel)
        else:
            await self._desk.open(self._kernel, self.language)

    async def close(self) -> None:
        """It ends with the session."""


class Joined:
    """A named kernel of another process, through that process's door."""

    def __init__(self, kernel: Shared, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._kernel = kernel
        self.language = kernel.language
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._begins: dict[int, OnBegin] = {}
        self._asks: dict[int, Ask] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def join(cls, kernel: Shared) -> Joined:
        """Raises: UsageError when nobody is there."""
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connected(kernel.door), limit=LONGEST_LINE)
        except OSError as error:
            why = f"the process {kernel.pid} that has the kernel {kernel.name!r} does not answer: {error.strerror}"
            raise UsageError(why, "See :kernels for those that run.") from None
        return cls(kernel, reader, writer)

    @property
    def title(self) -> str:
        return f"{self._kernel.name}@{self._kernel.pid}"

    async def run(self, code: str, on_begin: OnBegin, timeout_s: float | None = None) -> dict[str, Any]:
        number = next(self._numbers)
        self._begins[number], self._asks[number] = on_begin, ASK.get()
        try:
            asked = {"kernel": self._kernel.name, "language": self.language, "code": code, "asks": True, "timeout_s": timeout_s}
            return dict(await self._ask("run", number=number, **asked))
        except asyncio.CancelledError:
            self._send(id=next(self._numbers), op="cancel", run=number)
            raise
        finally:
            self._begins.pop(number, None)
            self._asks.pop(number, None)

    async def complete(self, code: str, cursor: int) -> dict[str, Any]:
        return dict(await self._question("complete", code=code, cursor=cursor) or {})

    async def inspect(self, code: str, cursor: int, detail: int) -> dict[str, Any]:
        return dict(await self._question("inspect", code=code, cursor=cursor, detail=detail) or {})

    async def alive(self) -> bool:
        with contextlib.suppress(KernelError):
            return bool(await self._question("alive"))
        return False

    async def busy(self) -> bool:
        with contextlib.suppress(KernelError):
            return bool(await self._question("busy"))
        return False

    async def states(self) -> list[dict[str, Any]]:
        """All named kernels of that process, as `Desk.states` tells them."""
        return list(await self._question("states") or [])

    async def restart(self) -> None:
        """Raises: UsageError, always."""
        raise UsageError(f"the kernel {self._kernel.name!r} belongs to process {self._kernel.pid}", "Its owner can start it again.")

    async def close(self) -> None:
        self._listening.cancel()
        self._writer.close()

    async def _question(self, op: str, **more: Any) -> Any:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ASKING_S):
                return await self._ask(op, kernel=self._kernel.name, **more)

    async def _ask(self, op: str, number: int | None = None, **more: Any) -> Any:
        number = next(self._numbers) if number is None else number
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            if self._listening.done():
                raise self._lost()
            self._send(id=number, op=op, surface=current().name, **more)
            return await waiting
        finally:
            self._waiting.pop(number, None)

    def _send(self, **message: Any) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _decide(self, number: int, asked: list[dict[str, str]]) -> None:
        """The owner's policy has questions about what was sent: they are put to whoever sits here."""
        ask = self._asks.get(number, nobody)
        answers = await ask([Question(one["key"], one["text"]) for one in asked])
        self._send(id=next(self._numbers), op="answers", run=number, answers=dict(answers))

    def _lost(self) -> KernelError:
        return KernelError(f"the process {self._kernel.pid} that had the kernel {self._kernel.name!r} has ended", "See :kernels.")

    async def _listen(self) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):
                while line := await self._reader.readline():
                    self._take(json.loads(line))
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(self._lost())

    def _take(self, message: dict[str, Any]) -> None:
        number = message["id"]
        if "begun" in message:
            if (begin := self._begins.get(number)) is not None:
                begin(Begun(Path(message["begun"]), lambda: self._send(id=next(self._numbers), op="interrupt", run=number)))
            return
        if "ask" in message:
            asking = asyncio.create_task(self._decide(number, message["ask"]))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
            return
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():
            return
        if (error := message.get("error")) is not None:
            waiting.set_exception(KernelGone(self._kernel.name) if error.get("gone") else _failure(error))
        else:
            waiting.set_result(message.get("done"))


def _failure(error: dict[str, Any]) -> SandboxmcpError:
    """An error of the owner's, as it was."""
    failure = SandboxmcpError(error["what"], error["fix"])
    failure.exit_code = int(error["exit_code"])
    return failure
