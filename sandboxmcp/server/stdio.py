"""Serve one client over standard input and output until it hangs up or a signal asks to stop.

Standard output carries the protocol and nothing else: the SDK points descriptor 1 at stderr while it serves.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server

from sandboxmcp.core.settings import Settings
from sandboxmcp.server.app import make_server
from sandboxmcp.services import Services

_CLOSING_S = 5.0
"""What ending the kernels may take; the sandbox dies with this process anyway."""


def serve_stdio(settings: Settings) -> int:
    """Serve; returns the exit code: 0 when the client hung up, 128 + the number of the signal that ended it."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return anyio.run(_serve, Services(settings))


async def _serve(services: Services) -> int:
    received: list[int] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_on_signal, group.cancel_scope, received)
            await _talk(services)
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


async def _talk(services: Services) -> None:
    server = make_server(services)
    async with stdio_server(stdin=cast(Any, _Lines())) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Lines:
    """Lines of standard input, read on a daemon thread: one blocked in a read must not keep the process from ending."""

    async def __aiter__(self) -> AsyncIterator[str]:
        sender, receiver = anyio.create_memory_object_stream[str](0)
        private = os.dup(0)
        _give_away_stdin()
        token = anyio.lowlevel.current_token()
        threading.Thread(target=_pump, args=(private, sender, token), name="stdin", daemon=True).start()
        async with receiver:
            async for line in receiver:
                yield line


def _give_away_stdin() -> None:
    """Descriptor 0 reads nothing from now on, so no child of ours can eat the protocol."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _pump(descriptor: int, sender: MemoryObjectSendStream[str], token: anyio.lowlevel.EventLoopToken) -> None:
    try:
        with os.fdopen(descriptor, encoding="utf-8", errors="replace", newline="\n") as lines:
            for line in lines:
                anyio.from_thread.run(sender.send, line, token=token)
        anyio.from_thread.run_sync(sender.close, token=token)
    except (anyio.RunFinishedError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # the server ended first
