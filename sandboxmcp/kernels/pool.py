"""Kernels of one sandbox, handed out fresh: one waits started and connected, so that a script need not wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path

from sandboxmcp.kernels.jupyter.kernelspecs import PREFIX
from sandboxmcp.kernels.jupyter.live_kernel import KernelPlace, LiveKernel

BEHIND_S = 0.01
"""What must not delay an answer waits so long: to start a kernel keeps the event loop busy for milliseconds."""


class KernelPool:
    """Leases kernels that have never run anything. Nobody gives one back: a used kernel is closed."""

    def __init__(self, place: KernelPlace, captures: Path) -> None:
        self._place = place
        self._captures = captures
        self._spare: asyncio.Task[LiveKernel] | None = None
        self._wanted = asyncio.Event()
        """Set when somebody waits for the spare."""

    async def lease(self) -> LiveKernel:
        """A fresh kernel: the spare when it is ready, else a new one.

        Raises:
            KernelError: it does not start.
        """
        spare, self._spare = self._spare, None
        self._wanted.set()
        if spare is not None:
            with contextlib.suppress(Exception):  # a spare that could not start is no reason not to try again
                kernel = await asyncio.shield(spare)
                if not kernel.item.ended.done():
                    return kernel
                await self._throw_away(kernel)
        return await self._start()

    @property
    def has_spare(self) -> bool:
        """Whether one stands ready or is being started."""
        return self._spare is not None

    async def spare_ready(self) -> bool:
        """Wait for the spare that is being started; False when there is none or it did not start."""
        return self._spare is not None and not (await asyncio.wait({self._spare}))[0].pop().exception()

    async def foreign(self, kernel_name: str) -> LiveKernel:
        """A fresh kernel of a kernelspec that the user allows. None of these waits as a spare.

        Raises:
            UsageError: there is no such kernelspec.
            KernelError: it does not start.
        """
        return await self._start(kernel_name)

    def replenish(self) -> None:
        """Start the next spare in the background, unless there is one: in a moment, so that an answer goes out first."""
        if self._spare is None and self._place.launcher.alive:
            self._wanted = asyncio.Event()
            self._spare = asyncio.ensure_future(self._start_behind(self._wanted))

    async def _start_behind(self, wanted: asyncio.Event) -> LiveKernel:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wanted.wait(), BEHIND_S)
        return await self._start()

    async def _start(self, kernel_name: str = f"{PREFIX}python") -> LiveKernel:
        return await LiveKernel.start(self._place, self._captures / secrets.token_hex(8), kernel_name)

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
