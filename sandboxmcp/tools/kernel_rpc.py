"""This process's named kernels, worked by other processes of the same user: a person joins the kernel that an agent is using.

A socket in the private folder of the registry. One JSON document a line; the requests of one connection overlap:

    → {"id": n, "op": "run", "kernel": …, "language": …, "code": …}      ← {"id": n, "begun": stem}, later {"id": n, "done": facts}
                                      with "asks": true, before it begins: ← {"id": n, "ask": [{"key", "text"}]}
    → {"id": n, "op": "answers", "run": n, "answers": {key: bool}}         ← {"id": n, "done": null}
    → {"id": n, "op": "interrupt" | "cancel", "run": n}                    ← {"id": n, "done": null}
    → {"id": n, "op": "complete" | "inspect" | "states" | "alive" | "busy", …}      ← {"id": n, "done": …}
    → {"id": n, "op": "job", "job": …, "action": "result" | "cancel", "budget_tokens": …}     ← {"id": n, "done": answer}
    → {"id": n, "op": "act", "kernel": …, "action": "interrupt" | "restart" | "stop"}
                            ← {"id": n, "done": null}, of an interrupt "idle", "interrupted", "ended" or "runs on"
                                                                 ← {"id": n, "error": {"what", "fix", "exit_code", "gone"}}

What is run here is judged, captured and stored as the owner's own calls are, and waits for its turn among them: an output never
ends in another call's capture, a time limit never interrupts another's script. A connection that closes cancels what it runs.
Not reachable from inside a sandbox; whoever reaches it is the user, or root.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxmcp.core.errors import KernelGone, SandboxmcpError, UsageError
from sandboxmcp.core.surface import MCP, speaking_to
from sandboxmcp.kernels.registry import prepare
from sandboxmcp.session import Session
from sandboxmcp.tools.asking import ASK, Question
from sandboxmcp.tools.interactive import Desk
from sandboxmcp.tools.jobs import jobs
from sandboxmcp.tools.kernel_client import LONGEST_LINE, short_address
from sandboxmcp.tools.surfaces import SURFACES

if TYPE_CHECKING:
    from sandboxmcp.kernels.script_run import Begun


@asynccontextmanager
async def shared(session: Session) -> AsyncIterator[None]:
    """Take requests while the block lasts. Where no socket can be made, nothing is shared and the rest goes on."""
    door = session.registry.door
    try:
        listener = _listener(door)
    except OSError:
        yield
        return
    clients: set[asyncio.Task[None]] = set()

    def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_Client(session, reader, writer).serve())
        clients.add(task)
        task.add_done_callback(clients.discard)

    server = await asyncio.start_unix_server(greet, sock=listener, limit=LONGEST_LINE)
    try:
        yield
    finally:
        server.close()
        for task in clients:
            task.cancel()
        with contextlib.suppress(OSError):
            door.unlink()
        session.registry.close()


def _listener(door: Path) -> socket.socket:
    """Bound through the folder's descriptor: an address holds 107 bytes, and a path may be longer."""
    prepare(door.parent)
    door.unlink(missing_ok=True)
    with short_address(door) as address:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    return listener


class _Client:
    """One connection."""

    def __init__(self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._session = session
        self._desk = Desk(session)
        self._reader = reader
        self._writer = writer
        self._who = f"process {_peer(writer)[0]} of the same user"
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._begun: dict[Any, Begun] = {}
        self._asked: dict[Any, asyncio.Future[Mapping[str, bool]]] = {}
        """The policy's questions that wait for the other side's answers, by the run that they are about."""

    async def serve(self) -> None:
        """Answer until the other side closes."""
        try:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                while _is_us(self._writer) and (line := await self._reader.readline()):
                    request = json.loads(line)
                    self._tasks[request["id"]] = asyncio.create_task(self._answer(request))
        finally:
            for task in list(self._tasks.values()):
                task.cancel()
            self._writer.close()

    async def _answer(self, request: dict[str, Any]) -> None:
        number = request.get("id")
        try:
            with speaking_to(SURFACES.get(request.get("surface", ""), MCP)):
                done = await self._operation(request.get("op"))(request)
        except SandboxmcpError as error:
            facts = {"what": error.what, "fix": error.fix, "exit_code": error.exit_code, "gone": isinstance(error, KernelGone)}
            self._tell(id=number, error=facts)
        except (KeyError, TypeError) as error:
            self._tell(id=number, error={"what": f"the request cannot be understood: {error}", "fix": "", "exit_code": 2})
        except asyncio.CancelledError:
            self._tell(id=number, done={"status": "cancelled"})
            raise
        else:
            self._tell(id=number, done=done)
        finally:
            self._tasks.pop(number, None)
            self._begun.pop(number, None)

    def _operation(self, name: Any) -> Callable[[dict[str, Any]], Awaitable[Any]]:
        known = {
            "run": self._run,
            "interrupt": self._interrupt,
            "cancel": self._cancel,
            "answers": self._answers,
            "job": self._job,
            "alive": lambda asked: self._desk.alive(asked["kernel"]),
            "busy": lambda asked: self._desk.busy(asked["kernel"]),
            "states": lambda asked: self._desk.states(),
            "act": lambda asked: self._desk.act(asked["kernel"], asked["action"], f"{self._who} ({asked['action']})"),
            "complete": lambda asked: self._desk.complete(asked["kernel"], asked["code"], asked["cursor"]),
            "inspect": lambda asked: self._desk.inspect(asked["kernel"], asked["code"], asked["cursor"], asked["detail"]),
        }
        if name not in known:
            raise UsageError(f"there is no operation {name!r}", f"Known: {', '.join(known)}.")
        return known[name]

    async def _run(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("asks"):
            ASK.set(partial(self._ask, asked["id"]))

        def begun(begun: Begun) -> None:
            self._begun[asked["id"]] = begun
            self._tell(id=asked["id"], begun=str(begun.stem))

        timeout_s = asked.get("timeout_s")
        return await self._desk.run(asked["code"], asked["language"], asked["kernel"], begun, timeout_s)

    async def _ask(self, run: Any, questions: Sequence[Question]) -> Mapping[str, bool]:
        """Whoever is at the other side decides: it is the same user."""
        self._asked[run] = asyncio.get_running_loop().create_future()
        self._tell(id=run, ask=[{"key": one.key, "text": one.text} for one in questions])
        try:
            return await self._asked[run]
        finally:
            del self._asked[run]

    async def _answers(self, asked: dict[str, Any]) -> None:
        waiting = self._asked.get(asked["run"])
        if waiting is not None and not waiting.done():
            waiting.set_result({str(key): allowed is True for key, allowed in asked["answers"].items()})

    async def _job(self, asked: dict[str, Any]) -> dict[str, Any]:
        action, budget = asked["action"], int(asked["budget_tokens"])
        reply = await jobs(self._session, action=action, job=asked["job"], budget_tokens=budget)
        return {"text": reply.text, "facts": dict(reply.structured), "is_error": reply.is_error}

    async def _interrupt(self, asked: dict[str, Any]) -> None:
        if (begun := self._begun.get(asked["run"])) is not None:
            begun.interrupt()

    async def _cancel(self, asked: dict[str, Any]) -> None:
        if (task := self._tasks.get(asked["run"])) is not None:
            task.cancel()

    def _tell(self, **message: Any) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(json.dumps(message).encode() + b"\n")


def _is_us(writer: asyncio.StreamWriter) -> bool:
    """Whether the other side is our own user, or root (socket(7), SO_PEERCRED)."""
    return _peer(writer)[1] in (os.geteuid(), 0)


def _peer(writer: asyncio.StreamWriter) -> tuple[int, int, int]:
    """Process, user and group of the other side."""
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, gid = struct.unpack("3i", peer)
    return pid, uid, gid
