"""Serve one client on its wire until it hangs up or a signal asks to stop; then end everything that was started."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server

from sandboxmcp.core.settings import Settings
from sandboxmcp.server.app import make_server
from sandboxmcp.server.stdio import Wire
from sandboxmcp.services import Services
from sandboxmcp.tools.sharing import shared

_CLOSING_S = 5.0
"""What ending the kernels may take; the sandbox dies with this process anyway."""


def serve(settings: Settings, wire: Wire) -> int:
    """Blocks; returns the exit code of the process."""
    return anyio.run(_serve, Services(settings), wire)


async def _serve(services: Services, wire: Wire) -> int:
    received: list[int] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_on_signal, group.cancel_scope, received)
            async with shared(services):
                await _talk(services, wire)
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


async def _talk(services: Services, wire: Wire) -> None:
    server = make_server(services)
    async with stdio_server(stdin=cast(Any, _Incoming(wire)), stdout=cast(Any, _Outgoing(wire))) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Incoming:
    """Lines from the client, read on a daemon thread: one blocked in a read must not keep the process from ending."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def __aiter__(self) -> AsyncIterator[str]:
        sender, receiver = anyio.create_memory_object_stream[str](0)
        arguments = (self._wire, sender, anyio.lowlevel.current_token())
        threading.Thread(target=_pump, args=arguments, name="stdin", daemon=True).start()
        async with receiver:
            async for line in receiver:
                yield line


def _pump(wire: Wire, sender: MemoryObjectSendStream[str], token: anyio.lowlevel.EventLoopToken) -> None:
    try:
        line = wire.first
        while line:
            anyio.from_thread.run(sender.send, line.decode("utf-8", "replace"), token=token)
            line = wire.incoming.readline()
        anyio.from_thread.run_sync(sender.close, token=token)
    except (anyio.RunFinishedError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # the server ended first


class _Outgoing:
    """Lines to the client, without the SDK's answer to a request that was answered already."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def write(self, text: str) -> None:
        if self._wire.answered is not None and json.loads(text).get("id") == self._wire.answered:
            self._wire.answered = None
            return
        await anyio.to_thread.run_sync(self._send, text.encode())

    def _send(self, line: bytes) -> None:
        self._wire.outgoing.write(line)
        self._wire.outgoing.flush()

    async def flush(self) -> None:
        """Every line is flushed as it is written."""
