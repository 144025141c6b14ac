"""Serve one client on its wire until it hangs up or a signal asks to stop; then end everything that was started."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import queue
import select
import signal
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server

from sandboxmcp.core.settings import Settings
from sandboxmcp.server.app import make_server
from sandboxmcp.server.stdio import Wire
from sandboxmcp.services import Services
from sandboxmcp.tools.sharing import shared

_CLOSING_S = 5.0
"""What ending the kernels may take; the sandbox dies with this process anyway."""
_COLLECTED_AFTER = 50_000
"""Objects that are made before the young ones are looked through for cycles."""
_AHEAD = 8
"""Lines of the client that are read before they are asked for."""


def serve(settings: Settings, wire: Wire) -> int:
    """Blocks; returns the exit code of the process."""
    # What was imported stays for ever, and indexing makes and drops hundreds of thousands of tuples: looking through them for
    # cycles every 700 cost a twelfth of its time.
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, 20, 20)
    return anyio.run(_serve, Services(settings), wire)


async def _serve(services: Services, wire: Wire) -> int:
    received: list[int] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_on_signal, group.cancel_scope, received)
            async with shared(services):
                await _talk(services, wire, group)
            group.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await services.close()
    return 128 + received[0] if received else 0


async def _stop_on_signal(scope: anyio.CancelScope, received: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            received.append(number)
            scope.cancel()
            return


async def _stop_after_the_client(ended: anyio.Event, scope: anyio.CancelScope) -> None:
    """A client that hung up may still read the answers to what it asked, but not for ever."""
    await ended.wait()
    await anyio.sleep(_CLOSING_S)
    scope.cancel()


async def _talk(services: Services, wire: Wire, group: TaskGroup) -> None:
    server = make_server(services)
    ended = anyio.Event()
    group.start_soon(_stop_after_the_client, ended, group.cancel_scope)
    async with stdio_server(stdin=cast(Any, _Incoming(wire, ended)), stdout=cast(Any, _Outgoing(wire))) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Incoming:
    """Lines from the client, read on a daemon thread: one blocked in a read must not keep the process from ending."""

    def __init__(self, wire: Wire, ended: anyio.Event) -> None:
        self._wire = wire
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[str]:
        sender, receiver = anyio.create_memory_object_stream[str](_AHEAD + 1)
        room = threading.Semaphore(_AHEAD)
        arguments = (self._wire, asyncio.get_running_loop(), sender, room)
        threading.Thread(target=_pump, args=arguments, name="stdin", daemon=True).start()
        async with receiver:
            async for line in receiver:
                room.release()
                yield line
        self._ended.set()


def _pump(wire: Wire, loop: asyncio.AbstractEventLoop, sender: MemoryObjectSendStream[str], room: threading.Semaphore) -> None:
    """Hands lines over without waiting for the loop to take them, a few ahead of it: to wait takes two changes of thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: the server ended first
        line = wire.first
        while line:
            room.acquire()
            loop.call_soon_threadsafe(_offer, sender, _sound(line))
            line = wire.incoming.readline()
        loop.call_soon_threadsafe(sender.close)


def _offer(sender: MemoryObjectSendStream[str], line: str) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody listens any more
        sender.send_nowait(line)


def _sound(line: bytes) -> str:
    """The line as text that every parser takes: half of a surrogate pair (a client cut an emoji in two) becomes U+FFFD."""
    text = line.decode("utf-8", "replace")
    if "\\ud" not in text and "\\uD" not in text:
        return text
    try:
        message = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    return message.encode("utf-8", "surrogatepass").decode("utf-8", "replace") + "\n"


class _Outgoing:
    """Lines to the client, without the SDK's answer to a request that was answered already.

    Past every buffer, and what the client does not take at once on a daemon thread: one that has stopped reading must not
    keep the server from ending.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._ready = select.poll()
        self._ready.register(wire.outgoing.fileno(), select.POLLOUT)
        self._rest: queue.SimpleQueue[tuple[memoryview, anyio.Event, anyio.lowlevel.EventLoopToken]] = queue.SimpleQueue()
        threading.Thread(target=self._send, name="stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        if self._wire.answered is not None and json.loads(text).get("id") == self._wire.answered:
            self._wire.answered = None
            return
        left = self._sent_at_once(memoryview(text.encode()))
        if left:
            sent = anyio.Event()
            self._rest.put((left, sent, anyio.lowlevel.current_token()))
            await sent.wait()

    def _sent_at_once(self, left: memoryview) -> memoryview:
        """What is left of a line when the client has taken what it can take without making us wait."""
        with contextlib.suppress(OSError):
            while left and self._ready.poll(0) == [(self._wire.outgoing.fileno(), select.POLLOUT)]:
                left = left[os.write(self._wire.outgoing.fileno(), left[: select.PIPE_BUF]) :]
        return left

    def _send(self) -> None:
        with contextlib.suppress(OSError, anyio.RunFinishedError):  # the client hung up, or the server ended
            while True:
                left, sent, token = self._rest.get()
                while left:
                    left = left[os.write(self._wire.outgoing.fileno(), left) :]
                anyio.from_thread.run_sync(sent.set, token=token)

    async def flush(self) -> None:
        """Every line is written at once."""
