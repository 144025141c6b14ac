"""Scripts in the real sandbox: what they print, how they end, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import Outcome
from sandboxmcp.render.reasons import said


def ended(outcome: Outcome) -> tuple[str, int | None]:
    return outcome.status, outcome.exit_code


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "1 + 1", ("ok", 0)),
        ("python", "1 / 0", ("failed", 1)),
        ("python", "raise SystemExit(3)", ("failed", 3)),
        ("python", "raise SystemExit(10**30)", ("failed", 255)),
        ("python", "raise SystemExit(256)", ("ok", 0)),
        ("python", "raise SystemExit(-1)", ("failed", 255)),
        ("python", "exit()", ("ok", 0)),
        ("python", "import sys; sys.exit('no')", ("failed", 1)),
        ("python", "import os; os._exit(5)", ("failed", 5)),
        ("python", "import os; os._exit(0)", ("ok", 0)),
        ("python", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ("failed", 139)),
        ("python", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ("killed", None)),
        ("python", "import os; os.execv('/bin/sh', ['sh', '-c', 'exit 9'])", ("failed", 9)),
        ("python", "def broken(:", ("failed", 1)),
        ("python", "await __import__('asyncio').sleep(0)", ("ok", 0)),
        ("shell", "true", ("ok", 0)),
        ("shell", "exit 4", ("failed", 4)),
        ("shell", "kill -TERM $$", ("failed", 143)),
        ("shell", "no-such-command", ("failed", 127)),
    ],
)
def test_a_scripts_end_is_reported_as_it_was(inside, language, code, expected):
    assert ended(inside.run(code, language).outcome) == expected


def test_a_traceback_shows_the_scripts_own_frames_and_no_others(inside):
    ran = inside.run("def f():\n    return 1 / 0\nf()")
    frames = [line.strip() for line in ran.stderr.decode().splitlines() if line.startswith(("Traceback", "  File"))]
    assert frames == [
        "Traceback (most recent call last):",
        'File "<script>", line 3, in <module>',
        'File "<script>", line 2, in f',
    ]


def test_output_of_children_keeps_its_place(inside):
    code = "import subprocess\nprint('a')\nsubprocess.run(['echo', 'b'])\nprint('c')"
    assert inside.run(code).stdout == b"a\nb\nc\n"


def test_the_last_expression_is_shown_as_in_a_notebook(inside):
    assert inside.run("6 * 7").stdout == b"42\n"


def test_rich_results_become_artifacts_and_their_text_stays_in_the_output(inside):
    ran = inside.run("from IPython.display import HTML, display\nprint('first')\ndisplay(HTML('<b>x</b>'))\nprint('last')")
    assert ran.text.splitlines() == ["first", "<IPython.core.display.HTML object>", "last"]
    assert [(one.mime, one.path.read_bytes()) for one in ran.outcome.artifacts] == [("text/html", b"<b>x</b>")]


BIG = (
    "from IPython.display import display\ndisplay({'image/png': b'\\x89PNG' + bytes(%d << 20), 'text/html': '<b>x</b>'}, raw=True)"
)


def test_a_result_too_large_to_be_sent_is_told_and_the_rest_of_it_kept(inside):
    ran = inside.run(BIG % 200)
    assert (ran.outcome.status, [one.mime for one in ran.outcome.artifacts]) == ("ok", ["text/html"])
    assert ran.stderr.decode() == (
        "sandboxmcp: image/png was not displayed: as a message it has 266 MiB, the most is 32; save it to a file instead\n"
    )


def test_a_large_result_is_whole_although_the_script_ends_right_after_it(inside):
    sizes = [one.size for _ in range(3) for one in inside.run(BIG % 16).outcome.artifacts if one.mime == "image/png"]
    assert sizes == [(16 << 20) + 4] * 3


def test_a_script_ends_as_an_interpreter_does(inside):
    code = (
        "import atexit, threading, time\n"
        "def late():\n    time.sleep(0.05)\n    print('thread')\n"
        "threading.Thread(target=late).start()\n"
        "atexit.register(lambda: print('atexit'))\n"
        "unclosed = open('unclosed.txt', 'w'); unclosed.write('kept'); None"
    )
    assert inside.run(code).stdout == b"thread\natexit\n"
    assert (inside.workspace / "unclosed.txt").read_text() == "kept"


FORKED = """
import atexit, os, sys
atexit.register(lambda: print("left", flush=True))
if child := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), open("notes").read())
else:
    held = open("notes", "w")
    held.write("whole")
    {end}
"""


@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("sys.exit(3)", 3), ("1 / 0", 1)])
def test_a_forked_child_that_reaches_the_scripts_end_ends_as_a_script_does(inside, end, code):
    ran = inside.run(FORKED.format(end=end))
    assert (ran.outcome.status, ran.text.split()) == ("ok", ["left", str(code), "whole", "left"])


def test_every_python_script_is_fresh(inside):
    inside.run("leftover = 1")
    assert "NameError" in inside.run("print(leftover)").stderr.decode()


def test_the_working_folder_is_the_workspace_at_its_own_path(inside):
    assert inside.run("pwd", "shell").text == f"{inside.workspace}\n"
    assert inside.run("import os; print(os.getcwd())").text == f"{inside.workspace}\n"


def test_files_land_on_disk_with_the_owner_of_the_workspace(inside):
    inside.run("echo made > made.txt", "shell")
    made = (inside.workspace / "made.txt").stat()
    assert (made.st_uid, made.st_gid) == (inside.workspace.stat().st_uid, inside.workspace.stat().st_gid)


def test_a_long_shell_script_runs_from_a_file(inside):
    assert inside.run("x=works\n#" + "y" * 300_000 + "\necho $x", "shell").stdout == b"works\n"


def test_a_long_python_script_runs(inside):
    assert inside.run("x = '" + "y" * 10_000_000 + "'\nprint(len(x))").stdout == b"10000000\n"


def test_input_is_empty(inside):
    assert inside.run("cat; echo done", "shell").stdout == b"done\n"


def test_a_timeout_kills_the_whole_tree_and_keeps_what_was_printed(inside):
    ran = inside.run("echo before; (setsid sleep 7654 &); sleep 7654", "shell", timeout_s=0.5)
    assert (ended(ran.outcome), ran.stdout) == (("timeout", None), b"before\n")
    assert "raise timeout_s" in said(ran.outcome.reasons)
    assert running("sleep 7654") == []


IGNORE_ALL_SIGNALS = """
import signal
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    pass
"""


def test_a_timeout_ends_a_script_that_ignores_every_signal(inside):
    assert inside.run(IGNORE_ALL_SIGNALS, timeout_s=0.7).outcome.status == "timeout"


def test_background_children_neither_delay_the_end_nor_outlive_it(inside):
    ran = inside.run("sleep 8765 & (setsid sleep 8765 &) ; echo started", "shell")
    assert (ran.outcome.status, ran.stdout) == ("ok", b"started\n")
    assert running("sleep 8765") == []


def test_a_daemon_of_a_python_script_is_swept(inside):
    code = "import subprocess; subprocess.Popen(['sleep', '9876'], start_new_session=True); print('left')"
    assert inside.run(code).stdout == b"left\n"
    assert running("sleep 9876") == []


def test_cancellation_kills_the_item_and_passes_on_what_was_captured(inside):
    partial: list[Outcome] = []
    seen = inside.workspace / "begun"
    future = inside.start(inside.run_here("echo half; touch begun; sleep 6543", "shell", on_partial=partial.append))
    inside.wait(appears(seen))
    future.cancel()
    with contextlib.suppress(concurrent.futures.CancelledError):
        future.result(10)
    inside.wait(until(lambda: bool(partial)))
    assert (partial[0].status, partial[0].stdout.path.read_bytes()) == ("cancelled", b"half\n")
    assert running("sleep 6543") == []


def test_scripts_run_side_by_side(inside):
    async def both() -> list[bytes]:
        first = (
            "import pathlib, time\npathlib.Path('a').touch()\nwhile not pathlib.Path('b').exists(): time.sleep(0.01)\nprint('met')"
        )
        second = "touch b; until [ -e a ]; do sleep 0.01; done; echo met"
        return [ran.stdout for ran in await asyncio.gather(inside.run_here(first), inside.run_here(second, "shell"))]

    assert inside.wait(both()) == [b"met\n", b"met\n"]


def test_a_script_in_an_unknown_language_is_skipped_and_the_known_ones_are_named(inside):
    outcome = inside.run("x", "cobol").outcome
    assert (outcome.status, "Known: csharp, elixir, go, javascript" in said(outcome.reasons)) == ("skipped", True)


def test_a_nul_byte_in_a_shell_script_is_a_clear_error(inside):
    with pytest.raises(UsageError, match="NUL byte"):
        inside.run("echo \0", "shell")


def test_a_sandbox_that_a_script_ended_is_replaced(make_inside):
    own = make_inside()
    ran = own.run("kill -KILL $PPID", "shell")
    assert ended(ran.outcome) == ("killed", None)
    assert own.run("echo again", "shell").stdout == b"again\n"


def test_close_leaves_no_process(make_inside):
    own = make_inside()
    own.run("print(1)")
    init = own.runner._session._launcher.process.init_pid
    outer = own.runner._session._launcher.process._popen.pid
    assert Path(f"/proc/{init}").exists() and Path(f"/proc/{outer}").exists()
    own.wait(own.runner.close())
    assert not Path(f"/proc/{init}").exists() and not Path(f"/proc/{outer}").exists()


def running(command: str) -> list[int]:
    """Host pids whose command line says this, zombies aside."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").strip() == command.encode():
                found.append(int(folder.name))
    return found


async def appears(path: Path) -> None:
    await until(path.exists)


async def until(condition) -> None:
    """Wait for a condition, at most ten seconds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_workspace_that_vanishes_fails_its_scripts_and_then_is_a_clear_error(make_inside):
    own = make_inside()
    own.run("true", "shell")
    shutil.rmtree(own.workspace)
    with pytest.raises(UsageError, match=r"the workspace .* cannot be used: No such file or directory"):
        own.run("true", "shell")
    own.workspace.mkdir()
    assert own.run("ls -A", "shell").outcome.status == "ok"


def test_a_workspace_that_vanishes_under_a_script_does_not_hang_it(make_inside):
    own = make_inside()
    future = own.start(own.run_here("touch begun; until ! [ -e begun ]; do sleep 0.01; done; ls; pwd; echo end", "shell"))
    own.wait(appears(own.workspace / "begun"))
    shutil.rmtree(own.workspace)
    assert future.result(20).stdout.endswith(b"end\n")


def test_five_hundred_scripts_asked_for_at_once_all_run(inside):
    async def all_of_them() -> list[bytes]:
        return [ran.stdout for ran in await asyncio.gather(*(inside.run_here(f"echo {n}", "shell", 60) for n in range(500)))]

    assert inside.wait(all_of_them()) == [b"%d\n" % n for n in range(500)]


def test_time_spent_waiting_for_a_turn_does_not_count(inside):
    async def crowd() -> set[str]:
        waiting = [inside.run_here("sleep 0.3", "shell", 2) for _ in range(64)]
        return {ran.outcome.status for ran in await asyncio.gather(*waiting)}

    assert inside.wait(crowd()) == {"ok"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_loses_output_but_says_so(make_inside, tmp_path):
    own = make_inside()
    captures = own.runner._captures
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", captures], check=True)
    try:
        ran = own.run("head -c 5000000 /dev/zero", "shell")
        own.wait(own.runner.close())
    finally:
        subprocess.run(["umount", "-l", captures], check=True)
    assert (ran.outcome.status, ran.outcome.exit_code, ran.outcome.stdout.total) == ("failed", 0, 5_000_000)
    assert 0 < ran.outcome.stdout.kept <= 1 << 20
    lost = 5_000_000 - ran.outcome.stdout.kept
    assert (said(ran.outcome.reasons), ran.outcome.stdout.lost) == (
        f"{lost:,} B of output were lost: No space left on device",
        lost,
    )


def test_preloaded_modules_are_there_and_every_fork_draws_its_own_numbers(make_inside):
    own = make_inside(preload=["numpy", "no_such_module"])
    code = "import sys\nready = 'numpy' in sys.modules\nimport numpy\nprint(ready, numpy.random.rand())"
    first, second = own.run(code).text.split(), own.run(code).text.split()
    assert (first[0], second[0]) == ("True", "True")
    assert first[1] != second[1]


def test_a_pipe_that_ends_early_ends_its_writer_as_in_any_shell(inside):
    ran = inside.run("set -o pipefail; yes | head -1; echo $?", "shell")
    assert (ran.text.split(), ran.stderr) == (["y", "141"], b"")


def test_a_script_that_asks_for_input_is_told_that_there_is_none(inside):
    ran = inside.run("name = input('name? ')")
    assert (ran.text, ran.stderr.decode().splitlines()[-1]) == (
        "name? ",
        "EOFError: EOF when reading a line: scripts have no standard input",
    )


def test_tracebacks_hold_no_frame_of_ours(inside):
    lines = inside.run("open('missing')").stderr.decode().splitlines()
    assert [line for line in lines if line.startswith("  File")] == ['  File "<script>", line 1, in <module>']
    asked = inside.run("input()").stderr.decode().splitlines()
    assert [line for line in asked if line.startswith("  File")] == ['  File "<script>", line 1, in <module>']


def test_standard_streams_can_be_opened_by_their_names(inside):
    ran = inside.run("echo out > /dev/stdout; echo err > /dev/stderr", "shell")
    assert (ran.stdout, ran.stderr) == (b"out\n", b"err\n")


def test_asyncio_run_works_as_in_any_script(inside):
    code = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 7\nprint(asyncio.run(main()))"
    assert inside.run(code).stdout == b"7\n"


def test_a_script_that_closes_its_output_still_ends(inside):
    ran = inside.run("import sys; print('before'); sys.stdout.close()", timeout_s=10)
    assert (ran.outcome.status, ran.stdout) == ("ok", b"before\n")
