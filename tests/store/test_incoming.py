"""What a killed process leaves on its way into the store is taken over; what a living one has there is not touched."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store

LEAVE = """
import pathlib, sys
from sandboxmcp.store.store import Store
store = Store(pathlib.Path(sys.argv[1]), owner=("p", "s"))
(store.captures_dir / "one.out").write_bytes(b"the zebra runs\\n")
(store.captures_dir / "one.err").write_bytes(b"")
(store.captures_dir / ".draft-x").write_bytes(b"half a capture")
print("ready", flush=True)
sys.stdin.read()
"""


def _process(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", LEAVE, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "incoming").rglob("*") if path.is_file() and path.name != ".owner")


def test_what_a_killed_process_captured_becomes_a_source_of_its_project(tmp_path: Path) -> None:
    with _process(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
    with Store(tmp_path) as store:
        (source,) = store.adopt()
        assert (source.label, source.project, source.session) == ("recovered:one.out", "p", "s")
        assert [hit.text for hit in store.search("zebra", Scope("p"))] == ["the zebra runs"]
        assert (store.adopt(), _files(tmp_path)) == ([], [])


def test_what_a_living_process_has_there_is_left_alone(tmp_path: Path) -> None:
    with _process(tmp_path) as process, Store(tmp_path) as store:
        assert store.adopt() == []
        assert _files(tmp_path) == [".draft-x", "one.err", "one.out"]
        process.kill()


def test_what_was_stored_before_the_kill_is_not_stored_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.add(NewSource("x", "execute", "p", "s"), "the zebra runs\n")
        with _process(tmp_path) as process:
            process.kill()
        assert (store.adopt(), len(store.sources(Scope("p"))), _files(tmp_path)) == ([], 1, [])


def test_a_closed_store_leaves_no_folder_and_a_file_in_it_for_the_next(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        empty = store.captures_dir
    assert not empty.exists()
    with Store(tmp_path) as store:
        (store.captures_dir / "late.out").write_text("the giraffe sleeps\n")
    with Store(tmp_path) as store:
        assert [source.label for source in store.adopt()] == ["recovered:late.out"]
