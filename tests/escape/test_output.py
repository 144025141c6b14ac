"""Output that is too much, too broken or too fast, and a reader that stalls (cases 32 and 33)."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

TAIL = "\nNone"
"""A last line without a value: the last expression of a script is shown, as in a notebook."""

STREAMS = {
    "invalid UTF-8": ("import os\nos.write(1, b'\\xff\\xfe\\xc3\\x28')", b"\xff\xfe\xc3\x28"),
    "NUL bytes": ("import os\nos.write(1, b'a\\0b')", b"a\0b"),
    "terminal sequences": ("print('\\x1b[2J\\x1b]0;title\\x07\\r\\x1b[31mred', end='')", b"\x1b[2J\x1b]0;title\x07\r\x1b[31mred"),
    "stdout closed": ("import os\nos.write(1, b'before')\nos.close(1)", b"before"),
    "stdout replaced": ("import os, sys\nsys.stdout = None\nos.write(1, b'raw')", b"raw"),
    "a line without end": ("import os\nfor _ in range(64): os.write(1, bytes(1 << 20))", bytes(64 << 20)),
}


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_arrives_byte_for_byte_as_outside(attempt, inside, stream):
    code, expected = STREAMS[stream]
    outcome = inside.run(code + TAIL).outcome
    kept = outcome.stdout.path.read_bytes()
    outcome.stdout.path.unlink()
    assert (outcome.status, outcome.stdout.total, kept == expected) == ("ok", len(expected), True)
    assert len(attempt(code).outside.stdout) > 0


def test_a_gigabyte_without_a_line_end_leaves_the_servers_memory_flat(make_inside):
    own = make_inside(limits__output="1MiB")
    own.run("1")
    Path("/proc/self/clear_refs").write_text("5")
    before = highest()
    ran = own.run("import os\npiece = bytes(1 << 20)\nfor _ in range(1024): os.write(1, piece)\nNone", timeout_s=50)
    assert (ran.outcome.status, ran.outcome.stdout.total, ran.outcome.stdout.kept) == ("ok", 1 << 30, 1 << 20)
    assert highest() - before < 32 << 20


def highest() -> int:
    """Bytes of the server's memory at its highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) << 10


def test_both_streams_at_once_do_not_block_one_another(inside):
    ran = inside.run("import os\nfor _ in range(200): os.write(1, bytes(9999)); os.write(2, bytes(9999))\nNone")
    assert (ran.outcome.stdout.total, ran.outcome.stderr.total) == (1_999_800, 1_999_800)


def test_output_of_an_item_is_not_changed_by_the_one_beside_it(inside):
    """The streams of a sibling are other pipes; an item reaches them only as itself."""
    quiet = inside.start(inside.run_here("until [ -e go ]; do sleep 0.01; done; echo mine", "shell"))
    inside.run("import os\nfor _ in range(100): os.write(1, b'noise' * 1000)\nopen('go', 'w')\nNone")
    assert quiet.result(20).stdout == b"mine\n"


FLOOD = "from IPython.display import HTML, display\nfor i in range(4000): display(HTML('<i>%d</i>' % i))\nprint('end')"


def test_a_flood_of_displays_while_the_reader_stalls_still_ends(inside):
    """Outside, a client whose queue is full loses messages, the one that says `idle` too, and waits for ever."""
    inside.run("1")
    running = inside.start(inside.run_here(FLOOD, timeout_s=40))
    released = threading.Event()
    inside._loop.call_soon_threadsafe(released.wait, 1.5)  # the server's event loop stands still meanwhile
    ran = running.result(60)
    assert (ran.outcome.status, ran.stdout.splitlines()[-1], len(ran.outcome.artifacts)) == ("ok", b"end", 64)


def test_what_a_script_calls_an_artifact_never_names_a_file(inside):
    """The files of artifacts are named by the server; the type is only a label."""
    code = "from IPython.display import display\ndisplay({'../../../../tmp/escape\\x00': 'x', 'a' * 9999: 'y'}, raw=True)"
    artifacts = inside.run(code).outcome.artifacts
    assert [one.path.parent == artifacts[0].path.parent for one in artifacts] == [True, True]
    assert [len(one.mime) <= 100 for one in artifacts] == [True, True]
    assert not os.path.exists("/tmp/escape")
