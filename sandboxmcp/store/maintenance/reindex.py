"""Sources that an earlier version cut otherwise are cut anew from their captures, one at a time, beside whatever else is done.

A search starts it and does not wait for it. It works half of the time, so that it is hardly felt; a server that ends leaves the
rest for the next one.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sandboxmcp.core.database import Busy, Database
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.model import ContentKind
from sandboxmcp.core.text import shown
from sandboxmcp.store.captures.captures import Captures
from sandboxmcp.store.chunking.forms import VERSION
from sandboxmcp.store.chunking.kinds import SAMPLE_BYTES, is_picture, recognise_form
from sandboxmcp.store.index.adding import Adding
from sandboxmcp.store.index.indexer import unindex

if TYPE_CHECKING:
    from sqlite3 import Connection

_BUSY_S = 0.5
"""How long another writer is left alone."""
_STEP = 2_000
"""Passages that are taken out of the index before it looks whether it is to end."""
_MERGED = 500
"""Pages of the index that are merged before another may write."""
_OUTDATED = "FROM sources WHERE cut_by < ? AND replaced_by IS NULL"


class _Ended(Exception):
    """The store is being closed: what was begun is undone."""


class Renewing:
    """The thread that does it, for one store."""

    def __init__(self, database: Database, captures: Captures, adding: Adding, busy: threading.Lock | None = None) -> None:
        """`busy` is held while it works: of all sessions of a process only one does."""
        self._database = database
        self._captures = captures
        self._adding = adding
        self._busy = busy or threading.Lock()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        self._current = False
        """Nothing is outdated, and nothing will be: this process cuts as its version does."""
        self._unmerged = 0
        """What FTS5 is asked to merge next: a negative number begins (https://www.sqlite.org/fts5.html#the_merge_command)."""

    def outdated(self) -> int:
        """How many sources wait."""
        with self._database.reading() as connection:
            (count,) = connection.execute(f"SELECT count(*) {_OUTDATED}", (VERSION,)).fetchone()
        return int(count)

    def start(self) -> None:
        """Begins, if there is something to do and it is not being done. Never raises."""
        if self._current or self._database.read_only:
            return
        with self._lock, contextlib.suppress(StoreError):
            if self._thread is not None and self._thread.is_alive():
                return
            self._current = not self.outdated()
            if not self._current and not self._ending.is_set() and self._busy.acquire(blocking=False):
                self._thread = threading.Thread(target=self._run, name="sandboxmcp-renew", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Until what was begun has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def close(self) -> None:
        """Ends it; a source that is half done stays as it was."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._busy.release()

    def _work(self) -> None:
        with contextlib.suppress(_Ended, StoreError):  # a full disk, a closed store: the next search begins again
            while not self._ending.is_set():
                begun = time.monotonic()
                try:
                    if not (self._renewed() or self._merged()):
                        return
                    pause_s = time.monotonic() - begun
                except Busy:
                    pause_s = _BUSY_S
                self._ending.wait(pause_s)

    def _renewed(self) -> bool:
        """Cuts the newest outdated source anew; says whether there was one."""
        with self._database.writing(patient=False) as connection:
            row = connection.execute(
                f"SELECT id, digest, kind, mime, first_passage, last_passage {_OUTDATED} ORDER BY id DESC LIMIT 1",
                (VERSION,),
            ).fetchone()
            if row is None:
                return False
            connection.execute("SAVEPOINT renewal")
            try:
                self._renew(connection, *row)
                self._unmerged = -_MERGED
            except StoreError:  # without its capture it stays as it is
                connection.execute("ROLLBACK TO renewal")
                connection.execute("UPDATE sources SET cut_by = ? WHERE id = ?", (VERSION, row[0]))
            return True

    def _merged(self) -> bool:
        """Merges a part of the index, in which what was deleted stands till then and slows searches; says whether there was any."""
        if not self._unmerged:
            return False
        with self._database.writing(patient=False) as connection:
            before = connection.total_changes
            connection.execute("INSERT INTO passages_fts(passages_fts, rank) VALUES ('merge', ?)", (self._unmerged,))
            some = connection.total_changes - before > 1
        self._unmerged = _MERGED if some else 0
        return some

    def _renew(self, connection: Connection, source: int, digest: str, kind: ContentKind, mime: str, first: int, last: int) -> None:
        with self._captures.open(digest) as capture:
            sample = shown(b"".join(capture.read(0, SAMPLE_BYTES)))
            form = None if is_picture(mime) else recognise_form(sample, kind)
            for start in range(first, last + 1, _STEP):
                self._end_if_closing()
                unindex(connection, start, min(start + _STEP - 1, last))
            connection.execute("DELETE FROM chunks WHERE source_id = ?", (source,))
            self._adding.index(connection, source, capture, form, self._while_open)

    def _while_open(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._end_if_closing()
            yield piece

    def _end_if_closing(self) -> None:
        if self._ending.is_set():
            raise _Ended
