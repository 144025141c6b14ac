"""Boxes that wait: what curl is told through its standard input is what was meant, and nothing of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sandboxmcp.broker.box import Box
from sandboxmcp.broker.box_pool import CURL, Spares, WaitingBox, orders
from sandboxmcp.sandbox.usage import tree

ODD = {
    "a line break and an option": 'a\nurl = "file:///etc/passwd"\n',
    "quotes and backslashes": 'say "\\n" \\\\" \\',
    "tabs and returns": "\ta\r\vb",
    "a comment": "# a = b",
    "nothing": "",
    "an at sign": "@/etc/passwd",
    "other letters": "é€😀\x1e",
    "long": "x" * 90_000,
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_a_value_reaches_curl_as_it_is_and_stays_one_value(value, site):
    options = orders([("--data-raw", value), ("--url", f"{site.url}/body")])
    ended = subprocess.run([CURL, "-q", "-s", "-S", "-K", "-"], input=options, capture_output=True, timeout=20)
    assert (ended.returncode, ended.stdout.decode(), ended.stderr) == (0, value, b"")


@pytest.mark.parametrize(("option", "header"), [("--user-agent", "User-Agent"), ("--referer", "Referer")])
def test_an_empty_header_is_left_out_as_curl_does(option, header, site):
    subprocess.run([CURL, "-q", "-s", "-K", "-"], input=orders([(option, ""), ("--url", f"{site.url}/ok")]), capture_output=True)
    assert header not in site.seen[-1].headers


@pytest.fixture
def box(sandbox):
    made = Box.make()
    yield made
    made.remove()


def doors(box: Box) -> list[Path]:
    return [place for place in box.folder.iterdir() if place.is_dir()]


def test_nothing_of_a_box_is_left_whether_it_was_used_or_not(box):
    before = len(os.listdir("/proc/self/fd"))
    for use in (False, True):
        waiting = WaitingBox(box)
        assert (waiting.process.alive(), len(doors(box))) == (True, 1)
        if use:
            waiting.give([])  # nothing to fetch: curl says so and ends
            assert (os.read(waiting.body, 1), b"no URL" in waiting.said()) == (b"", True)
        waiting.end()
        waiting.end()
        assert (waiting.process.alive(), doors(box)) == (False, [])
    assert len(os.listdir("/proc/self/fd")) <= before


def test_boxes_wait_once_they_were_asked_for_and_end_with_the_session(box):
    spares = Spares(box)
    assert spares.take() is None
    spares.refill()
    taken = wait_for(spares)
    os.kill(taken.process.init_pid, 9)
    taken.process.wait()
    taken.end()
    spares.refill()
    wait_for(spares).end()
    spares.close()
    spares.refill()
    assert (spares.take(), doors(box)) == (None, [])


def wait_for(spares: Spares) -> WaitingBox:
    """One that waits; the thread that starts them says so by a notification."""
    with spares._changed:
        assert spares._changed.wait_for(lambda: spares._waiting, 20)
    taken = spares.take()
    assert taken is not None
    return taken


def test_a_box_that_has_died_while_it_waited_is_passed_over(box):
    spares = Spares(box)
    spares.refill()
    with spares._changed:
        assert spares._changed.wait_for(lambda: len(spares._waiting) == 2, 20)
        dead = spares._waiting[0]
    dead.process.kill()
    dead.process.wait()
    taken = spares.take()
    assert taken is not None and taken.process.alive()
    taken.end()
    spares.close()
    assert doors(box) == []


KILLED = """
import sys
from pathlib import Path
from sandboxmcp.broker.box import Box
from sandboxmcp.broker.box_pool import Spares
box = Box.make()
spares = Spares(box)
spares.refill()
with spares._changed:
    spares._changed.wait_for(lambda: spares.number == 2, 20)
print(box.folder, flush=True)
sys.stdin.read()
"""


def started_by(pid: int) -> list[int]:
    """All processes below one."""
    found = [process.pid for process in tree(pid)]
    return found[1:]


def alive(pids: list[int]) -> list[int]:
    """Those that still run; one that waits to be collected has no command line."""
    return [pid for pid in pids if command_line(pid)]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_killed_server_leaves_no_box_and_its_folder_goes_with_the_next_start(sandbox):
    server = subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder = Path(server.stdout.readline().strip())
    while len(curls := [pid for pid in started_by(server.pid) if command_line(pid).startswith("/usr/bin/curl")]) < 2:
        os.sched_yield()  # bubblewrap's own start is no box yet, and knows of no parent that dies
    boxes = started_by(server.pid)
    assert (folder.is_dir(), set(curls) <= set(boxes)) == (True, True)
    server.kill()
    server.communicate()
    deadline = time.monotonic() + 20
    while alive(boxes) and time.monotonic() < deadline:
        os.sched_yield()
    assert alive(boxes) == []
    Box.make().remove()
    while folder.exists() and time.monotonic() < deadline:  # another server of this machine may be at it
        os.sched_yield()
    assert not folder.exists()
