"""Adding, finding, reading back and forgetting, on a real store."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from sandboxmcp.core.errors import StoreError, UsageError
from sandboxmcp.core.model import Scope
from sandboxmcp.store.store import Store
from sandboxmcp.store.usage_stats import Usage

P = Scope("p")


def test_what_was_added_is_found_cited_and_read_back(store, add):
    source = add("first line\nthe answer is 42\nlast line\n", label="run", kind="log")
    (hit,) = store.search("answer", P)
    assert (hit.handle, hit.label, hit.first_line, hit.last_line, hit.partial) == (source.handle, "run", 1, 3, False)
    assert hit.text == "first line\nthe answer is 42\nlast line"
    assert store.read_lines(source.handle, 2, 2) == ["the answer is 42"]
    assert (source.bytes, source.lines, source.chunks, source.indexed_bytes, source.kind) == (38, 3, 1, 38, "log")


def test_handles_are_six_unambiguous_characters_and_begin_with_a_letter(add):
    handles = [add(f"text {n}").handle for n in range(50)]
    assert all(re.fullmatch(r"[a-hjkmnp-z][a-hjkmnp-z2-9]{5}", handle) for handle in handles)
    assert len(set(handles)) == 50


def test_captures_with_equal_labels_never_overwrite_each_other(store, add):
    one, other = add("the same text"), add("the same text")
    assert one.handle != other.handle
    assert {hit.handle for hit in store.search("same", P)} == {one.handle, other.handle}
    assert [source.handle for source in store.sources(P)] == [other.handle, one.handle]


def test_equal_answers_come_newest_first(store, add):
    handles = [add("equally good answer").handle for _ in range(3)]
    assert [hit.handle for hit in store.search("answer", P)] == handles[::-1]


def test_the_recent_order_puts_the_newest_source_first(store, add):
    old = add("zebra zebra zebra")
    new = add("a much longer text that mentions a zebra just once among many other words")
    assert [hit.handle for hit in store.search("zebra", P)] == [old.handle, new.handle]
    assert [hit.handle for hit in store.search("zebra", P, sort="recent")] == [new.handle, old.handle]


def test_a_limit_is_honoured(store, add):
    for n in range(5):
        add(f"pineapple number {'abcde'[n]}")
    assert len(store.search("pineapple", P, limit=2)) == 2


def test_an_unchanged_file_is_free_and_keeps_its_handle(store, add):
    first = add("content", label="file:a", origin="file", path="/a")
    again = add("content", label="file:a", origin="file", path="/a", session="later")
    assert (again.handle, again.unchanged, first.unchanged) == (first.handle, True, False)
    assert [hit.handle for hit in store.search("content", Scope("p", session="later"))] == [first.handle]


def test_a_changed_file_replaces_its_old_chunks_but_old_citations_stay_readable(store, add):
    old = add("old words", label="file:a", origin="file", path="/a")
    new = add("new words", label="file:a", origin="file", path="/a")
    assert store.search("old", P) == []
    assert [source.handle for source in store.sources(P)] == [new.handle]
    assert store.read_lines(old.handle, 1, 1) == ["old words"]


def test_a_given_text_is_unchanged_only_with_the_same_label_and_content(store, add):
    first = add("body", label="a", origin="text")
    assert add("body", label="a", origin="text").unchanged
    assert not add("body", label="b", origin="text").unchanged
    assert not add("other", label="a", origin="text").unchanged
    assert {hit.handle for hit in store.search("body", P)} >= {first.handle}


def test_the_same_file_in_another_project_is_another_source(add):
    first = add("content", origin="file", path="/a", project="p")
    assert not add("content", origin="file", path="/a", project="q").unchanged
    assert add("content", origin="file", path="/a", project="p").handle == first.handle


def test_a_project_never_sees_the_sources_of_another(store, add):
    mine, theirs = add("secret plan", project="p"), add("secret plot", project="q")
    assert [hit.handle for hit in store.search("secret", P)] == [mine.handle]
    assert [source.handle for source in store.sources(Scope("q"))] == [theirs.handle]
    assert {hit.handle for hit in store.search("secret", Scope(None))} == {mine.handle, theirs.handle}
    with pytest.raises(UsageError):
        store.get(theirs.handle, project="p")


@pytest.mark.parametrize(
    ("scope", "labels"),
    [
        (Scope("p", session="s2"), {"b_1"}),
        (Scope("p", batch="k"), {"c%1"}),
        (Scope("p", kind="code"), {"d"}),
        (Scope("p", source="b_1"), {"b_1"}),
        (Scope("p", source="%"), {"c%1"}),
        (Scope("p", source="_"), {"b_1"}),
        (Scope("p", source="\\"), set()),
    ],
    ids=["session", "batch", "kind", "source", "percent", "underscore", "backslash"],
)
def test_every_field_of_a_scope_narrows(store, add, scope, labels):
    add("common word", label="a")
    add("common word", label="b_1", session="s2")
    add("common word", label="c%1", batch="k")
    add("common word", label="d", kind="code")
    assert {hit.label for hit in store.search("common", scope)} == labels
    assert {source.label for source in store.sources(scope)} == labels


def test_handles_narrow_a_scope(store, add):
    handles = [add("common word").handle for _ in range(3)]
    assert {hit.handle for hit in store.search("common", Scope("p", handles=(handles[0], handles[2])))} == {handles[0], handles[2]}


def test_many_scattered_sources_are_searched_like_few(store, add):
    mine = {add(f"common word {n}", project="pq"[n % 2]).handle for n in range(40)} - {s.handle for s in store.sources(Scope("q"))}
    assert {hit.handle for hit in store.search("common", P)} == mine


@pytest.mark.parametrize("query", ["", "   ", "!!! ??? --- ()", "\0", "\u202e", "…"])
def test_a_query_without_words_finds_nothing(store, add, query):
    add("some text ! ? -")
    assert store.search(query, P) == []


@pytest.mark.parametrize(
    "query",
    ['"unbalanced', "NEAR(a b, 2)", "title: x", "a AND", "a OR OR b", "x*", "^x", "-x", "{a b}: c", "a'b", "NOT", "x" * 10_000],
)
def test_search_syntax_in_a_query_is_harmless(store, add, query):
    add("a b c x near title not")
    assert isinstance(store.search(query, P), list)


def test_a_query_of_ten_thousand_characters_still_finds(store, add):
    add("the needle is here")
    assert store.search("needle " + "lorem ipsum dolor " * 600, P)[0].text == "the needle is here"


def test_a_label_is_cleaned_and_shortened(add):
    assert add("x", label="a\x00b\nc\td\x1b[31m").label == "a␀b c d"
    label = add("x", label="n" * 10_000).label
    assert (len(label), label[-1]) == (200, "…")
    assert add("x", label="\u200b \n").label == "execute"


def test_an_unknown_handle_names_near_ones_and_where_to_look(store, add):
    handle = add("x").handle
    wrong = handle[:-1] + ("a" if handle[-1] != "a" else "b")
    with pytest.raises(UsageError, match=rf"There is no source '{wrong}'\. Did you mean {handle}\? ctx_sources lists them\."):
        store.get(wrong)
    for use in (lambda: store.read_lines("nope", 1, 1), lambda: list(store.raw("nope")), lambda: store.forget(["nope"])):
        with pytest.raises(UsageError, match="ctx_sources"):
            use()


def test_near_handles_of_other_projects_are_not_named(store, add):
    handle = add("x", project="q").handle
    with pytest.raises(UsageError) as caught:
        store.get(handle, project="p")
    assert caught.value.fix == "ctx_sources lists them."


def test_the_raw_bytes_come_back_exactly(store, add):
    data = bytes(range(256)) * 3_000 + b"\r\n\0no newline at the end"
    assert b"".join(store.raw(add(data).handle)) == data


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (2, 2, (["1", "2"], ["9", "10"])),
        (0, 3, ([], ["8", "9", "10"])),
        (3, 0, (["1", "2", "3"], [])),
        (8, 5, (["1", "2", "3", "4", "5", "6", "7", "8"], ["9", "10"])),
        (20, 20, ([str(n) for n in range(1, 11)], [])),
    ],
)
def test_head_and_tail_hold_each_line_once(store, add, head, tail, expected):
    handle = add("".join(f"{n}\n" for n in range(1, 11))).handle
    assert store.head_tail(handle, head, tail) == expected


def test_reading_past_the_end_gives_what_there_is(store, add):
    handle = add("a\nb").handle
    assert store.read_lines(handle, 2, 99) == ["b"]
    assert store.read_lines(handle, 5, 9) == []
    with pytest.raises(UsageError, match="no range"):
        store.read_lines(handle, 3, 2)


def test_a_long_line_can_be_read_cut(store, add):
    handle = add("x" * 5_000 + "\nshort\n").handle
    assert store.read_lines(handle, 1, 2, line_bytes=10) == ["x" * 10 + "… [4,990 more bytes]", "short"]


def test_grep_gives_numbers_and_lines_and_looks_at_case_only_when_asked(store, add):
    handle = add("one Error\ntwo\nthree error\n" + "y" * 9_000 + "ERROR" + "z" * 9_000 + "\n").handle
    found = store.grep(handle, "error", line_bytes=25)
    assert found == [(1, "one Error"), (3, "three error"), (4, "…" + "y" * 10 + "ERROR" + "z" * 10 + "…")]
    assert store.grep(handle, "Error") == [(1, "one Error")]
    assert store.grep(handle, "error", first=2, limit=1) == [(3, "three error")]


def test_forgetting_removes_a_source_its_words_and_its_capture(store, add, tmp_path):
    kept, doomed = add("alpha shared"), add("xylophone shared")
    assert store.forget([doomed.handle]) == 1
    assert store.search("xylophone", P) == []
    assert [hit.handle for hit in store.search("shared", P)] == [kept.handle]
    assert len(list((tmp_path / "data" / "captures").rglob("*.zst"))) == 1
    with store._database.reading() as connection:
        assert connection.execute("SELECT word FROM words ORDER BY word").fetchall() == [("alpha",), ("shared",)]
        assert connection.execute("SELECT count(*) FROM words_fts WHERE words_fts MATCH '\"xyl\"'").fetchone() == (0,)
    _check_index(store)


def test_a_capture_that_another_source_shares_survives_forgetting(store, add):
    one, other = add("the same"), add("the same")
    store.forget([one.handle])
    assert store.read_lines(other.handle, 1, 1) == ["the same"]


def test_forgetting_a_file_forgets_its_older_versions(store, add):
    old = add("old", origin="file", path="/a")
    store.forget([add("new", origin="file", path="/a").handle])
    with pytest.raises(UsageError):
        store.get(old.handle)


def test_nothing_is_forgotten_when_a_handle_is_unknown(store, add):
    source = add("stay")
    with pytest.raises(UsageError):
        store.forget([source.handle, "nope22"])
    assert store.get(source.handle).handle == source.handle


def test_hits_are_counted_per_search(store, add):
    source = add("popular words")
    for _ in range(3):
        store.search("popular", P)
    assert [(s.handle, s.hits) for s in store.sources(P)] == [(source.handle, 3)]


def test_distinctive_terms_name_what_a_source_is_about(store, add):
    handle = add("\n\n".join(f"worker {'pool' if n % 3 else 'deadlock'} number {n} of the server" for n in range(60))).handle
    assert {"deadlock", "pool"} <= set(store.terms(handle, limit=6))
    assert store.terms([], limit=5) == []


def test_usage_adds_up_per_tool(store):
    store.add_usage("ctx_search", returned=10)
    store.add_usage("ctx_search", returned=5)
    store.add_usage("ctx_execute", captured=100, returned=20)
    assert store.usage() == [Usage("ctx_execute", 1, 100, 20), Usage("ctx_search", 2, 0, 15)]


def test_counting_never_waits_for_another_writer_and_loses_nothing(store, add, tmp_path):
    source = add("popular")
    other = sqlite3.connect(tmp_path / "data" / "sandboxmcp.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.add_usage("ctx_search", returned=7)
    store.search("popular", P)
    assert (store.usage(), store.sources(P)[0].hits) == ([Usage("ctx_search", 1, 0, 7)], 1)
    other.execute("ROLLBACK")
    store.close()
    with Store(tmp_path / "data") as again:
        assert (again.usage(), again.get(source.handle).hits) == ([Usage("ctx_search", 1, 0, 7)], 1)


def test_of_many_sources_those_that_were_forgotten_meanwhile_are_missing(store, add):
    kept, forgotten = add("kept"), add("forgotten")
    store.forget([forgotten.handle])
    assert store.get_all([kept.handle, forgotten.handle, "nosuch"]) == {kept.handle: store.get(kept.handle)}


def test_counts_are_written_soon_without_a_further_call(store, tmp_path):
    other = sqlite3.connect(tmp_path / "data" / "sandboxmcp.db", isolation_level=None)
    (before,) = other.execute("PRAGMA data_version").fetchone()
    store.add_usage("ctx_search", returned=7)
    store.add_usage("ctx_search", returned=1)
    [thread] = [one for one in threading.enumerate() if isinstance(one, threading.Timer)]
    thread.join(30)
    assert other.execute("SELECT * FROM usage").fetchall() == [("ctx_search", 2, 0, 8)]
    assert other.execute("PRAGMA data_version").fetchone() == (before + 1,)


def test_names_that_are_not_utf8_are_storable(store, add):
    source = add("x", label="a\udcff", path="/a\udcff", project="/p\udcff", origin="file")
    assert (source.label, source.path) == ("a\ufffd", "/a\\udcff")
    assert [hit.handle for hit in store.search("x", Scope("/p\udcff"))] == [source.handle]
    assert add("x", label="a\udcff", path="/a\udcff", project="/p\udcff", origin="file").unchanged
    with pytest.raises(UsageError):
        store.get("\udcff")


def test_a_file_is_consumed_only_when_asked(store, add, tmp_path):
    path = tmp_path / "stream"
    path.write_text("from a file")
    assert add(path).bytes == 11 and path.exists()
    assert add(path, consume=True).bytes == 11 and not path.exists()


def test_bytes_beyond_what_was_kept_are_counted(add):
    assert (add("kept", total_bytes=1_000).bytes, add("kept", total_bytes=1_000).total_bytes) == (4, 1_000)


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: os.mkfifo(p), lambda p: None], ids=["folder", "pipe", "missing"])
def test_what_is_no_regular_file_is_refused(add, tmp_path, make):
    make(tmp_path / "thing")
    with pytest.raises(UsageError, match=r"thing (is not a regular file|cannot be read)"):
        add(tmp_path / "thing")


@pytest.mark.parametrize("content", ["", "\n", "\n\n\n", " ", b"\0", b"\xff\xfe", "\ud800 lone"], ids=repr)
def test_strange_contents_are_kept_and_readable(store, add, content):
    source = add(content)
    assert len(store.read_lines(source.handle, 1, 10)) == source.lines
    assert store.head_tail(source.handle, 1, 1)[0] == store.read_lines(source.handle, 1, 1)


def test_nul_and_invalid_utf8_are_indexed_shown_and_searched_alike(store, add):
    handle = add(b"before\nbad \xff\xfe byte and \0 nul \xe2\x82\nafter\n").handle
    line = "bad \ufffd\ufffd byte and ␀ nul \ufffd"
    assert store.read_lines(handle, 2, 2) == [line]
    assert line in store.search("nul byte", P)[0].text


def test_everything_on_disk_is_private(store, add, tmp_path):
    add("text")
    data = tmp_path / "data"
    modes = {path.relative_to(data): stat.S_IMODE(path.stat().st_mode) for path in [data, *data.rglob("*")]}
    assert {mode for path, mode in modes.items() if (data / path).is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if (data / path).is_file()} == {0o600}


def test_threads_share_a_store(store, add):
    def work(n: int) -> None:
        handle = add(f"thread {n} says hello", label=str(n)).handle
        assert store.search("hello", P)
        assert store.read_lines(handle, 1, 1) == [f"thread {n} says hello"]

    failures: list[BaseException] = []

    def guarded(n: int) -> None:
        try:
            work(n)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(store.sources(P)) == 8
    _check_index(store)


def test_a_missing_capture_is_a_store_error_with_the_fix(store, add, tmp_path):
    handle = add("text").handle
    next((tmp_path / "data" / "captures").rglob("*.zst")).unlink()
    with pytest.raises(StoreError, match="Forget its source"):
        store.read_lines(handle, 1, 1)


def test_a_folder_that_cannot_be_made_is_a_store_error():
    with pytest.raises(StoreError, match="SANDBOXMCP_DATA_DIR"):
        Store(Path("/proc/nowhere"))


def _check_index(store: Store) -> None:
    """FTS5's own check that the index and the text agree."""
    with store._database.writing() as connection:
        connection.execute("INSERT INTO passages_fts(passages_fts, rank) VALUES ('integrity-check', 1)")
        connection.execute("INSERT INTO words_fts(words_fts, rank) VALUES ('integrity-check', 1)")
