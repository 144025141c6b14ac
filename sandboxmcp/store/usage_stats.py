"""Counts that must never make a caller wait: kept in memory, written soon after by a thread, at the latest when the store closes.

Another process may hold the write lock for as long as it indexes a large capture; a search does not wait for that to count
itself, nor for a write of its own. A killed process loses the counts since its last write, nothing else.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.model import Source

if TYPE_CHECKING:
    from sqlite3 import Connection


_WRITTEN_AFTER_S = 2.0
"""What is counted meanwhile is written together."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one tool took in and gave back over the store's life."""

    tool: str
    calls: int
    bytes_captured: int
    bytes_returned: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.tool,
            self.calls + other.calls,
            self.bytes_captured + other.bytes_captured,
            self.bytes_returned + other.bytes_returned,
        )


class Counters:
    """The hits of sources and the usage of tools."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        """Held for moments only."""
        self._writing = threading.Lock()
        """Held while counts are on their way from memory to the store."""
        self._hits: Counter[str] = Counter()
        self._usage: dict[str, Usage] = {}
        self._timer: threading.Timer | None = None

    def add_hits(self, handles: Iterable[str]) -> None:
        with self._lock:
            self._hits.update(handles)

    def add_usage(self, usage: Usage) -> None:
        with self._lock:
            self._count(usage)
            if self._timer is None:
                self._timer = threading.Timer(_WRITTEN_AFTER_S, self._write_soon)
                self._timer.daemon = True
                self._timer.start()

    def _write_soon(self) -> None:
        with self._lock:
            self._timer = None
        with contextlib.suppress(StoreError):  # busy, full or read-only: they are written another time
            self.write(patient=False)

    def _count(self, usage: Usage) -> None:
        self._usage[usage.tool] = self._usage.get(usage.tool, Usage(usage.tool, 0, 0, 0)) + usage

    def with_hits(self, sources: Iterable[Source]) -> list[Source]:
        """The sources with the hits that are not written yet."""
        with self._lock:
            return [replace(source, hits=source.hits + self._hits[source.handle]) for source in sources]

    def usage(self) -> list[Usage]:
        """Written or not, by tool."""
        with self._writing, self._database.reading() as connection:
            with self._lock:
                total = dict(self._usage)
            for row in connection.execute("SELECT tool, calls, bytes_captured, bytes_returned FROM usage"):
                total[row[0]] = Usage(*row) + total.get(row[0], Usage(row[0], 0, 0, 0))
        return sorted(total.values(), key=lambda usage: usage.tool)

    def close(self) -> None:
        """Writes what is left; raises StoreError when it cannot."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        self.write(patient=True)

    def write(self, *, patient: bool) -> None:
        """Writes what is counted. Impatient: raises Busy at once when another writes."""
        with self._writing:
            with self._lock:
                hits, self._hits = self._hits, Counter()
                usage, self._usage = self._usage, {}
            try:
                with self._database.writing(patient=patient) as connection:
                    _write(connection, hits, usage.values())
            except BaseException:
                with self._lock:
                    self._hits.update(hits)
                    for one in usage.values():
                        self._count(one)
                raise


def _write(connection: Connection, hits: Mapping[str, int], usage: Iterable[Usage]) -> None:
    connection.executemany("UPDATE sources SET hits = hits + ? WHERE handle = ?", [(n, handle) for handle, n in hits.items()])
    connection.executemany(
        "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT(tool) DO UPDATE SET calls = calls + excluded.calls,"
        " bytes_captured = bytes_captured + excluded.bytes_captured, bytes_returned = bytes_returned + excluded.bytes_returned",
        [(one.tool, one.calls, one.bytes_captured, one.bytes_returned) for one in usage],
    )
