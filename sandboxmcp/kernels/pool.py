"""Kernels of one sandbox, handed out fresh: one waits started and connected, so that a script need not wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path

import zmq.asyncio

from sandboxmcp.kernels.connection import SocketFolder
from sandboxmcp.kernels.launcher import Launcher
from sandboxmcp.kernels.manager import LiveKernel


class KernelPool:
    """Leases kernels that have never run anything. Nobody gives one back: a used kernel is closed."""

    def __init__(self, launcher: Launcher, context: zmq.asyncio.Context, sockets: SocketFolder, captures: Path, cap: int) -> None:
        self._launcher = launcher
        self._context = context
        self._sockets = sockets
        self._captures = captures
        self._cap = cap
        self._spare: asyncio.Task[LiveKernel] | None = None

    async def lease(self) -> LiveKernel:
        """A fresh kernel: the spare when it is ready, else a new one.

        Raises:
            KernelError: it does not start.
        """
        spare, self._spare = self._spare, None
        if spare is not None:
            with contextlib.suppress(Exception):  # a spare that could not start is no reason not to try again
                kernel = await asyncio.shield(spare)
                if not kernel.item.ended.done():
                    return kernel
                await self._throw_away(kernel)
        return await self._start()

    async def spare_ready(self) -> bool:
        """Wait for the spare that is being started; False when there is none or it did not start."""
        return self._spare is not None and not (await asyncio.wait({self._spare}))[0].pop().exception()

    def replenish(self) -> None:
        """Start the next spare in the background, unless there is one."""
        if self._spare is None and self._launcher.alive:
            self._spare = asyncio.ensure_future(self._start())

    async def _start(self) -> LiveKernel:
        stem = self._captures / secrets.token_hex(8)
        return await LiveKernel.start(self._launcher, self._context, self._sockets, stem, self._cap)

    @staticmethod
    async def _throw_away(kernel: LiveKernel) -> None:
        await kernel.forget()
        kernel.capture.discard()

    async def close(self) -> None:
        """Throw the spare away. The sandbox itself is its owner's to end."""
        spare, self._spare = self._spare, None
        if spare is None:
            return
        if not spare.done():
            spare.cancel()
        with contextlib.suppress(BaseException):
            await self._throw_away(await spare)
