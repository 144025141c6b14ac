"""SQLite as this project opens it: WAL, full text with trigrams, one writer at a time, migrations, errors that name the fix.

Durability: WAL with synchronous NORMAL. What was committed survives the death of the process (kill -9); a power cut may take
the last commits but never the file's integrity (https://www.sqlite.org/pragma.html#pragma_synchronous).

A full disk undoes the transaction that met it and gives back what its log took. A file that may only be read is opened so.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sandboxmcp.core.errors import DiskFull, ReadOnlyStore, StoreError
from sandboxmcp.core.reserve import Reserve
from sandboxmcp.core.surface import call

if TYPE_CHECKING:
    from sqlite3 import Connection

    from sandboxmcp.core.migrations import Migration

_BUSY_S = 60.0
"""How long a writer waits for another process: indexing the largest capture holds the write lock for about 20 s."""
_RETRY_S = 0.01
_PAGE = 64 << 10
"""Less than this free is no room at all."""
_JOURNAL_BYTES = 64 << 20
"""What the write-ahead log may keep of the disk after a large transaction."""
_CACHE_KIB = 16_384
"""Of pages for each connection; SQLite's own 2 MiB hold a fifth of what searches among 10,000 passages read."""


@functools.cache
def sqlite_with_trigrams() -> ModuleType:
    """The sqlite3 module, or pysqlite3 where the former lacks FTS5 with the trigram tokenizer (SQLite 3.34).

    Raises:
        StoreError: neither has it.
    """
    for name in ("sqlite3", "pysqlite3"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            if has_trigrams(module):
                return module
    raise StoreError(
        "This Python's sqlite3 has no FTS5 with the trigram tokenizer",
        "Install pysqlite3 beside sandboxmcp: pip install pysqlite3-binary.",
    )


def has_trigrams(module: ModuleType) -> bool:
    """Can this module create the full-text tables that the store needs?"""
    with contextlib.closing(module.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE probe USING fts5(word, tokenize='trigram')")
        except module.Error:
            return False
    return True


class Busy(StoreError):
    """Somebody else is writing, and the caller did not want to wait."""


class Database:
    """One SQLite file, shared by threads and processes. Made once, closed once; `reading` and `writing` lend connections."""

    def __init__(self, path: Path, migrations: Sequence[Migration]) -> None:
        """Opens or creates the file with mode 0600 (a new folder: 0700) and brings its schema up to date.

        Raises:
            StoreError: the file cannot be opened or made, is no SQLite database, or was written by a newer version.
        """
        self.path = path
        self._sqlite = sqlite_with_trigrams()
        self._writer = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        self._uri = ""
        """How the file is opened when it may only be read."""
        self._reserve = Reserve(path.parent / "reserve")
        if _only_readable(path):
            self._open_read_only(len(migrations))
            return
        self._create_file()
        try:
            self._prepare(migrations)
        except StoreError:
            if not self._reserve.release():
                raise
            self._prepare(migrations)
        self._reserve.hold()

    @property
    def read_only(self) -> bool:
        """Then `writing` always raises."""
        return bool(self._uri)

    def _prepare(self, migrations: Sequence[Migration]) -> None:
        with self._explained():
            self._switch_to_wal()
            self._migrate(migrations)

    def _open_read_only(self, known: int) -> None:
        """With the log that a writer left, if there is one; else as a file that nobody changes (then SQLite needs no log)."""
        for mode in ("mode=ro", "mode=ro&immutable=1"):
            while self._idle:
                self._idle.pop().close()
            self._uri = f"{self.path.resolve().as_uri()}?{mode}"
            with contextlib.suppress(self._sqlite.Error), self._lent() as connection:
                version = _version(connection)
                break
        else:
            raise ReadOnlyStore(f"The store {self.path} cannot be read", _ELSEWHERE)
        self._refuse_newer(version, known)
        if version < known:
            raise ReadOnlyStore(f"The store {self.path} is of an older version and may only be read", _ELSEWHERE)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection inside a read transaction: every statement sees the same state of the store."""
        with self._explained(), self._lent() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def writing(self, *, patient: bool = True, freeing: bool = False) -> Iterator[Connection]:
        """A connection inside a write transaction: committed at the end, undone by any exception.

        Patient: waits for other threads without bound and for other processes up to a minute. Else it does not wait.
        `freeing`: the transaction deletes, so that on a full disk it may use the reserve.

        Raises:
            Busy: impatient, and another thread or process is writing.
            DiskFull, ReadOnlyStore.
        """
        if self.read_only:
            raise ReadOnlyStore(f"The store {self.path} may only be read", _ELSEWHERE)
        with self._explained(), self._alone(patient), self._lent() as connection:
            if freeing:
                self._reserve.release()
            self._begin(connection, patient)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._is_full(error):
                    self._shorten_log(connection)
                raise
        if not freeing:
            self._reserve.hold()

    def _is_full(self, error: BaseException) -> bool:
        """No room for a page, or none for the index of the log, which SQLite tells as an I/O error."""
        if not isinstance(error, self._sqlite.Error):
            return False
        return "full" in str(error) or ("I/O" in str(error) and self._reserve.free() < _PAGE)

    def _shorten_log(self, connection: Connection) -> None:
        """The log has grown by what was undone."""
        connection.execute("PRAGMA busy_timeout = 0")
        with contextlib.suppress(self._sqlite.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_S * 1000)}")

    @contextlib.contextmanager
    def _alone(self, patient: bool) -> Iterator[None]:
        if not self._writer.acquire(blocking=patient):
            raise Busy(f"Another thread is writing to {self.path}")
        try:
            yield
        finally:
            self._writer.release()

    def _begin(self, connection: Connection, patient: bool) -> None:
        if patient:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except self._sqlite.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise Busy(f"Another process is writing to {self.path}") from None
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_S * 1000)}")

    def close(self) -> None:
        """Closes the idle connections; those on loan close when they come back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        if not self.read_only:
            self._reserve.hold()  # the write-ahead log is gone now: there may be room that there was not before

    @contextlib.contextmanager
    def _lent(self) -> Iterator[Connection]:
        if self._closed:
            raise StoreError(f"The store {self.path} is closed", "Open it again.")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _connect(self) -> Connection:
        connection: Connection = self._sqlite.connect(
            self._uri or self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=bool(self._uri)
        )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return connection

    def _create_file(self) -> None:
        # Opened only when new: closing a second descriptor of an open database would drop this process's locks on it
        # (https://www.sqlite.org/howtocorrupt.html, 2.2). SQLite gives its -wal and -shm files the same mode.
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            if self.path.stat().st_mode & 0o077:
                self.path.chmod(0o600)
        except OSError as error:
            raise StoreError(f"The store {self.path} cannot be made: {error.strerror}", _ELSEWHERE) from None

    def _switch_to_wal(self) -> None:
        # Two processes that create the store at once may each hold the lock that the other needs; SQLite then refuses
        # at once, whatever the timeout.
        deadline = time.monotonic() + _BUSY_S
        while True:
            try:
                with self._lent() as connection:
                    connection.execute("PRAGMA journal_mode = WAL")
                return
            except self._sqlite.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)

    def _migrate(self, migrations: Sequence[Migration]) -> None:
        """Take the steps that the file has not had. `user_version` is their number, so that one look tells that none is missing."""
        with self._lent() as connection:
            self._refuse_newer(version := _version(connection), len(migrations))
        if version == len(migrations):
            return
        import sqlite_utils  # costs a tenth of a second, needed once per store

        with self.writing() as connection:
            done = _taken(connection, migrations)
            tables = sqlite_utils.Database(connection, execute_plugins=False)
            connection.execute("CREATE TABLE IF NOT EXISTS migrations(name TEXT PRIMARY KEY, taken_at REAL NOT NULL)")
            for migration in migrations:
                if migration.name not in done:
                    migration(tables)
                connection.execute("INSERT OR IGNORE INTO migrations VALUES (?, ?)", (migration.name, time.time()))
            connection.execute(f"PRAGMA user_version = {len(migrations)}")

    def _refuse_newer(self, version: int, known: int) -> None:
        if version > known:
            raise StoreError(
                f"The store {self.path} has version {version}, this sandboxmcp knows up to {known}",
                "Upgrade sandboxmcp, or set SANDBOXMCP_DATA_DIR to another folder.",
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._sqlite.Error as error:
            if self._is_full(error):
                raise DiskFull(f"The disk of {self.path.parent} is full", disk_full_fix()) from error
            raise StoreError(f"The store {self.path} failed: {error}", _fix(str(error))) from error


def _taken(connection: Connection, migrations: Sequence[Migration]) -> set[str]:
    """The names of the steps that a file has had. Files of earlier versions tell only how many."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone() is None:
        return {migration.name for migration in migrations[: _version(connection)]}
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


_ELSEWHERE = "Make its folder writable, or set SANDBOXMCP_DATA_DIR to a folder that is."


def disk_full_fix() -> str:
    """What to do about a full disk under the store."""
    return f"Free some space, forget sources ({call('ctx_purge')}), or set SANDBOXMCP_DATA_DIR to another disk."


def _only_readable(path: Path) -> bool:
    """Is the file there, and may it or its folder not be written? SQLite has its log beside the file."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _version(connection: Any) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _fix(message: str) -> str:
    if "locked" in message or "busy" in message:
        return "Another process is writing to it; try again."
    if "not a database" in message or "malformed" in message or "corrupt" in message:
        return "End every server, then run: sandboxmcp doctor --repair."
    return _ELSEWHERE
