"""The backend: what one process has once, whoever its clients are. Sessions share it (session.py)."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandboxmcp.store.store import OpenStore


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a process has at the moment."""

    sessions: int
    stores: int
    readers: int
    """Worker processes that read what is large or came from outside."""


class Backend:
    """The open stores of one process, one for each data folder. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stores: dict[str, OpenStore] = {}
        self._sessions: set[str] = set()

    def entered(self, session: str) -> None:
        """A session has been opened."""
        with self._lock:
            self._sessions.add(session)

    def left(self, session: str) -> None:
        """It has been closed."""
        with self._lock:
            self._sessions.discard(session)

    def open_store(self, data_dir: Path) -> OpenStore:
        """The store of a data folder, opened by whoever asks first.

        Raises:
            StoreError: it cannot be opened.
        """
        from sandboxmcp.store.store import OpenStore

        place = os.path.realpath(data_dir)
        with self._lock:
            if place not in self._stores:
                self._stores[place] = OpenStore(data_dir)
            return self._stores[place]

    @property
    def statistics(self) -> Statistics:
        """What there is at the moment."""
        with self._lock:
            return Statistics(len(self._sessions), len(self._stores), sum(one.workers.alive for one in self._stores.values()))

    def close(self) -> None:
        """Closes every store; sessions that still use one have been closed before."""
        with self._lock:
            while self._stores:
                self._stores.popitem()[1].close()
