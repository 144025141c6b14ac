"""What leaves the store: sources, their part of the index, captures that no source has. Works on a full disk, in small steps."""

from __future__ import annotations

from collections.abc import Iterable

from sandboxmcp.core.database import Database
from sandboxmcp.store.captures.captures import Captures
from sandboxmcp.store.captures.content import RawCopies
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.index.index_gc import swept

_FORGOTTEN_TOGETHER = 50


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
