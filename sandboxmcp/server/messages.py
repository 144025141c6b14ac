"""Lines of JSON on the wire as the SDK's messages, both ways. A line that is none is answered with an error, as JSON-RPC wants it.

The SDK's own loop passes over such a line, and its client waits for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import select
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from sandboxmcp.server.refusals import refusal
from sandboxmcp.server.wire import Wire

_AHEAD = 8
"""Lines of the client that are read before they are asked for."""

Received = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def messages(wire: Wire, ended: anyio.Event) -> AsyncIterator[tuple[Received, Sent]]:
    """The messages that come and those that go; `ended` is set when the client has hung up."""
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, _Incoming(wire, ended), to_session, outgoing.clone())
        group.start_soon(_write, from_session, _Outgoing(wire))
        yield incoming, outgoing


async def _read(lines: _Incoming, session: MemoryObjectSendStream[SessionMessage | Exception], answers: Sent) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session has ended
        async with session, answers:
            async for line in lines:
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, RecursionError) as error:
                    if answer := refusal(line, error):
                        await answers.send(SessionMessage(answer))
                    continue
                await session.send(SessionMessage(message))


async def _write(session: MemoryObjectReceiveStream[SessionMessage], lines: _Outgoing) -> None:
    async with session:
        async for one in session:
            await lines.write(one.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")


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
