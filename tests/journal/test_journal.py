"""The journal's rows: written before a run, closed with its captures, listed, forgotten."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandboxmcp.core.database import Database
from sandboxmcp.core.migrations import MIGRATIONS
from sandboxmcp.journal.journal import (
    LOST,
    MAX_CODE_BYTES,
    Ended,
    Entry,
    Journal,
    Wanted,
    close_lost,
    count,
    forget,
    forget_old,
    run_of,
    runs,
)

ONE = Entry("execute:python", "python", "print(1)", "allow")
TWO = Entry("execute:shell", "shell", "curl x", "deny", "no-curl")
ALL = Wanted(None)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "store.db", MIGRATIONS)
    yield made
    made.close()


def journal_of(database: Database, session: str = "abc", project: str = "/p") -> Journal:
    return Journal(database, session, project, lambda text: text.replace("secret", "[masked]"))


def statuses(database: Database) -> list[str]:
    return [item["status"] for run in runs(database, ALL, 10) for item in run["items"]]


def test_a_row_stands_before_the_run_and_says_afterwards_what_became_of_it(database: Database) -> None:
    journal = journal_of(database)
    run = journal.open("ctx_batch_execute", "mcp", [ONE, TWO], "b", None)
    assert statuses(database) == ["running", "running"]
    journal.close(run, 1, Ended("denied"))
    journal.close(run, 0, Ended("failed", 3, [{"code": "signal", "facts": {}, "next_step": ""}], 0.25, 17), ["h1", "h2"])
    (found,) = runs(database, ALL, 10)
    first, second = found["items"]
    assert (first["status"], first["exit_code"], first["wall_s"], first["bytes_out"]) == ("failed", 3, 0.25, 17)
    assert (first["handles"], [one["code"] for one in first["reasons"]], first["bytes_in"]) == (["h1", "h2"], ["signal"], 8)
    assert (second["status"], second["verdict"], second["rule"], found["ended_at"] is not None) == (
        "denied",
        "deny",
        "no-curl",
        True,
    )


def test_a_row_is_closed_in_the_transaction_that_stores_the_capture(database: Database) -> None:
    journal = journal_of(database)
    run = journal.open("ctx_execute", "mcp", [ONE])
    closing = journal.closing(run, 0, Ended("ok", 0), ["h1"])
    with pytest.raises(RuntimeError, match="undone"), database.writing() as connection:
        closing(connection, "h2")
        raise RuntimeError("undone")
    assert statuses(database) == ["running"]
    journal.finish(run, Ended("failed"))
    assert statuses(database) == ["failed"]


def test_code_and_labels_are_masked_and_long_code_is_cut_with_a_mark(database: Database) -> None:
    journal = journal_of(database)
    journal.open("ctx_execute", "mcp", [Entry("a secret", "python", "x = 'secret'\n" + "é" * MAX_CODE_BYTES, "allow")])
    ((item,),) = [run["items"] for run in runs(database, ALL, 1)]
    assert item["label"] == "a [masked]" and item["code"].startswith("x = '[masked]'") and "secret" not in item["code"]
    assert item["code"].endswith(" B of code not kept]") and len(item["code"].encode()) < MAX_CODE_BYTES + 100


def test_what_was_not_closed_is_when_the_run_is(database: Database) -> None:
    journal = journal_of(database)
    run = journal.open("ctx_batch_execute", "mcp", [ONE, TWO])
    journal.close(run, 0, Ended("ok", 0))
    journal.finish(run, Ended("cancelled"))
    assert statuses(database) == ["ok", "cancelled"]


def test_a_run_does_not_wait_for_another_writer_and_is_written_at_its_end(database: Database) -> None:
    journal, holding, let_go = journal_of(database), threading.Event(), threading.Event()

    def hold() -> None:
        with database.writing():
            holding.set()
            assert let_go.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    assert holding.wait(30)
    run = journal.open("ctx_execute", "mcp", [ONE])
    let_go.set()
    other.join()
    journal.close(run, 0, Ended("ok", 0))
    assert (statuses(database), journal.trouble) == (["ok"], "")


def test_a_journal_that_cannot_be_written_stops_nothing_and_says_so_once(database: Database, tmp_path: Path) -> None:
    database.close()
    with Unwritable(tmp_path) as read_only:
        journal = journal_of(read_only)
        for _ in range(2):
            run = journal.open("ctx_execute", "mcp", [ONE])
            journal.close(run, 0, Ended("ok", 0))
        assert journal.trouble.startswith("the journal is not written: ")
        journal.trouble = ""
        journal.finish(journal.open("ctx_execute", "mcp", [ONE]), Ended("ok"))
        assert journal.trouble == ""


class Unwritable:
    """A database whose tables of the journal are gone: every write to them fails."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder / "store.db", MIGRATIONS)

    def __enter__(self) -> Database:
        with self._database.writing() as connection:
            connection.execute("DROP TABLE journal_runs")
        return self._database

    def __exit__(self, *_: object) -> None:
        self._database.close()


OPENS_A_ROW = """
import os, pathlib, signal, sys
from sandboxmcp.core.database import Database
from sandboxmcp.core.migrations import MIGRATIONS
from sandboxmcp.journal.journal import Entry, Journal
journal = Journal(Database(pathlib.Path(sys.argv[1]), MIGRATIONS), "dead", "/p", str)
journal.open("ctx_execute", "mcp", [Entry("", "python", "1", "allow")])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_rows_of_a_killed_process_are_closed_as_lost_and_those_of_living_ones_left(database: Database) -> None:
    assert subprocess.run([sys.executable, "-c", OPENS_A_ROW, str(database.path)], timeout=60).returncode == -9
    journal_of(database).open("ctx_execute", "mcp", [ONE])
    assert (close_lost(database, 5.0), statuses(database)) == (1, ["running", LOST])
    assert (close_lost(database, 6.0), run_of(database, 1, None)["ended_at"]) == (0, 5.0)


def test_runs_are_found_by_project_session_tool_status_and_time(database: Database) -> None:
    for session, project, tool, status in (("a1", "/p", "x", "ok"), ("a2", "/p", "y", "failed"), ("b1", "/q", "x", "ok")):
        journal = journal_of(database, session, project)
        journal.close(journal.open(tool, "mcp", [ONE]), 0, Ended(status))

    def found(**wanted: object) -> list[int]:
        return [run["run"] for run in runs(database, Wanted(**{"project": None} | wanted), 10)]  # type: ignore[arg-type]

    assert (found(), found(project="/p"), found(session="a"), found(session="a1")) == ([3, 2, 1], [2, 1], [2, 1], [1])
    assert (found(tool="x"), found(status="failed"), found(since=4e9), found(last=2)) == ([3, 1], [2], [], [2, 1])
    assert (run_of(database, 1, "/q"), count(database, Wanted("/p"))) == (None, (2, 2))


def test_forgetting_takes_items_and_empty_sessions_along(database: Database) -> None:
    for session, project in (("a", "/p"), ("b", "/q")):
        journal = journal_of(database, session, project)
        journal.close(journal.open("x", "mcp", [ONE, TWO]), 0, Ended("ok"))
    assert forget(database, Wanted("/p")) == 1
    with database.reading() as connection:
        tables = ("journal_sessions", "journal_runs", "journal_items")
        left = [len(connection.execute(f"SELECT * FROM {table}").fetchall()) for table in tables]  # noqa: S608 - names of ours
    assert left == [1, 1, 2]
    assert (forget_old(database, 1.0), forget_old(database, 4e9), statuses(database)) == (0, 1, [])


def test_a_store_of_an_earlier_version_gets_the_journal(tmp_path: Path) -> None:
    old = Database(tmp_path / "old.db", MIGRATIONS[:5])
    with old.writing() as connection:
        connection.execute("DROP TABLE migrations")  # which earlier versions did not have
    old.close()
    opened = Database(tmp_path / "old.db", MIGRATIONS)
    with opened.reading() as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY rowid")]
    assert names == [migration.name for migration in MIGRATIONS] and runs(opened, ALL, 1) == []
    opened.close()
