"""An older store brought up to date with its data in it, and an index built anew from the captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.migrations import MIGRATIONS
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store import store as module
from sandboxmcp.store.captures.captures import Captures
from sandboxmcp.store.maintenance.rebuild import Repaired
from sandboxmcp.store.salvage import Salvaged, salvage
from sandboxmcp.store.store import Store

P = Scope("p")


def _first_version(folder: Path, handles: list[str]) -> None:
    """A store as the first version wrote it: two sources of two passages each, words counted by sources."""
    captures = Captures(folder / "captures")
    made = Database(folder / module.DATABASE, MIGRATIONS[:1])
    with made.writing() as connection:
        for number, handle in enumerate(handles):
            text = f"the zebra {handle} runs\nwith many stripes\n"
            draft = captures.write([text.encode()])
            captures.keep(draft)
            row = (
                number + 1,
                handle,
                "old",
                "execute",
                "log",
                "p",
                "s",
                None,
                None,
                "text/plain",
                draft.digest,
                len(text),
                len(text),
            )
            first = 2 * number + 1
            more = (2, 1, len(text), 1.0, 0, 2, 7, first, first + 1, '["zebra"]', None)
            connection.execute(f"INSERT INTO sources VALUES ({','.join('?' * 24)})", row + more)  # noqa: S608 (marks only)
            connection.execute("INSERT INTO chunks VALUES (?, ?, 'Animals', 1, 2)", (number + 1, number + 1))
            for line, body in enumerate(text.splitlines()):
                passage = (first + line, number + 1, line + 1, line + 1, 0, 4, body, "")
                connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", passage)
                connection.execute(
                    "INSERT INTO passages_fts(rowid, title, body, pieces) VALUES (?, 'Animals', ?, '')", (first + line, body)
                )
        for word in ("zebra", "stripes", "with", "many", "runs", "the"):
            connection.execute("INSERT INTO words(word, uses) VALUES (?, 2)", (word,))
        connection.execute("INSERT INTO words_fts(rowid, word) SELECT id, word FROM words")
    made.close()


def test_a_store_of_the_first_version_opens_with_everything_in_it(tmp_path: Path) -> None:
    _first_version(tmp_path, ["aaaaaa", "bbbbbb"])
    with Store(tmp_path) as store:
        assert (
            sorted(hit.handle for hit in store.search("zebar", P))
            == ["aaaaaa", "bbbbbb"]
            == sorted(one.handle for one in store.sources(P))
        )
        assert store.read_lines("aaaaaa", 1, 2) == ["the zebra aaaaaa runs", "with many stripes"]
        assert store.pages.find("p", "x", "http://x") is None and store.sources(P)[0].gone is False
        store.forget(["aaaaaa"])
        new = store.add(NewSource("new", "execute", "p", "s"), "another zebra\n").handle
        assert sorted(hit.handle for hit in store.search("zebar", P)) == sorted(["bbbbbb", new])
        with store._database.writing() as connection:
            words = dict(connection.execute("SELECT word, uses FROM words"))
            connection.execute("INSERT INTO passages_fts(passages_fts, rank) VALUES ('integrity-check', 1)")
        assert words == {"zebra": 2, "bbbbbb": 1, "runs": 1, "the": 1, "with": 1, "many": 1, "stripes": 1, "another": 1}


def test_what_an_earlier_version_cut_is_cut_anew_beside_a_search(tmp_path: Path) -> None:
    _first_version(tmp_path, ["aaaaaa", "bbbbbb"])
    with Store(tmp_path) as store:
        store.add(NewSource("new", "execute", "p", "s"), "another zebra\n")
        assert (store.renewing.outdated(), len(store.search("zebra", P))) == (2, 3)
        store.renewing.wait(60)
        found = {hit.handle: (hit.text, hit.title) for hit in store.search("zebra stripes", P, sort="recent")[1:]}
        assert (store.renewing.outdated(), found) == (
            0,
            {h: (f"the zebra {h} runs\nwith many stripes", "") for h in ("aaaaaa", "bbbbbb")},
        )
        with store._database.writing() as connection:
            words = dict(connection.execute("SELECT word, uses FROM words"))
            connection.execute("INSERT INTO passages_fts(passages_fts, rank) VALUES ('integrity-check', 1)")
            (segments,) = connection.execute("SELECT count(DISTINCT segid) FROM passages_fts_idx").fetchone()
        assert (words["zebra"], words["stripes"], words["aaaaaa"]) == (3, 2, 1)
        assert segments == 1  # what was deleted is gone from the index too


def test_a_source_whose_capture_is_lost_stays_as_an_earlier_version_cut_it(tmp_path: Path) -> None:
    _first_version(tmp_path, ["aaaaaa"])
    for capture in (tmp_path / "captures").rglob("*.zst"):
        capture.write_bytes(b"damaged")
    with Store(tmp_path) as store:
        before = store.search("zebra", P)
        store.renewing.wait(60)
        assert (store.renewing.outdated(), store.search("zebra", P)) == (0, before)


def test_a_store_that_closes_leaves_what_was_cut_for_the_next(tmp_path: Path) -> None:
    _first_version(tmp_path, [f"{letter * 6}" for letter in "abcdefgh"])
    for _ in range(20):
        with Store(tmp_path) as store:
            assert len(store.search("zebra", P)) == 8
            left = store.renewing.outdated()
        if not left:
            break
    assert left < 8


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


def damage(file: Path, first: int, last: int) -> None:
    """Overwrite pages of a database (counted from 0)."""
    with file.open("r+b") as database:
        database.seek(first * 4096)
        database.write(b"\x55" * 4096 * (last - first))


@pytest.mark.parametrize(("first", "last"), [(3, 9), (1, 30), (0, 1)])
def test_a_damaged_database_is_built_anew_and_nothing_captured_is_lost(tmp_path: Path, first: int, last: int) -> None:
    with Store(tmp_path) as store:
        for number in range(60):
            store.add(NewSource(f"n{number}", "text", f"p{number % 2}", "s"), f"zebra number {number} of many\n")
    damage(tmp_path / module.DATABASE, first, last)
    found = salvage(tmp_path)
    assert found is not None and (found.aside.exists(), found.sources + found.nameless) == (True, 60)
    assert salvage(tmp_path) is None
    with Store(tmp_path) as store:
        assert store.repair() == Repaired(60, (), ())
        assert len({hit.handle for hit in store.search("zebra", Scope(None))}) == 60
        assert {one.project for one in store.sources(P)} <= {"p"} and len(store.sources(Scope(""))) == found.nameless


def test_a_damaged_database_is_left_alone_while_a_server_has_it_open(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add(NewSource("n", "text", "p", "s"), "zebra\n")
        store._database.close()
        damage(tmp_path / module.DATABASE, 0, 1)
        with pytest.raises(StoreError, match="another process has it open"):
            salvage(tmp_path)
    assert salvage(tmp_path) == Salvaged(tmp_path / "sandboxmcp.db.damaged-1", 0, 1)


def test_an_index_that_names_lost_passages_is_an_error_that_names_the_repair(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add(NewSource("x", "execute", "p", "s"), "the zebra runs\n")
        with Database(tmp_path / module.DATABASE, MIGRATIONS).writing() as connection:
            connection.execute("DELETE FROM passages")
        with pytest.raises(StoreError, match="corrupt") as refused:
            store.search("zebra", P)
        assert "doctor --repair" in str(refused.value.fix)
        store.repair()
        assert [hit.text for hit in store.search("zebra", P)] == ["the zebra runs"]
