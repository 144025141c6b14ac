"""A database that SQLite calls damaged, built anew: from the rows that can still be read, and from the captures.

Its sources are read from both ends of their table up to the damage. A capture that no row names any more becomes a source of
no project, found with scope=all. The damaged file stays beside the new one. At every moment there is a whole file in its place.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxmcp.core.database import Database, sqlite_with_trigrams
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.migrations import MIGRATIONS
from sandboxmcp.core.model import NewSource
from sandboxmcp.core.text import shown
from sandboxmcp.store.captures.captures import Captures, Draft
from sandboxmcp.store.captures.incoming import at_work
from sandboxmcp.store.chunking.kinds import SAMPLE_BYTES, recognise_kind
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.store import DATABASE

if TYPE_CHECKING:
    from sqlite3 import Connection

_KEPT = ("sources", "pages", "usage")
_UNINDEXED = {"chunks": 0, "passages": 0, "words": 0, "first_passage": 0, "last_passage": -1, "terms": "[]"}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BESIDE = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What became of a damaged database."""

    aside: Path
    """Where it lies now."""
    sources: int
    """Rows that could be read."""
    nameless: int
    """Captures that none of them named."""


def salvage(data_dir: Path) -> Salvaged | None:
    """Puts a new, not yet indexed database in the place of a damaged one; None where SQLite finds nothing wrong.

    Raises:
        StoreError: another process has the store open, or the folder cannot be written.
    """
    path = data_dir / DATABASE
    if not path.exists() or _is_sound(path):
        return None
    if at_work(data_dir / "incoming"):
        raise StoreError(f"The store {path} is damaged, and another process has it open", "End every server, then repair again.")
    fresh = path.with_name(path.name + ".new")
    try:
        for one in (fresh, *_beside(fresh)):
            one.unlink(missing_ok=True)
        sources, nameless = _build(fresh, path, Captures(data_dir / "captures"))
        aside = _free_name(path)
        for old, new in zip(_beside(path), _beside(aside), strict=True):
            if old.exists():
                old.rename(new)
        os.link(path, aside)
        fresh.replace(path)
    except OSError as error:
        raise StoreError(f"{path.parent} cannot be written: {error.strerror}", "Free some space or make it writable.") from None
    return Salvaged(aside, sources, nameless)


def _build(fresh: Path, damaged: Path, captures: Captures) -> tuple[int, int]:
    database = Database(fresh, MIGRATIONS)
    try:
        with database.writing() as connection, contextlib.closing(_opened(damaged)) as old:
            for table in _KEPT:
                _copy(connection, old, table)
            named = {digest for (digest,) in connection.execute("SELECT digest FROM sources")}
            (sources,) = connection.execute("SELECT count(*) FROM sources").fetchone()
            nameless = sum(_adopt(connection, captures, digest) for digest in captures.digests() if digest not in named)
        with database.reading() as connection:
            connection.execute("ROLLBACK")
            connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        database.close()
    return sources, nameless


def _copy(connection: Connection, old: Connection, table: str) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    marks = ", ".join(f":{column}" for column in columns)
    for row in _readable(old, table):
        values = dict.fromkeys(columns) | {column: row[column] for column in columns if column in row}
        if table == "sources":
            if not _DIGEST.fullmatch(str(values["digest"])):
                continue
            values |= _UNINDEXED
        with contextlib.suppress(sqlite_with_trigrams().Error):  # a value that the damage reached
            connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)  # noqa: S608 (names are ours)


def _readable(old: Connection, table: str) -> Iterator[dict[str, Any]]:
    """Rows from the first on and from the last on, each way up to where the file is damaged."""
    for order in ("ASC", "DESC"):
        with contextlib.suppress(sqlite_with_trigrams().Error):
            cursor = old.execute(f"SELECT * FROM {table} ORDER BY rowid {order}")  # noqa: S608 (names are ours)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))


def _adopt(connection: Connection, captures: Captures, digest: str) -> bool:
    try:
        with captures.open(digest) as capture:
            kind = recognise_kind(shown(b"".join(capture.read(0, SAMPLE_BYTES))))
            draft = Draft(captures.path(digest), digest, capture.size, capture.lines)
    except StoreError:
        return False
    label = f"recovered {digest[:12]}"
    catalogue.insert(connection, NewSource(label, "artifact", "", ""), kind, draft, capture.size)
    return True


def _is_sound(path: Path) -> bool:
    try:
        with contextlib.closing(_opened(path)) as connection:
            return [row for (row,) in connection.execute("PRAGMA quick_check(1)")] == ["ok"]
    except sqlite_with_trigrams().DatabaseError as error:
        if "malformed" in str(error) or "not a database" in str(error) or "corrupt" in str(error):
            return False
        raise StoreError(f"The store {path} cannot be checked: {error}", "Make its folder readable, then repair again.") from None


def _opened(path: Path) -> Connection:
    """Nothing of it is changed, but its log is read."""
    connection: Connection = sqlite_with_trigrams().connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    return connection


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in _BESIDE]


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside
