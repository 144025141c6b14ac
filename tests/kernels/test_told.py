"""What became of a script, a kernel or a job, in the words in which it is told: each shown on real parts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.model import Outcome, Script
from sandboxmcp.core.settings import load_settings
from sandboxmcp.render.reasons import said

GONE = "; the kernel k ended, its variables are gone"
DEAF = "import time\nopen('begun', 'w')\nwhile True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass"
BUSY = "import time\nopen('begun', 'w')\ntime.sleep(60)"


async def appears(path: Path) -> None:
    async with asyncio.timeout(20):
        while not path.exists():
            await asyncio.sleep(0.01)


async def stop(session: Any, inside: Any) -> None:
    await session.named.stop("k", "ctx_kernels stop")


async def restart(session: Any, inside: Any) -> None:
    await session.named.restart("k", "process 7 of the same user (restart)")


async def end_of_server(session: Any, inside: Any) -> None:
    await inside.runner.close()


async def interrupt(session: Any, inside: Any) -> None:
    await session.named.interrupt("k", "ctx_kernels interrupt")


async def neighbour(session: Any, inside: Any) -> None:
    kill = "kill -9 $(ps -e -o pid=,args= | awk '/launcher.py/ && !/awk/ && !/bwrap/ && $1 > 2 {print $1}' | grep -v $$)"
    await session.run(Script("", "shell", kill, 10))


async def launcher(session: Any, inside: Any) -> None:
    await session.run(Script("", "shell", "kill -9 2; sleep 9", 10))


NAMED: dict[str, tuple[str, Callable[..., Awaitable[None]], tuple[str, str]]] = {
    "stopped": (BUSY, stop, ("killed", f"killed: its kernel was stopped by ctx_kernels stop{GONE}")),
    "restarted": (BUSY, restart, ("killed", f"killed: its kernel was restarted by process 7 of the same user (restart){GONE}")),
    "the server's end": (BUSY, end_of_server, ("killed", f"killed: the server was ended{GONE}")),
    "interrupted": (BUSY, interrupt, ("failed", "interrupted by ctx_kernels interrupt")),
    "killed by a neighbour": (
        BUSY,
        neighbour,
        ("killed", f"killed by SIGKILL: by itself, by another script of this sandbox, or for memory{GONE}"),
    ),
    "the launcher killed": (BUSY, launcher, ("killed", f"the sandbox ended under it; a script may have killed its launcher{GONE}")),
}


@pytest.mark.parametrize("way", NAMED)
def test_how_a_call_in_a_named_kernel_ended_is_told(make_inside, way):
    code, act, told = NAMED[way]
    inside = make_inside()

    async def both() -> Outcome:
        async with inside.runner.session() as session:
            running = asyncio.ensure_future(session.run_in("k", Script("", "python", code, 30)))
            await appears(inside.workspace / "begun")
            await act(session, inside)
            return await running

    outcome = inside.wait(both())
    assert (outcome.status, said(outcome.reasons)) == told


LIMITED = {
    "timeout": (BUSY, {}, 1.0, ("timeout", "timed out after 1 s; it was interrupted, the variables of k are kept")),
    "timeout of the deaf": (DEAF, {}, 1.0, ("timeout", f"timed out after 1 s{GONE}")),
    "processor time": ("while True: pass", {"limits__cpu": 1}, 20.0, ("failed", f"ended by SIGXCPU{GONE}")),
    "processor time of the deaf": (
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        {"limits__cpu": 1},
        20.0,
        ("killed", f"killed: more than 1 s of processor time; raise limits.cpu{GONE}"),
    ),
    "its own hand": (
        "import os\nos.kill(os.getpid(), 9)",
        {},
        20.0,
        ("killed", f"killed by SIGKILL: by itself, by another script of this sandbox, or for memory{GONE}"),
    ),
    "its own end": ("import os\nos._exit(0)", {}, 20.0, ("ok", GONE.removeprefix("; "))),
}


@pytest.mark.parametrize("way", LIMITED)
def test_what_a_named_kernel_met_is_told(make_inside, way):
    code, flags, timeout_s, told = LIMITED[way]
    inside = make_inside(**flags)

    async def run() -> Outcome:
        async with inside.runner.session() as session:
            return await session.run_in("k", Script("", "python", code, timeout_s))

    outcome = inside.wait(run())
    assert (outcome.status, said(outcome.reasons)) == told


FRESH = {
    "the server's end": ("shell", "touch begun; sleep 60", end_of_server, "killed: the server was ended"),
    "the launcher killed": (
        "shell",
        "touch begun; sleep 60",
        launcher,
        "the sandbox ended under it; a script may have killed its launcher",
    ),
    "a python one, the server's end": ("python", BUSY, end_of_server, "killed: the server was ended"),
}


@pytest.mark.parametrize("way", FRESH)
def test_how_a_fresh_script_ended_is_told(make_inside, way):
    language, code, act, told = FRESH[way]
    inside = make_inside()

    async def both() -> Outcome:
        async with inside.runner.session() as session:
            running = asyncio.ensure_future(session.run(Script("", language, code, 30)))
            await appears(inside.workspace / "begun")
            await act(session, inside)
            return await running

    outcome = inside.wait(both())
    assert (outcome.status, said(outcome.reasons)) == ("killed", told)


def test_a_script_that_uses_up_its_processor_time_in_spite_of_the_signal_is_told_which_limit_it_was(make_inside):
    ran = make_inside(limits__cpu=1).run("trap '' XCPU; while :; do :; done", "shell")
    assert (ran.outcome.status, said(ran.outcome.reasons)) == (
        "killed",
        "killed: more than 1 s of processor time; raise limits.cpu",
    )


@pytest.mark.parametrize(("language", "code"), [("shell", "trap '' INT; touch begun; sleep 60; sleep 60"), ("python", DEAF)])
def test_a_script_that_does_not_heed_an_interrupt_is_ended_and_says_so(make_inside, language, code):
    inside = make_inside()

    async def run() -> Outcome:
        begun: list[Any] = []
        async with inside.runner.session() as session:
            running = asyncio.ensure_future(session.run(Script("", language, code, 30), on_begin=begun.append))
            await appears(inside.workspace / "begun")
            begun[0].interrupt()
            return await running

    outcome = inside.wait(run())
    assert (outcome.status, said(outcome.reasons)) == ("killed", "killed: it did not heed an interrupt for 3 s")


INTERRUPTED = {
    "idle": ("x = 1", True, "idle"),
    "busy": (BUSY, False, "interrupted"),
    "deaf": (DEAF, False, "runs on"),
    "ends at it": (
        "import os, signal, time\nsignal.signal(signal.SIGINT, lambda *_: os._exit(3))\nopen('begun', 'w')\ntime.sleep(60)",
        False,
        "ended",
    ),
    "a daemon in the way": (
        "import subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '60'])\nopen('begun', 'w')\ntime.sleep(60)",
        False,
        "interrupted",
    ),
}


@pytest.mark.parametrize("way", INTERRUPTED)
def test_what_an_interrupt_came_to_is_looked_at_and_not_supposed(make_inside, way):
    code, ends, told = INTERRUPTED[way]
    inside = make_inside()

    async def both() -> str:
        async with inside.runner.session() as session:
            running = asyncio.ensure_future(session.run_in("k", Script("", "python", code, 30)))
            await (running if ends else appears(inside.workspace / "begun"))
            state = await session.named.interrupt("k", "a test")
            if state == "runs on":
                assert not running.done() and session.named.busy("k")
                await session.named.restart("k", "a test")
            await running
            return state

    assert inside.wait(both()) == told


def test_a_kernel_that_ended_while_nothing_ran_in_it_is_told_and_not_listed(make_inside):
    inside = make_inside()
    dies = "import os, threading\nthreading.Timer(0.1, lambda: os._exit(9)).start()\nkept = 1"

    async def listed() -> tuple[list[str], list[str], str]:
        async with inside.runner.session() as session:
            await session.run_in("k", Script("", "python", dies, 10))
            async with asyncio.timeout(20):
                while session.named.alive("k"):
                    await asyncio.sleep(0.01)
            names = [state.name for state in await session.states()]
            notices = inside.runner.take_notices()
            after = await session.run_in("k", Script("", "python", "print('kept' in globals())", 10))
            return names, notices, after.stdout.path.read_text()

    said = "the kernel k ended while none of its calls ran; its variables are gone (it exited by itself)"
    assert inside.wait(listed()) == ([], [said], "False\n")


@pytest.fixture
def full(make_inside) -> Any:
    """A runner whose captures lie on a disk of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    inside = make_inside()
    captures = inside.runner._captures
    inside.run("true", "shell")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", captures], check=True)
    try:
        yield inside
        inside.wait(inside.runner.close())
    finally:
        subprocess.run(["umount", "-l", captures], check=True)


def test_what_a_named_kernel_prints_on_a_full_disk_is_told_as_lost_in_its_own_call_only(full):
    async def calls() -> list[Outcome]:
        async with full.runner.session() as session:
            codes = ["print('x' * 3_000_000)", "print('y')", "pass"]
            return [await session.run_in("k", Script("", "python", code, 10)) for code in codes]

    first, second, third = full.wait(calls())
    assert (first.status, first.exit_code, first.stdout.total) == ("failed", 0, 3_000_001)
    assert (second.status, third.status) == ("failed", "ok")
    assert said(first.reasons) == f"{first.stdout.lost:,} B of output were lost: No space left on device"
    assert (said(second.reasons), said(third.reasons)) == ("2 B of output were lost: No space left on device", "")


def test_what_is_displayed_on_a_full_disk_is_told_as_lost(full):
    full.run("head -c 3000000 /dev/zero", "shell")
    code = "from IPython.display import HTML, display\ndisplay(HTML('<b>' + 'x' * 100_000))\nprint('on')"
    ran = full.run(code)
    assert (ran.outcome.status, ran.outcome.exit_code) == ("failed", 0)
    assert "1 displayed results were lost: No space left on device" in said(ran.outcome.reasons)


SILENT = """perl -e 'open F, ">", "FOLDER/big"; print F "x" x 33000000; close F'; echo on"""
FULL_INSIDE = {
    "a program that does not look": (SILENT.replace("FOLDER", "/tmp"), "/tmp"),
    "shared memory": (SILENT.replace("FOLDER", "/dev/shm"), "/dev/shm"),
    "a shell that goes on": ("head -c 33000000 /dev/zero > /tmp/big; echo on", "/tmp"),
}


@pytest.mark.parametrize("way", FULL_INSIDE)
def test_a_script_that_filled_a_folder_inside_and_went_on_is_not_told_as_ok(make_inside, way):
    inside = make_inside(limits__tmpfs="16MiB")
    code, folder = FULL_INSIDE[way]
    ran, after = inside.run(code, "shell"), inside.run("echo fine", "shell")
    named = inside.wait(in_kernel(inside, "import sys; print('No space left on device', file=sys.stderr)"))
    told = f"what it wrote may not be whole, since {folder} is full: remove files there, or raise limits.tmpfs"
    assert (ran.outcome.status, ran.outcome.exit_code, said(ran.outcome.reasons)) == ("failed", 0, told)
    assert (after.outcome.status, said(after.outcome.reasons)) == ("ok", "")
    assert (named.status, said(named.reasons)) == ("failed", told)


async def in_kernel(inside: Any, code: str) -> Outcome:
    async with inside.runner.session() as session:
        outcome: Outcome = await session.run_in("k", Script("", "python", code, 10))
        return outcome


def test_a_script_that_deletes_what_was_not_whole_has_lost_nothing(make_inside):
    inside = make_inside(limits__tmpfs="16MiB")
    ran = inside.run("head -c 33000000 /dev/zero > /tmp/big || rm /tmp/big", "shell")
    assert (ran.outcome.status, said(ran.outcome.reasons)) == ("ok", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_script_that_filled_the_disk_of_the_project_is_not_told_as_ok(make_inside):
    inside = make_inside()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0777", "tmpfs", inside.workspace], check=True)
    try:
        ran = inside.run(SILENT.replace("FOLDER", "."), "shell")
        inside.wait(inside.runner.close())
    finally:
        subprocess.run(["umount", "-l", inside.workspace], check=True)
    told = "what it wrote may not be whole, since the disk of the project is full: make room on it"
    assert (ran.outcome.status, ran.outcome.exit_code, said(ran.outcome.reasons)) == ("failed", 0, told)


def test_where_no_file_can_be_made_output_is_counted_and_told_as_lost(full):
    subprocess.run(["mount", "-o", "remount,nr_inodes=3", full.runner._captures], check=True)

    async def runs() -> list[Outcome]:
        async with full.runner.session() as session:
            return [await session.run(Script("", "shell", "echo a; echo b >&2; exit 3", 10)) for _ in range(3)]

    last = full.wait(runs())[-1]
    assert (last.status, said(last.reasons)) == ("failed", "4 B of output were lost: No space left on device")


async def finished(session: Any, handle: str) -> None:
    async with asyncio.timeout(20):
        while session.jobs[handle].ended is None:
            await asyncio.sleep(0.01)


JOBS = {
    "done": ("echo a", "wait", "ok", ""),
    "failed": ("exit 3", "wait", "failed", ""),
    "cancelled": ("touch begun; sleep 60", "cancel", "cancelled", ""),
    "the server's end": ("touch begun; sleep 60", "close", "cancelled", "its server ended"),
    "cancelled when it had ended": ("echo a", "late cancel", "ok", ""),
}


@pytest.mark.anyio
@pytest.mark.parametrize("way", JOBS)
async def test_how_a_background_job_ended_is_listed_here_and_by_a_later_server(sandbox, tmp_path, way):
    from sandboxmcp.session import Session
    from sandboxmcp.tools.execution import execute
    from sandboxmcp.tools.jobs import jobs

    code, act, state, note = JOBS[way]
    (tmp_path / "workspace").mkdir()
    flags = {"workspace": str(tmp_path / "workspace"), "data_dir": str(tmp_path / "data")}
    settings = load_settings(flags=flags, environ={"HOME": str(tmp_path)})
    session, later = Session(settings), Session(settings)
    try:
        job = (await execute(session, code, language="shell", background=True)).structured["job"]
        if act in ("wait", "late cancel"):
            await finished(session, job)
        else:
            await appears(tmp_path / "workspace" / "begun")
        if "cancel" in act:
            told = await jobs(session, action="cancel", job=job, budget_tokens=500)
            assert told.structured["state"] == state
    finally:
        await session.close()
    listed = await jobs(later, action="list", budget_tokens=500)
    assert [(one["state"], one["note"]) for one in listed.structured["jobs"]] == [(state, note)]
    await later.close()


def test_which_limit_a_signal_speaks_of_is_told_beside_what_was_lost(full):
    """The hint was lost once: it was read back from the reason, to which the loss had been added."""
    ran = full.run("head -c 3000000 /dev/zero; kill -XFSZ $$", "shell")
    codes = [reason.code for reason in ran.outcome.reasons]
    assert (ran.outcome.status, codes) == ("failed", ["signal", "output_lost", "probable_limit"])
    assert ran.outcome.reasons[-1].facts["limit"] == "limits.file"
