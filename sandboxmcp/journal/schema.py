"""The tables of the journal: sessions 1 ─ n runs 1 ─ n items."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

_SESSION = {"id": str, "project": str, "pid": int, "mark": str, "started_at": float, "ended_at": float}
_RUN = {"id": int, "session": str, "tool": str, "surface": str, "batch": str, "kernel": str, "started_at": float, "ended_at": float}
_ITEM = {
    "id": int,
    "run": int,
    "place": int,
    "label": str,
    "language": str,
    "code": str,
    "bytes_in": int,
    "verdict": str,
    "rule": str,
    "status": str,
    "exit_code": int,
    "reasons": str,
    "wall_s": float,
    "bytes_out": int,
    "handles": str,
}
_UNKNOWN_AT_FIRST = {"status", "exit_code", "reasons", "wall_s", "bytes_out", "handles", "rule"}


def runs(database: Database) -> None:
    """Sessions, runs and items."""
    sessions = database.table("journal_sessions").create(_SESSION, pk="id", not_null={"project", "pid", "mark", "started_at"})
    sessions.create_index(["project"])
    made = database.table("journal_runs").create(_RUN, pk="id", not_null={"session", "tool", "surface", "started_at"})
    made.create_index(["session"])
    made.create_index(["started_at"])
    items = database.table("journal_items").create(_ITEM, pk="id", not_null=set(_ITEM) - _UNKNOWN_AT_FIRST - {"id"})
    items.create_index(["run"])
    database.execute("CREATE INDEX idx_journal_items_open ON journal_items(run) WHERE status IS NULL")
