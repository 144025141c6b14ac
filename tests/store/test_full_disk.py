"""A disk that fills up: what was stored stays, is found, can be forgotten, and makes room again. On a small disk of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MOUNT = 'mount -t tmpfs -o size={size}m none "$0" && exec "$@"'
ADD = """
import os, pathlib, sys
from sandboxmcp.core.errors import DiskFull
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store
P = Scope("p")
store = Store(pathlib.Path(sys.argv[1]))
def text(n, lines=12_000):
    rows = (f"source {n} line {m} {hash((n, m)) % 10**9:x} words that fill it\\n" for m in range(lines))
    return f"the zebra {n} runs\\n" + "".join(rows)
def fill():
    kept = []
    while True:
        try:
            kept.append(store.add(NewSource(f"label {len(kept)}", "execute", "p", "s"), text(len(kept))).handle)
        except DiskFull as error:
            assert "forget sources" in error.fix, error
            return kept
def fill_up():
    with open(pathlib.Path(sys.argv[1]) / "filler", "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            pass
def found():
    return sorted(hit.handle for hit in store.search("zebra", P))
"""
FULL = (
    ADD
    + """
kept = fill()
assert len(kept) > 1, kept
assert sorted(kept) == sorted(one.handle for one in store.sources(P)) == found()
assert store.read_lines(kept[0], 1, 1) == ["the zebra 0 runs"]
store.add_usage("ctx_search", captured=1)
assert store.usage()[0].calls == 1
drafts = [path for path in pathlib.Path(sys.argv[1]).rglob(".draft-*")]
captures = [path for path in (pathlib.Path(sys.argv[1]) / "captures").rglob("*.zst")]
assert (drafts, len(captures)) == ([], len(kept)), (drafts, captures)
store.forget(kept[:2])
assert found() == sorted(kept[2:])
again = store.add(NewSource("again", "execute", "p", "s"), text("again", 6_000)).handle
assert found() == sorted([*kept[2:], again])
"""
)
TO_THE_LAST_BYTE = (
    ADD
    + """
kept = fill()
store.close()
with open(pathlib.Path(sys.argv[1]) / "filler", "wb", buffering=0) as filler:
    try:
        while filler.write(b"x" * 4096):
            pass
    except OSError:
        pass
store = Store(pathlib.Path(sys.argv[1]))
assert found() == sorted(kept)
store.forget(kept)
assert (found(), store.sources(P)) == ([], [])
store.add(NewSource("new", "execute", "p", "s"), "the zebra is back")
assert len(found()) == 1
"""
)
RECOVERED_LATE = (
    ADD
    + """
left = pathlib.Path(sys.argv[1]) / "incoming" / "a_killed_one"
left.mkdir(parents=True)
(left / "one.out").write_bytes(os.urandom(1 << 18).hex().encode())
kept = fill()
fill_up()
assert (store.adopt(), store.unadopted) == ([], 1)
store.adopt_late()
assert store.unadopted == 1
(pathlib.Path(sys.argv[1]) / "filler").unlink()
store.forget(kept[:2])
assert store.unadopted == 0
assert [one.label for one in store.sources(Scope(""))] == ["recovered:one.out"]
assert list((pathlib.Path(sys.argv[1]) / "incoming").glob("a_killed_one")) == []
"""
)
OWED = (
    ADD
    + """
from sandboxmcp.core.model import Outcome, Script, StreamCapture
from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.tools.remember import remember
place = pathlib.Path(sys.argv[1])
store.close()
session = Session(load_settings({"data_dir": str(place), "workspace": str(place.parent)}, environ={"HOME": str(place)}))
store = session.store
streams = []
for name in ("out", "err"):
    file = store.captures_dir / name
    file.write_bytes(os.urandom(1 << 18).hex().encode() + b"\\n")
    streams.append(StreamCapture(file, file.stat().st_size, file.stat().st_size))
kept = fill()
fill_up()
try:
    outcome = Outcome(Script("", "shell", "x"), "ok", 0, 0.0, *streams)
    remember(session, outcome, label="", source_label="run", origin="execute", batch="b")
except DiskFull as error:
    assert "stored as soon as sandboxmcp can" in error.what, error
else:
    raise AssertionError
assert store.unadopted == 2
(place / "filler").unlink()
store.forget(kept[:2])
mine = Scope(session.project)
assert (store.unadopted, sorted(one.label for one in store.sources(mine))) == (0, ["run", "run stderr"])
store.close()
assert [path.name for path in (place / "incoming").rglob("*") if path.is_file()] == []
"""
)


def on_small_disk(folder: Path, code: str, size_mb: int = 40) -> None:
    missing = pytest.fail if os.environ.get("SANDBOXMCP_SANDBOX") == "required" else pytest.skip
    if shutil.which("unshare") is None:
        missing("no unshare to mount a small disk with")
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*command, MOUNT.format(size=1), str(folder), "true"], capture_output=True).returncode:
        missing("no disk can be mounted here")
    done = subprocess.run(
        [*command, MOUNT.format(size=size_mb), str(folder), sys.executable, "-c", code, str(folder)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_disk_costs_only_what_was_being_added_and_forgetting_makes_room(tmp_path: Path) -> None:
    on_small_disk(tmp_path, FULL)


def test_a_store_on_a_disk_without_a_byte_left_opens_and_can_be_emptied(tmp_path: Path) -> None:
    on_small_disk(tmp_path, TO_THE_LAST_BYTE)


def test_what_a_killed_process_left_is_stored_as_soon_as_forgetting_has_made_room(tmp_path: Path) -> None:
    on_small_disk(tmp_path, RECOVERED_LATE)


def test_what_could_not_be_stored_is_as_soon_as_there_is_room_under_its_own_label(tmp_path: Path) -> None:
    on_small_disk(tmp_path, OWED)
