"""What leaves the store: sources, their part of the index, captures that no source has. Works on a full disk, in small steps.

A source that was deleted in one piece would first write as much to the log as it takes, which a full disk has no room for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sandboxmcp.core.database import Database
from sandboxmcp.store.captures.captures import Captures
from sandboxmcp.store.captures.content import RawCopies
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.index.catalogue import record
from sandboxmcp.store.index.indexer import NOTHING_INDEXED, unindex

if TYPE_CHECKING:
    from sqlite3 import Connection

_FORGOTTEN_TOGETHER = 50
_STEP = 500
"""Passages that are taken out together: about a quarter of a megabyte of text."""


class Deleting:
    """Deletes from one store. `raw` is where what was masked is kept as it was, if it is."""

    def __init__(self, database: Database, captures: Captures, raw: RawCopies | None) -> None:
        self._database = database
        self._captures = captures
        self._raw = raw

    def forget(self, handles: Iterable[str], project: str | None) -> int:
        """See Store.forget."""
        wanted = list(dict.fromkeys(handles))
        with self._database.writing(freeing=True) as connection:
            for handle in wanted:
                catalogue.get(connection, handle, project)
            digests = catalogue.disown(connection, wanted)
        self._forget_files(wanted, digests)
        self.sweep()
        return len(wanted)

    def forget_all(self, handles: Iterable[str]) -> int:
        """See Store.forget_all."""
        wanted, count = list(dict.fromkeys(handles)), 0
        for start in range(0, len(wanted), _FORGOTTEN_TOGETHER):
            with self._database.writing(freeing=True) as connection:
                there = catalogue.known(connection, wanted[start : start + _FORGOTTEN_TOGETHER])
                digests = catalogue.disown(connection, there)
            self._forget_files(there, digests)
            count += len(there)
            self.sweep()
        return count

    def sweep(self) -> None:
        """See Store.sweep."""
        more = True
        while more:
            with self._database.writing(freeing=True) as connection:
                more = swept(connection)

    def delete_captures(self, digests: Iterable[str]) -> None:
        """Deletes those of the captures that no source has."""
        # After the rows are gone for good, and under the write lock: a process that adds the same content meanwhile keeps it.
        with self._database.writing(freeing=True) as connection:
            for digest in catalogue.unused(connection, list(digests)):
                self._captures.delete(digest)

    def _forget_files(self, handles: list[str], digests: Iterable[str]) -> None:
        self.delete_captures(digests)
        if self._raw is not None:
            self._raw.forget(handles)


def swept(connection: Connection) -> bool:
    """Does one step of it; says whether there may be more."""
    row = connection.execute(
        "SELECT id, first_passage, last_passage FROM sources WHERE replaced_by IS NOT NULL AND (passages > 0 OR replaced_by = id)"
    ).fetchone()
    if row is None:
        return False
    source, first, last = row
    start = max(first, last - _STEP + 1)
    unindex(connection, start, last)
    if start > first:
        connection.execute(
            "UPDATE sources SET last_passage = ?2, passages = ?2 - first_passage + 1 WHERE id = ?1", (source, start - 1)
        )
        return True
    connection.execute("DELETE FROM chunks WHERE source_id = ?", (source,))
    record(connection, source, NOTHING_INDEXED)
    connection.execute("DELETE FROM sources WHERE id = ? AND replaced_by = id", (source,))
    return True
