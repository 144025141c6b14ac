"""A script's output while it runs: what grows in its capture files is read and passed on."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

StreamName = Literal["out", "err"]
Sink = Callable[[StreamName, bytes], None]

_STREAMS: tuple[StreamName, ...] = ("out", "err")
_LOOK_S = 0.03
_PIECE = 1 << 18
_PIECES = 16
"""Read at most so many before the event loop gets its turn."""


class Follower:
    """The two capture files of one script, opened at once: the store takes them away when it has ended."""

    def __init__(self, stem: Path) -> None:
        """`stem`: what their names begin with. A file that is gone already has `missed` set."""
        self._files: dict[StreamName, int] = {}
        for name in _STREAMS:
            with contextlib.suppress(OSError):
                path = stem.with_name(f"{stem.name}.{name}")
                self._files[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self.missed = len(self._files) < len(_STREAMS)

    async def follow(self, sink: Sink, ended: asyncio.Event) -> None:
        """Pass on what comes until the script has ended and everything is read."""
        try:
            while True:
                last = ended.is_set()
                if not self._move(sink):
                    if last:
                        return
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(ended.wait(), _LOOK_S)
                else:
                    await asyncio.sleep(0)
        finally:
            self.close()

    def _move(self, sink: Sink) -> bool:
        moved = False
        for name, file in self._files.items():
            for _ in range(_PIECES):
                piece = os.read(file, _PIECE)
                if not piece:
                    break
                sink(name, piece)
                moved = True
        return moved

    def close(self) -> None:
        """Give the files up."""
        for file in self._files.values():
            os.close(file)
        self._files = {}
