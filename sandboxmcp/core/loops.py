"""Background loops with an owner, who learns when one dies: a loop that nobody awaits would else end without a word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

_log = logging.getLogger("sandboxmcp")


@dataclass(frozen=True, slots=True)
class LoopState:
    """One loop, for statistics."""

    name: str
    alive: bool
    error: str
    """Why it died; empty while it lives, and when it was stopped."""


class Loops:
    """The loops of one owner. Use from one event loop."""

    def __init__(self, died: Callable[[str], None]) -> None:
        """`died` is called once for each loop that ends although nobody stopped it, with a sentence's part that says why."""
        self._died = died
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._errors: dict[str, str] = {}

    def start(self, name: str, loop: Coroutine[Any, Any, None]) -> None:
        """Begin a loop that is to run until `stop`."""
        task = asyncio.ensure_future(loop)
        self._tasks[name] = task
        task.add_done_callback(lambda ended: self._ended(name, ended))

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        self._errors[name] = f"{type(error).__name__}: {error}" if error is not None else "it returned"
        _log.error("the background loop %s ended: %s", name, self._errors[name])
        self._died(f"its background loop {name} ended ({self._errors[name]})")

    @property
    def states(self) -> tuple[LoopState, ...]:
        """How each of them is."""
        return tuple(LoopState(name, not task.done(), self._errors.get(name, "")) for name, task in self._tasks.items())

    def stop(self) -> None:
        """End them all."""
        for task in self._tasks.values():
            task.cancel()
