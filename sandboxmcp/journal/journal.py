"""The journal of one session: a row before something runs, closed with what became of it; and questions about what was run.

The row of an item is closed in the transaction that stores what it captured. A row that its process left open is closed by whoever
recovers next (`close_lost`). A journal that cannot be written stops no run: `trouble` says so once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sandboxmcp.core.database import Busy, Database
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.processes import start_mark
from sandboxmcp.core.text import storable

if TYPE_CHECKING:
    from sqlite3 import Connection

MAX_CODE_BYTES = 64 << 10
LOST = "lost"
"""The status of an item whose process ended before it did."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of an item before it runs."""

    label: str
    language: str
    code: str
    verdict: str
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of an item."""

    status: str
    exit_code: int | None = None
    reasons: Sequence[Mapping[str, Any]] = ()
    """As Reason.as_json gives them."""
    wall_s: float = 0.0
    bytes_out: int = 0


@dataclass(slots=True)
class OpenRun:
    """A run on its way: its row, and those of its items that are not closed yet."""

    tool: str
    surface: str
    batch: str | None
    kernel: str | None
    entries: Sequence[Entry]
    started_at: float
    number: int = 0
    """Of its row; 0: it is not written yet, since somebody else was writing."""
    ended: dict[int, tuple[Ended, tuple[str, ...]]] = field(default_factory=dict)
    """By place, what became of items, where that is not written yet."""
    closed: set[int] = field(default_factory=set)
    pending: set[int] = field(default_factory=set)
    """Places that `closing` wrote in a transaction of the store's: closed once it is known that it was not undone."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are meant; everything that is given must hold. `project=None` means all projects."""

    project: str | None
    session: str | None = None
    """The beginning of its id."""
    tool: str | None = None
    status: str | None = None
    since: float = 0.0
    """Seconds since the epoch."""
    last: int | None = None
    """No later run than this."""


class Journal:
    """One session's. Any thread may ask; everything blocks."""

    def __init__(self, database: Database, session: str, project: str, mask: Callable[[str], str]) -> None:
        """`mask` takes credentials out of code and labels."""
        self._database = database
        self._session = session
        self._project = storable(project)
        self._mask = mask
        self.trouble = ""
        """Why a row could not be written, for the next answer; whoever tells it clears it."""
        self._told = False

    def open(
        self, tool: str, surface: str, entries: Sequence[Entry], batch: str | None = None, kernel: str | None = None
    ) -> OpenRun:
        """Write the rows of a run before it begins. It does not wait for another writer: then they are written at the end."""
        masked = [self._masked(one) for one in entries]
        run = OpenRun(tool, surface, batch, kernel, masked, time.time())
        try:
            with self._database.writing(patient=False) as connection:
                self._write(connection, run)
        except Busy:
            run.number = 0
        except StoreError as error:
            self._fail(run, error)
        return run

    def closing(self, run: OpenRun, place: int, ended: Ended, handles: Sequence[str]) -> Callable[[Connection, str], None]:
        """What closes an item's row inside the transaction that stores the last of its captures, whose handle it is given.

        `close` comes after the transaction, which may be undone. A run that is not written yet is left to it.
        """

        def close(connection: Connection, handle: str) -> None:
            if run.number:
                self._update(connection, run.number, place, ended, (*handles, handle))
                run.pending.add(place)

        return close

    def close(self, run: OpenRun, place: int, ended: Ended, handles: Sequence[str] = ()) -> None:
        """Close the row of an item whose captures are stored, unless that was done in their transaction."""
        if place in run.pending:
            run.closed.add(place)
        if place in run.closed:
            return
        run.ended[place] = (ended, tuple(handles))
        self._written(run)

    def finish(self, run: OpenRun, otherwise: Ended) -> None:
        """Close the run, and those of its items that have not ended, as `otherwise` says."""
        for place in range(len(run.entries)):
            if place not in run.closed:
                run.ended.setdefault(place, (otherwise, ()))
        self._written(run)

    def _written(self, run: OpenRun) -> None:
        try:
            with self._database.writing() as connection:
                self._write(connection, run)
        except StoreError as error:
            self._fail(run, error)

    def _write(self, connection: Connection, run: OpenRun) -> None:
        """What of the run is not written yet."""
        if not run.number:
            run.number = self._insert(connection, run)
        for place, (ended, handles) in list(run.ended.items()):
            self._update(connection, run.number, place, ended, handles)
            run.closed.add(place)
            del run.ended[place]

    def _update(self, connection: Connection, number: int, place: int, ended: Ended, handles: Sequence[str]) -> None:
        """What became of an item; a run has ended when the last of its items has."""
        reasons = self._mask(json.dumps(list(ended.reasons), ensure_ascii=False))
        known = (ended.status, ended.exit_code, reasons, round(ended.wall_s, 4), ended.bytes_out, json.dumps(handles))
        connection.execute(
            "UPDATE journal_items SET status = ?, exit_code = ?, reasons = ?, wall_s = ?, bytes_out = ?, handles = ?"
            " WHERE run = ? AND place = ?",
            (*known, number, place),
        )
        connection.execute(
            "UPDATE journal_runs SET ended_at = ?2 WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM journal_items WHERE run = ?1 AND status IS NULL)",
            (number, time.time()),
        )

    def _insert(self, connection: Connection, run: OpenRun) -> int:
        connection.execute(
            "INSERT OR IGNORE INTO journal_sessions VALUES (?, ?, ?, ?, ?, NULL)",
            (self._session, self._project, os.getpid(), str(start_mark(os.getpid())), run.started_at),
        )
        row = (self._session, run.tool, run.surface, run.batch, run.kernel, run.started_at)
        (number,) = connection.execute(
            "INSERT INTO journal_runs(session, tool, surface, batch, kernel, started_at) VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            row,
        ).fetchone()
        connection.executemany(
            "INSERT INTO journal_items(run, place, label, language, code, bytes_in, verdict, rule) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (number, place, one.label, one.language, _kept(one.code), len(one.code.encode()), one.verdict, one.rule)
                for place, one in enumerate(run.entries)
            ],
        )
        return int(number)

    def _masked(self, entry: Entry) -> Entry:
        code = storable(self._mask(storable(entry.code)))
        return Entry(storable(self._mask(entry.label)), storable(entry.language), code, entry.verdict, entry.rule)

    def _fail(self, run: OpenRun, error: StoreError) -> None:
        """Nothing more is tried for this run."""
        run.closed.update(range(len(run.entries)))
        run.ended.clear()
        if not self._told:
            self._told, self.trouble = True, f"the journal is not written: {error.what}"

    def end(self) -> None:
        """The session is closed."""
        try:
            with self._database.writing(patient=False) as connection:
                connection.execute("UPDATE journal_sessions SET ended_at = ? WHERE id = ?", (time.time(), self._session))
        except StoreError:
            return  # the process is seen to be gone all the same


def _kept(code: str) -> str:
    """As much of the code as the journal keeps; what is cut is counted."""
    whole = code.encode()
    if len(whole) <= MAX_CODE_BYTES:
        return code
    kept = whole[:MAX_CODE_BYTES].decode("utf-8", "ignore")
    return f"{kept}\n[{len(whole) - len(kept.encode()):,} B of code not kept]"


def close_lost(database: Database, now: float) -> int:
    """Close the rows that processes left open which are no longer there. Returns how many items that were."""
    with database.reading() as connection:
        open_sessions = connection.execute(
            "SELECT DISTINCT s.id, s.pid, s.mark FROM journal_items i JOIN journal_runs r ON r.id = i.run"
            " JOIN journal_sessions s ON s.id = r.session WHERE i.status IS NULL"
        ).fetchall()
    gone = [session for session, pid, mark in open_sessions if str(start_mark(pid)) != mark]
    if not gone:
        return 0
    number = 0
    with database.writing() as connection:
        for session in gone:
            number += connection.execute(
                "UPDATE journal_items SET status = ?, reasons = '[]' WHERE status IS NULL"
                " AND run IN (SELECT id FROM journal_runs WHERE session = ?)",
                (LOST, session),
            ).rowcount
            connection.execute("UPDATE journal_runs SET ended_at = ? WHERE session = ? AND ended_at IS NULL", (now, session))
    return number


_FROM = (
    " FROM journal_runs r JOIN journal_sessions s ON s.id = r.session"
    " WHERE (?1 IS NULL OR s.project = ?1) AND (?2 IS NULL OR substr(r.session, 1, length(?2)) = ?2)"
    " AND (?3 IS NULL OR r.tool = ?3) AND r.started_at >= ?5 AND (?6 IS NULL OR r.id <= ?6)"
    " AND (?4 IS NULL OR EXISTS (SELECT 1 FROM journal_items i WHERE i.run = r.id AND coalesce(i.status, 'running') = ?4))"
)


def _values(wanted: Wanted) -> tuple[Any, ...]:
    project = None if wanted.project is None else storable(wanted.project)
    return project, wanted.session, wanted.tool, wanted.status, wanted.since, wanted.last


def runs(database: Database, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
    """The newest runs, newest first, each with its items in order."""
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT r.id, r.session, s.project, r.tool, r.surface, r.kernel, r.started_at, r.ended_at"
            f"{_FROM} ORDER BY r.id DESC LIMIT ?7",
            (*_values(wanted), limit),
        ).fetchall()
        return [_run(connection, row) for row in rows]


def run_of(database: Database, number: int, project: str | None) -> dict[str, Any] | None:
    """One run by its number; None: there is none in this project."""
    with database.reading() as connection:
        row = connection.execute(
            "SELECT r.id, r.session, s.project, r.tool, r.surface, r.kernel, r.started_at, r.ended_at FROM journal_runs r"
            " JOIN journal_sessions s ON s.id = r.session WHERE r.id = ?1 AND (?2 IS NULL OR s.project = ?2)",
            (number, None if project is None else storable(project)),
        ).fetchone()
        return None if row is None else _run(connection, row)


_RUN = ("run", "session", "project", "tool", "surface", "kernel", "started_at", "ended_at")
_ITEM = (
    "label",
    "language",
    "code",
    "bytes_in",
    "verdict",
    "rule",
    "status",
    "exit_code",
    "wall_s",
    "bytes_out",
    "handles",
    "reasons",
)


def _run(connection: Connection, row: Iterable[Any]) -> dict[str, Any]:
    run = dict(zip(_RUN, row, strict=True))
    rows = connection.execute(f"SELECT {', '.join(_ITEM)} FROM journal_items WHERE run = ? ORDER BY place", (run["run"],))  # noqa: S608
    run["items"] = [_item(dict(zip(_ITEM, item, strict=True))) for item in rows]
    return run


def _item(item: dict[str, Any]) -> dict[str, Any]:
    known = {"status": item["status"] or "running", "handles": json.loads(item["handles"] or "[]")}
    return item | known | {"reasons": json.loads(item["reasons"] or "[]"), "bytes_out": item["bytes_out"] or 0}


def count(database: Database, wanted: Wanted) -> tuple[int, int]:
    """How many runs are meant, and the number of the last one."""
    with database.reading() as connection:
        number, last = connection.execute(f"SELECT count(*), coalesce(max(r.id), 0){_FROM}", _values(wanted)).fetchone()
    return int(number), int(last)


def forget(database: Database, wanted: Wanted) -> int:
    """Delete runs with their items, and sessions that have none left. Returns how many runs that were."""
    with database.writing(freeing=True) as connection:
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS doomed_runs(id INTEGER PRIMARY KEY)")
        connection.execute("DELETE FROM doomed_runs")
        connection.execute(f"INSERT INTO doomed_runs SELECT r.id{_FROM}", _values(wanted))
        connection.execute("DELETE FROM journal_items WHERE run IN (SELECT id FROM doomed_runs)")
        number = connection.execute("DELETE FROM journal_runs WHERE id IN (SELECT id FROM doomed_runs)").rowcount
        _drop_empty_sessions(connection)
    return number


def forget_old(database: Database, before: float, limit: int = 200) -> int:
    """Delete runs that began before a time, a few hundred at once."""
    with database.reading() as connection:
        doomed = connection.execute(
            "SELECT id FROM journal_runs WHERE started_at < ? ORDER BY id LIMIT ?", (before, limit)
        ).fetchall()
    if not doomed:
        return 0
    with database.writing(freeing=True) as connection:
        connection.executemany("DELETE FROM journal_items WHERE run = ?", doomed)
        connection.executemany("DELETE FROM journal_runs WHERE id = ?", doomed)
        _drop_empty_sessions(connection)
    return len(doomed)


def _drop_empty_sessions(connection: Connection) -> None:
    connection.execute("DELETE FROM journal_sessions WHERE id NOT IN (SELECT session FROM journal_runs)")
