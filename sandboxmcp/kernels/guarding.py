"""The guard of idle named kernels: what their threads put in place of protected paths between calls is moved aside too.

A path that appears while nothing of theirs has run was made by the host, and stays (the sandbox is replaced at the next call). Who
ran is told by the operating system's account of each thread's time, which nothing inside can set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from sandboxmcp.sandbox.protection import Protection, look_at
from sandboxmcp.sandbox.usage import anybody_runs, run_times

_EVERY_S = 2.0
_MOST_LOOKS = 20
_BETWEEN_S = 0.001
"""A kernel tidies up after its answer; else that would be taken for a thread's doing, and the host's next file for planted."""


class Guard:
    """Looks after protected paths while named kernels are idle. `notices` takes a sentence for each path that was moved."""

    def __init__(self, protection: Protection, kernels: Callable[[], Iterable[int]], notices: Callable[[], list[str]]) -> None:
        """`kernels`: the host's numbers of their first processes."""
        self._protection = protection
        self._kernels = kernels
        self._notices = notices
        self._seen: dict[tuple[int, int], bytes] = {}

    def settle(self) -> None:
        """A sweep comes next: what has run until now is covered by it, what a kernel does after its answer included. Blocking."""
        for _ in range(_MOST_LOOKS):
            if not anybody_runs(self._kernels()):
                break
            time.sleep(_BETWEEN_S)
        self._seen = run_times(self._kernels())

    def prepare(self) -> None:
        """`look`, then take repositories that appeared as the host's. Call it before a script starts while none runs."""
        if not self.look() and self._protection.repositories is not None:
            self._protection.repositories.learn(unless=lambda: run_times(self._kernels()) != self._seen)

    def look(self) -> bool:
        """Move aside what kernels planted since the last look, and return True. If none ran, take what appeared as the host's."""
        now = run_times(self._kernels())
        if now != self._seen:
            self._seen = now
            self._notices().extend(self._protection.sweep())
            return True
        if now:
            known = self._protection
            fresh = look_at(known.workspace, known.wanted, git_writable=known.git_writable, has_git=known.has_git)
            self._protection = replace(known, existing=tuple(dict.fromkeys((*known.existing, *fresh.existing))))
        return False

    async def forever(self, busy: Callable[[], bool]) -> None:
        """Look again and again while nothing runs, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            if not busy():
                await asyncio.get_running_loop().run_in_executor(None, self.look)
