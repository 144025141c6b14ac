"""An older store brought up to date with its data in it, and an index built anew from the captures."""

from __future__ import annotations

from pathlib import Path

from sandboxmcp.core.database import Database
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store import store as module
from sandboxmcp.store.schema import MIGRATIONS
from sandboxmcp.store.store import Repaired, Store

P = Scope("p")


def test_a_store_of_the_first_version_opens_with_everything_in_it(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        handle = store.add(NewSource("old", "execute", "p", "s"), "the zebra runs\n").handle
        with store._database.writing() as connection:
            for table in ("pages", "previews"):
                connection.execute(f"DROP TABLE {table}")
            for column in ("stamp", "gone"):
                connection.execute(f"ALTER TABLE sources DROP COLUMN {column}")
            connection.execute("PRAGMA user_version = 1")
    with Store(tmp_path) as store:
        assert [(hit.handle, hit.text) for hit in store.search("zebra", P)] == [(handle, "the zebra runs")]
        assert store.pages.find("p", "x", "http://x") is None and store.sources(P)[0].gone is False
    assert len(MIGRATIONS) == 4 and module.DATABASE


def test_a_wrecked_index_is_built_anew_from_the_captures(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        kept, lost = (store.add(NewSource(word, "execute", "p", "s"), f"the {word} runs\n").handle for word in ("zebra", "giraffe"))
        with store._database.writing() as connection:
            connection.execute("DELETE FROM passages_fts_data WHERE id > 10")
            connection.execute("DELETE FROM words")
            (name,) = connection.execute("SELECT digest FROM sources WHERE handle = ?", (lost,)).fetchone()
        next((tmp_path / "captures").rglob(f"{name}.zst")).unlink()
        assert store.repair() == Repaired(1, (lost,), ())
        assert [hit.handle for hit in store.search("zebar", P)] == [kept] == [one.handle for one in store.sources(P)]


def test_a_repair_of_a_sound_store_changes_no_answer(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for n in range(20):
            store.add(NewSource(f"n{n}", "text", "p", "s"), f"# Part {n}\n\nzebra number {n} of many\n" * (n + 1))
        before = [store.search(query, P) for query in ("zebra", "number 7", "zebar")]
        store.repair()
        assert [store.search(query, P) for query in ("zebra", "number 7", "zebar")] == before


def test_the_database_is_the_one_that_migrations_make(tmp_path: Path) -> None:
    made = Database(tmp_path / "new.db", MIGRATIONS)
    with made.reading() as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    made.close()
    assert {"sources", "chunks", "passages", "words", "usage", "pages", "previews"} <= tables
