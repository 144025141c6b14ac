"""Texts cut by a worker process: the same chunks as here, whatever is in them; one that is lost costs titles and never the text."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.model import Scope
from sandboxmcp.store.chunking.cutting import Cut, cut, unpacked
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.readers import cutter
from sandboxmcp.store.readers.worker import Lost, Workers
from sandboxmcp.store.store import Store

SLOW = (b'{"a": [' + b"1," * 50_000 + b"1]}\n") * 60
"""JSON that is laid out with a number on each line, which takes a worker many seconds."""


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


def cut_by(workers: Workers, pieces: list[bytes], form: str, first: int = 1, cpu_s: float = 60, most: int = 1 << 30) -> list[Cut]:
    with tempfile.TemporaryFile() as file:
        order = {"order": "cut", "form": form, "first": first}
        workers.run(order, pieces, file, cpu_s=cpu_s, most_bytes=most)
        file.seek(0)
        return [one for line in file for one in unpacked(line)]


def here(pieces: list[bytes], form: Form, first: int = 1) -> list[Cut]:
    return [one._replace(passages=list(one.passages)) for one in cut(pieces, first, form)]


def until(happened: Callable[[], bool]) -> None:
    """Waits, giving the processor away in between: it happens in other processes."""
    end = time.monotonic() + 60
    while not happened():
        threading.Event().wait(0.01)
        assert time.monotonic() < end, "it did not happen in time"


words = st.sampled_from(
    ["# a", "<b>", "</b>", '{"a": 1}', "def f():", "- x:", "a: b", "\r", "\x1b[1m", "é", "\n", "\n\n", "  ", "'"]
)
texts = st.lists(st.one_of(words, st.text(max_size=20)), max_size=60).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts, form=st.sampled_from(get_args(Form)), first=st.integers(1, 10**9))
def test_a_worker_cuts_a_text_as_this_process_does(workers: Workers, text: str, form: Form, first: int) -> None:
    data = text.encode("utf-8", "surrogatepass")
    pieces = [data[: len(data) // 2], data[len(data) // 2 :]]
    assert cut_by(workers, pieces, form, first) == here(pieces, form, first)


def test_a_worker_that_takes_too_long_is_lost_and_the_next_order_is_done(workers: Workers) -> None:
    with pytest.raises(Lost):
        cut_by(workers, [SLOW], "json", cpu_s=0)
    assert cut_by(workers, [b"zebra\n"], "plain") == here([b"zebra\n"], "plain")


def test_a_worker_that_writes_too_much_is_lost(workers: Workers) -> None:
    with pytest.raises(Lost):
        cut_by(workers, [b"zebra\n" * 50_000], "plain", most=10_000)


def test_a_worker_that_was_killed_between_two_orders_is_replaced(workers: Workers) -> None:
    cut_by(workers, [b"zebra\n"], "plain")
    for pid in children():
        os.kill(pid, signal.SIGKILL)
    assert cut_by(workers, [b"zebra\n"], "plain") == here([b"zebra\n"], "plain")


def test_what_reading_the_text_raises_comes_through_and_the_next_order_is_done(workers: Workers) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"zebra\n"
        raise KeyError("ended")

    with tempfile.TemporaryFile() as file, pytest.raises(KeyError, match="ended"):
        order = {"order": "cut", "form": "plain", "first": 1}
        workers.run(order, pieces(), file, cpu_s=60, most_bytes=1 << 20)
    assert cut_by(workers, [b"zebra\n"], "plain") == here([b"zebra\n"], "plain")


def test_a_large_text_has_the_same_index_however_it_was_cut(store: Store, add: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"# Part {n}\n\nThe zebra {n} runs over the plain.\n\n" for n in range(6_000))
    by_worker = add(text)
    monkeypatch.setattr(cutter, "SMALL_BYTES", 10 << 20)
    by_itself = add(text)
    rows = "SELECT title, first_line, last_line FROM chunks WHERE source_id = (SELECT id FROM sources WHERE handle = ?)"
    with store._database.reading() as connection:
        found = [list(connection.execute(rows, (one.handle,))) for one in (by_worker, by_itself)]
    assert found[0] == found[1] and len(found[0]) == by_worker.chunks > 1_000


def test_a_text_that_takes_too_long_is_indexed_as_plain_lines_and_says_so(
    store: Store, add: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutter, "_CPU_S", 0.0)
    monkeypatch.setattr(cutter, "_CPU_S_PER_MB", 0.0)
    content = SLOW + b'"rhinoceros"\n'
    source = add(content)
    (hit,) = store.search("rhinoceros", Scope("p"))
    assert (source.plain, hit.last_line, b"".join(store.raw(source.handle)) == content) == (True, 61, True)


def test_a_small_text_starts_no_process(store: Store, add: Any) -> None:
    before = children()
    add("zebra\n" * 10_000)
    assert children() == before


def test_closing_the_store_ends_its_workers(tmp_path: Path, add: Any, store: Store) -> None:
    before = children()
    add("zebra\n" * 100_000)
    assert len(children() - before) == 1
    store.close()
    until(lambda: children() <= before)


def test_a_text_whose_store_is_closed_meanwhile_is_not_stored_as_plain_lines() -> None:
    own = Workers()

    def pieces() -> Iterator[bytes]:
        yield b"zebra\n"
        own.close()
        yield b"zebra\n"

    with tempfile.TemporaryFile() as file, pytest.raises(StoreError, match="is closed"):
        own.run({"order": "cut", "form": "plain", "first": 1}, pieces(), file, cpu_s=60, most_bytes=1 << 20)


PARENT = """
import sys, tempfile
from sandboxmcp.store.readers.worker import Workers
def pieces():
    yield b"zebra"
    print("begun", flush=True)
    yield b'{"a": [' + b"1," * 8_000_000
    sys.stdin.read()
order = {"order": "cut", "form": "json", "first": 1}
Workers().run(order, pieces(), tempfile.TemporaryFile(), cpu_s=600, most_bytes=1 << 30)
"""


def test_a_worker_ends_with_the_process_that_started_it_in_the_middle_of_its_work() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"begun\n"
        started = children(parent.pid)
        parent.kill()
    assert started
    until(lambda: all(ended(pid) for pid in started))


def children(pid: int | None = None) -> set[int]:
    """Living ones of a process, by their numbers."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid or os.getpid()}/task").iterdir():
        found |= set(map(int, (task / "children").read_text().split()))
    return {one for one in found if not ended(one)}


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
