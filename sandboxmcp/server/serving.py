"""Serve one client on its wire until it hangs up or a signal asks to stop; then end everything that was started."""

from __future__ import annotations

import gc
import signal

import anyio
from anyio.abc import TaskGroup

from sandboxmcp.core.settings import Settings
from sandboxmcp.server.app import make_server
from sandboxmcp.server.messages import messages
from sandboxmcp.server.wire import Wire
from sandboxmcp.session import Session
from sandboxmcp.tools.kernel_rpc import shared

_CLOSING_S = 5.0
"""What ending the kernels may take; the sandbox dies with this process anyway."""
_COLLECTED_AFTER = 50_000
"""Objects that are made before the young ones are looked through for cycles."""


def serve(settings: Settings, wire: Wire) -> int:
    """Blocks; returns the exit code of the process."""
    # What was imported stays for ever, and indexing makes and drops hundreds of thousands of tuples: looking through them for
    # cycles every 700 cost a twelfth of its time.
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER, 20, 20)
    return anyio.run(_serve, Session(settings), wire)


async def _serve(session: Session, wire: Wire) -> int:
    received: list[int] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_stop_on_signal, group.cancel_scope, received)
            async with shared(session):
                await _talk(session, wire, group)
            group.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(_CLOSING_S, shield=True):
            await session.close()
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


async def _talk(session: Session, wire: Wire, group: TaskGroup) -> None:
    server = make_server(session)
    ended = anyio.Event()
    group.start_soon(_stop_after_the_client, ended, group.cancel_scope)
    async with messages(wire, ended) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
