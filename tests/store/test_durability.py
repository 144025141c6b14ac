"""Large inputs, killed writers, several processes: nothing acknowledged is lost, nothing half is seen, memory stays flat."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store

P = Scope("p")
CHANGE_FOREVER = """
import pathlib, sys
from sandboxmcp.core.model import NewSource
from sandboxmcp.store.store import Store
folder = pathlib.Path(sys.argv[1])
store = Store(folder / "data")
store.sweep()
def text(n):
    return "".join(f"version {n} line {m} of a text that takes a while to index\\n" for m in range(1500))
for n in range(10**6):
    added = store.add(NewSource("output", "execute", "p", "s"), text(n)).handle
    print("added", added, flush=True)
    (folder / "file").write_text(text(n))
    print("file", store.add(NewSource("file", "file", "p", "s", path="file"), folder / "file").handle, n, flush=True)
    if n % 2:
        print("forgetting", added, flush=True)
        store.forget([added])
        print("forgot", added, flush=True)
"""
TOGETHER_FOREVER = """
import pathlib, sys
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store
folder = pathlib.Path(sys.argv[1])
store = Store(folder / "data")
files = [folder / f"file {n}" for n in range(40)]
for turn in range(10**6):
    with store.together() as batch:
        for file in files:
            file.write_text("".join(f"turn {turn} line {m} of {file.name}\\n" for m in range(100)))
            batch.add(NewSource(file.name, "file", "p", "s", path=str(file)), file)
    with store._database.writing() as connection:
        connection.execute("UPDATE sources SET cut_by = 0 WHERE id % 2")
    store.renewing._current = False
    store.search("turn", Scope("p"))
    print(turn, *[one.handle for one in batch.sources], flush=True)
"""
SOAK = int(os.environ.get("SANDBOXMCP_SOAK", "4"))
"""How many writers are killed; `make soak` kills more."""
ADD_SOME = """
import pathlib, sys
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store
store = Store(pathlib.Path(sys.argv[1]))
for n in range(20):
    store.add(NewSource(sys.argv[2], "execute", "p", "s"), f"process {sys.argv[2]} says word {n}")
    assert store.search("process", Scope("p"))
"""
ADD_FILE = """
import pathlib, sys
from sandboxmcp.core.model import NewSource
from sandboxmcp.store.store import Store
folder = pathlib.Path(sys.argv[1])
Store(folder / "data").add(NewSource("file", "file", "p", "s", path="file"), folder / "file")
"""
ADD_LARGE = """
import pathlib, resource, sys
from sandboxmcp.core.model import NewSource
from sandboxmcp.store.store import Store
store = Store(pathlib.Path(sys.argv[1]), index_head=2 << 20, index_tail=2 << 20)
store.add(NewSource("small", "execute", "p", "s"), "".join(f"warm up {n}\\n" for n in range(20000)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = store.add(NewSource("large", "execute", "p", "s"), pathlib.Path(sys.argv[2]), consume=True)
print(source.handle, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def _start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("seed", range(SOAK))
def test_a_killed_writer_loses_nothing_acknowledged_and_leaves_nothing_half(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    said: dict[str, list[list[str]]] = {"added": [], "file": [], "forgetting": [], "forgot": []}
    for _ in range(2):  # the second finds what the first has left
        writer = _start(CHANGE_FOREVER, tmp_path)
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(draw.randrange(1, 9))]
        threading.Event().wait(draw.random() * 0.2)
        writer.send_signal(signal.SIGKILL)
        for line in (*lines, *writer.communicate()[0].splitlines()):
            said[line.split()[0]].append(line.split()[1:])
    with Store(tmp_path / "data") as store:
        store.adopt()
        store.sweep()
        outputs = {source.handle for source in store.sources(P, limit=100_000) if source.label == "output"}
        maybe_gone = {handle for (handle,) in said["forgetting"]}
        assert {handle for (handle,) in said["added"]} - maybe_gone <= outputs
        assert not {handle for (handle,) in said["forgot"]} & outputs
        live = [source for source in store.sources(P, limit=100_000) if source.label == "file"]
        assert len(live) == bool(said["file"]) or not said["file"]
        for source in store.sources(P, limit=100_000):
            assert (source.lines, store.read_lines(source.handle, 1_500, 1_500)[0].split()[2:4]) == (1_500, ["line", "1499"])
        _assert_sound(store)


@pytest.mark.parametrize("seed", range(SOAK))
def test_a_process_killed_while_it_stores_files_together_and_cuts_others_anew_leaves_each_whole(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    writer = _start(TOGETHER_FOREVER, tmp_path)
    assert writer.stdout is not None
    said = [writer.stdout.readline() for _ in range(draw.randrange(1, 4))][-1].split()
    threading.Event().wait(draw.random() * 0.2)
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate()[0].splitlines()
    turn, *handles = rest[-1].split() if rest and len(rest[-1].split()) == 41 else said
    with Store(tmp_path / "data") as store:
        store.adopt()
        live = store.sources(P, limit=100)
        turns = {store.read_lines(one.handle, 100, 100)[0].rpartition(" line ")[0] for one in live}
        assert (len(live), len(turns), int(turns.pop().split()[1]) >= int(turn)) == (40, 1, True)
        assert [store.read_lines(handle, 1, 1)[0].split()[1] for handle in handles] == [turn] * 40
        store.renewing.start()
        store.renewing.wait(60)
        assert store.renewing.outdated() == 0
        store.sweep()
        _assert_sound(store)


def _assert_sound(store: Store) -> None:
    with store._database.writing() as connection:
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
        connection.execute("INSERT INTO passages_fts(passages_fts, rank) VALUES ('integrity-check', 1)")
        known = connection.execute("SELECT count(*), (SELECT sum(passages) FROM sources) FROM passages").fetchone()
        assert known[0] == known[1]


def test_two_processes_that_index_one_file_leave_it_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("".join(f"line {n} of a file\n" for n in range(20_000)) + "and a zebra\n")
    running = [_start(ADD_FILE, tmp_path) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    with Store(tmp_path / "data") as store:
        assert (len(store.sources(P)), len(store.search("zebra", P))) == (1, 1)
        _assert_sound(store)


def test_two_processes_share_a_store(tmp_path):
    running = [_start(ADD_SOME, tmp_path / "data", name) for name in ("one", "two")]
    assert [process.wait(60) for process in running] == [0, 0]
    with Store(tmp_path / "data") as store:
        labels = [source.label for source in store.sources(P)]
        assert (labels.count("one"), labels.count("two")) == (20, 20)
        assert len(store.search("process", P)) == 40


def test_two_hundred_megabytes_are_captured_in_flat_memory_and_found_at_both_ends(tmp_path):
    line = b"2024-05-01 12:00:00 INFO an ordinary line of a very long log that nobody will ever read in full\n"
    large = tmp_path / "stream"
    count = (200 << 20) // len(line)
    with large.open("wb") as file:
        file.write(b"the beginning has a walrus\n")
        for _ in range(count // 1_000):
            file.write(line * 1_000)
        file.write(b"the end has an ocelot\n")
    lines = 2 + count // 1_000 * 1_000
    output, _ = (process := _start(ADD_LARGE, tmp_path / "data", large)).communicate(timeout=100)
    handle, grown_kb = output.split()
    assert process.returncode == 0
    assert int(grown_kb) < 60 << 10
    assert not large.exists()
    with Store(tmp_path / "data") as store:
        source = store.get(handle)
        assert (source.lines, source.bytes > 190 << 20, source.indexed_bytes < 5 << 20) == (lines, True, True)
        assert [(hit.first_line, "walrus" in hit.text) for hit in store.search("walrus", P)] == [(1, True)]
        (end,) = store.search("ocelot", P)
        assert (end.last_line, store.read_lines(handle, lines, lines)) == (lines, ["the end has an ocelot"])
        assert store.read_lines(handle, lines // 2, lines // 2) == [line.decode().strip()]


def test_only_head_and_tail_of_a_large_capture_are_indexed_with_true_line_numbers(tmp_path):
    text = "".join(f"row {n} {'needle' if n in (3, 500, 998) else 'hay'}\n" for n in range(1, 1_001))
    with Store(tmp_path, index_head=200, index_tail=200) as store:
        handle = store.add(NewSource("x", "execute", "p", "s"), text).handle
        found = store.search("needle", P)
        assert sorted(hit.first_line <= n <= hit.last_line for hit in found for n in (3, 998)) == [False, False, True, True]
        for hit in found:
            assert hit.text.split("\n") == store.read_lines(handle, hit.first_line, hit.last_line)


@pytest.mark.parametrize(
    "text", ["x" * 5_000, "word " * 1_000 + "\nend\n", "start\n" + "word " * 1_000], ids=["one line", "long first", "long last"]
)
def test_a_line_longer_than_what_is_indexed_is_no_obstacle(tmp_path, text):
    with Store(tmp_path, index_head=200, index_tail=200) as store:
        source = store.add(NewSource("x", "execute", "p", "s"), text)
        assert b"".join(store.raw(source.handle)) == text.encode()
        assert 0 < source.indexed_bytes <= len(text)
        assert all(hit.last_line <= source.lines for hit in store.search("word end start x", P))


def test_a_megabyte_on_one_line_is_found_and_cited_as_that_line(tmp_path):
    words = [f"w{n}" for n in range(150_000)]
    words[140_000] = "rhinoceros"
    with Store(tmp_path) as store:
        store.add(NewSource("x", "execute", "p", "s"), "first\n" + " ".join(words) + "\nlast\n")
        (hit,) = store.search("rhinoceros", P)
        assert (hit.first_line, hit.last_line, hit.partial, len(hit.text) < 1_000) == (2, 2, True, True)


def test_an_interrupted_add_leaves_no_draft(tmp_path, monkeypatch):
    with Store(tmp_path) as store:
        monkeypatch.setattr("sandboxmcp.store.index.catalogue.insert", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            store.add(NewSource("x", "execute", "p", "s"), "text")
    assert [path for path in tmp_path.rglob("*") if path.suffix == ".zst" or path.name.startswith(".draft")] == []
