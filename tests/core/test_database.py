from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sandboxmcp.core import database as module
from sandboxmcp.core.database import Busy, Database, has_trigrams, sqlite_with_trigrams
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.migrations import Migration


def _steps(*functions: Any) -> list[Migration]:
    return [Migration(f"{number} {function.__name__}", function) for number, function in enumerate(functions)]


def _table(database):
    database["things"].create({"id": int, "name": str}, pk="id")


def _column(database):
    database["things"].add_column("size", int)


def _break(database):
    database["more"].create({"id": int})
    raise RuntimeError("a migration that does not work")


def _columns(database: Database) -> list[str]:
    with database.reading() as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(things)")]


def test_a_new_database_has_the_schema_and_is_private(tmp_path):
    database = Database(tmp_path / "deep" / "x.db", _steps(_table))
    assert _columns(database) == ["id", "name"]
    assert stat.S_IMODE((tmp_path / "deep" / "x.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700


def test_only_the_missing_migrations_run(tmp_path):
    Database(tmp_path / "x.db", _steps(_table)).close()
    assert _columns(Database(tmp_path / "x.db", _steps(_table, _column))) == ["id", "name", "size"]


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path):
    Database(tmp_path / "x.db", _steps(_table)).close()
    with pytest.raises(RuntimeError):
        Database(tmp_path / "x.db", _steps(_table, _break))
    with Database(tmp_path / "x.db", _steps(_table)).reading() as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)


def test_a_newer_database_is_refused_with_the_fix(tmp_path):
    Database(tmp_path / "x.db", _steps(_table, _column)).close()
    with pytest.raises(StoreError, match=r"has version 2, this sandboxmcp knows up to 1\. Upgrade sandboxmcp"):
        Database(tmp_path / "x.db", _steps(_table))


def test_a_write_that_raises_is_undone(tmp_path):
    database = Database(tmp_path / "x.db", _steps(_table))
    with pytest.raises(ZeroDivisionError), database.writing() as connection:
        connection.execute("INSERT INTO things VALUES (1, 'a')")
        1 / 0  # noqa: B018
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (0,)


def test_threads_that_write_at_once_lose_nothing(tmp_path):
    database = Database(tmp_path / "x.db", _steps(_table))

    def write():
        for _ in range(25):
            with database.writing() as connection:
                connection.execute("INSERT INTO things(name) VALUES ('a')")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (100,)


def test_a_reader_sees_one_state_while_another_writes(tmp_path):
    database = Database(tmp_path / "x.db", _steps(_table))
    with database.reading() as reader:
        before = reader.execute("SELECT count(*) FROM things").fetchone()
        with database.writing() as connection:
            connection.execute("INSERT INTO things(name) VALUES ('a')")
        assert reader.execute("SELECT count(*) FROM things").fetchone() == before


def test_foreign_keys_are_enforced(tmp_path):
    def child(tables):
        _table(tables)
        tables["children"].create({"id": int, "thing": int}, foreign_keys=[("thing", "things", "id")])

    database = Database(tmp_path / "x.db", _steps(child))
    with pytest.raises(StoreError, match="FOREIGN KEY"), database.writing() as connection:
        connection.execute("INSERT INTO children VALUES (1, 99)")


@pytest.mark.parametrize(
    "content", [b"this is not a database, and long enough to be read as one" * 20, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_a_file_that_is_no_database_is_a_store_error_with_the_fix(tmp_path, content):
    (tmp_path / "x.db").write_bytes(content)
    with pytest.raises(StoreError, match=r"x\.db failed: .*doctor --repair"):
        Database(tmp_path / "x.db", _steps(_table))


def test_a_folder_in_place_of_the_file_is_a_store_error(tmp_path):
    (tmp_path / "x.db").mkdir()
    with pytest.raises(StoreError, match="SANDBOXMCP_DATA_DIR"):
        Database(tmp_path / "x.db", _steps(_table))


def test_a_place_that_cannot_be_written_is_a_store_error_with_the_fix():
    with pytest.raises(StoreError, match=r"cannot be made: .*SANDBOXMCP_DATA_DIR"):
        Database(Path("/proc/nowhere/x.db"), _steps(_table))


def test_a_closed_database_says_so(tmp_path):
    database = Database(tmp_path / "x.db", _steps(_table))
    database.close()
    with pytest.raises(StoreError, match="is closed"), database.reading():
        pass


def test_processes_that_create_it_at_once_all_succeed(tmp_path):
    code = (
        "import sys, pathlib\nfrom sandboxmcp.core.database import Database\n"
        "from sandboxmcp.core.migrations import Migration\n"
        "d = Database(pathlib.Path(sys.argv[1]), [Migration('a', lambda t: t['things'].create({'id': int}, pk='id'))])\n"
        "with d.writing() as c: c.execute('INSERT INTO things DEFAULT VALUES')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "x.db")]) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0, 0, 0, 0]
    with Database(tmp_path / "x.db", _steps(lambda _: None)).reading() as connection:
        assert connection.execute("SELECT count(*) FROM things").fetchone() == (4,)


def test_a_sqlite_without_trigrams_is_recognised():
    plain: Any = ModuleType("plain")
    plain.Error = sqlite3.Error
    plain.connect = lambda _: _WithoutFullText()
    assert (has_trigrams(sqlite3), has_trigrams(plain)) == (True, False)


def test_without_any_usable_sqlite_the_error_names_pysqlite3(monkeypatch):
    monkeypatch.setattr(module, "has_trigrams", lambda _: False)
    with pytest.raises(StoreError, match="Install pysqlite3"):
        sqlite_with_trigrams.__wrapped__()


class _WithoutFullText:
    """What a SQLite that was built without FTS5 answers."""

    def execute(self, statement: str) -> None:
        raise sqlite3.OperationalError("no such module: fts5")

    def close(self) -> None:
        pass


def test_the_impatient_do_not_wait_for_a_thread_or_a_process(tmp_path):
    database, other_process = Database(tmp_path / "x.db", _steps(_table)), sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    with database.writing(), pytest.raises(Busy, match="Another thread"), database.writing(patient=False):
        pass
    other_process.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy, match="Another process"), database.writing(patient=False):
        pass
    other_process.execute("ROLLBACK")
    with database.writing(patient=False) as connection:
        connection.execute("INSERT INTO things(name) VALUES ('a')")
