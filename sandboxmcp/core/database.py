"""SQLite as this project opens it: WAL, full text with trigrams, one writer at a time, migrations, errors that name the fix.

Durability: WAL with synchronous NORMAL. What was committed survives the death of the process (kill -9); a power cut may take
the last commits but never the file's integrity (https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sandboxmcp.core.errors import StoreError

if TYPE_CHECKING:
    from sqlite3 import Connection

    import sqlite_utils

Migration = Callable[["sqlite_utils.Database"], None]
"""One step of a schema; runs inside a transaction together with the record of it having run."""

_BUSY_S = 60.0
"""How long a writer waits for another process: indexing the largest capture holds the write lock for about 20 s."""
_RETRY_S = 0.01
_JOURNAL_BYTES = 64 << 20
"""What the write-ahead log may keep of the disk after a large transaction."""


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
        self._create_file()
        with self._explained():
            self._switch_to_wal()
            self._migrate(migrations)

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
    def writing(self, *, patient: bool = True) -> Iterator[Connection]:
        """A connection inside a write transaction: committed at the end, undone by any exception.

        Patient: waits for other threads without bound and for other processes up to a minute. Else it does not wait.

        Raises:
            Busy: impatient, and another thread or process is writing.
        """
        with self._explained(), self._alone(patient), self._lent() as connection:
            self._begin(connection, patient)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

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
        connection: Connection = self._sqlite.connect(self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
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
        with self._lent() as connection:
            self._refuse_newer(version := _version(connection), len(migrations))
        if version == len(migrations):
            return
        import sqlite_utils  # costs a tenth of a second, needed once per store

        with self.writing() as connection:
            version = _version(connection)
            tables = sqlite_utils.Database(connection, execute_plugins=False)
            for migration in migrations[version:]:
                migration(tables)
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
            raise StoreError(f"The store {self.path} failed: {error}", _fix(str(error))) from error


_ELSEWHERE = "Make its folder writable, or set SANDBOXMCP_DATA_DIR to a folder that is."


def _version(connection: Any) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _fix(message: str) -> str:
    if "locked" in message or "busy" in message:
        return "Another process is writing to it; try again."
    if "not a database" in message or "malformed" in message or "corrupt" in message:
        return "Move the file (with its -wal and -shm) aside; a new one is made at the next start."
    if "full" in message:
        return "Free some disk space."
    return _ELSEWHERE
