"""Processes that will not end, that outlive their item, or that turn on others (cases 16, 27-31, 35, 36)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jupyter_client.manager import AsyncKernelManager

from sandboxmcp.kernels.jupyter.kernelspecs import SandboxKernelSpecManager


def alive(command: str) -> list[int]:
    """Host pids whose command line is this one; zombies have none."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").strip() == command.encode():
                found.append(int(folder.name))
    return found


def wait_for(condition, seconds: float = 20.0):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        os.sched_yield()
    return value


@pytest.fixture
def mark() -> str:
    """Seconds for a `sleep` that no other test uses, so that it can be found among all processes of the machine."""
    return str(secrets.randbelow(10**8) + 10**6)


STUBBORN = """
import os, signal
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
print("on", flush=True)
while True: pass
"""


def test_a_script_that_ignores_every_signal_ends_in_time(inside):
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as outside:
        outside.stdout.readline()
        outside.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            outside.wait(0.3)
        outside.kill()
    ran = inside.run(STUBBORN, timeout_s=0.7)
    assert (ran.outcome.status, ran.stdout) == ("timeout", b"on\n")


DAEMON = "(setsid sh -c 'until [ -e go ]; do sleep 0.01; done; echo late' &); echo first"


def test_a_double_forked_daemon_does_not_speak_into_the_next_item(inside):
    go = inside.workspace / "go"
    with subprocess.Popen(["/bin/bash", "-c", DAEMON], cwd=inside.workspace, stdout=subprocess.PIPE) as outside:
        first = outside.stdout.readline()
        go.touch()
        assert (first, outside.stdout.read()) == (b"first\n", b"late\n")
    go.unlink()
    ran = inside.run(DAEMON, "shell")
    go.touch()
    assert (ran.stdout, inside.run("sleep 0.1; echo next", "shell").stdout) == (b"first\n", b"next\n")
    go.unlink()


def test_a_child_that_keeps_stdout_open_does_not_keep_the_item(inside, mark):
    code = f"sleep {mark} & echo started"
    with subprocess.Popen(["/bin/bash", "-c", code], stdout=subprocess.PIPE, start_new_session=True) as outside:
        assert outside.wait(10) == 0
        with pytest.raises(subprocess.TimeoutExpired):
            outside.communicate(timeout=0.3)
        os.killpg(outside.pid, 9)
    ran = inside.run(code, "shell", timeout_s=15)
    assert (ran.outcome.status, ran.stdout, alive(f"sleep {mark}")) == ("ok", b"started\n", [])


def test_a_script_that_kills_everything_it_can_reach_ends_its_own_sandbox_only(make_inside, mark):
    own = make_inside()
    with subprocess.Popen(["sleep", mark]) as bystander:
        try:
            ran = own.run("kill -KILL -1; sleep 30", "shell", timeout_s=15)
            assert (ran.outcome.status, bystander.poll(), own.run("print('again')").stdout) == ("killed", None, b"again\n")
        finally:
            bystander.kill()


def test_a_signal_to_all_reaches_the_host_from_outside_and_the_sandbox_alone_from_inside(attempt):
    """Signal 0 asks without harming: how many processes a `kill` by number could reach."""
    code = (
        "import os\nreached = 0\nfor pid in range(1, 70000):\n    try: os.kill(pid, 0); reached += 1\n"
        "    except OSError: pass\nprint(os.path.exists(f'/proc/{HOST}'))\nprint(reached)"
    )
    both = attempt(code.replace("{HOST}", str(os.getpid())))
    assert both.outside.stdout.splitlines()[0] == "True"
    assert (both.inside.text.splitlines()[0] == "False" or os.getpid() < 60, int(both.inside.text.split()[1]) < 20) == (True, True)


KILL_LAUNCHER = "kill -{signal} $(ps -e -o pid=,args= | awk '/launcher.py/ && !/awk/ && !/bwrap/ {{print $1}}'); sleep 30"


@pytest.mark.parametrize("signal", ["KILL", "STOP", "TERM", "SEGV"])
def test_a_launcher_that_was_attacked_costs_its_own_sandbox_only(make_inside, signal, mark):
    own, other = make_inside(), make_inside()
    beside = other.start(other.run_here("until [ -e go ]; do sleep 0.01; done; echo untouched", "shell"))
    ran = own.run(KILL_LAUNCHER.format(signal=signal), "shell", timeout_s=2)
    assert ran.outcome.status in ("killed", "timeout")
    assert own.run("print('again')").stdout == b"again\n"
    (other.workspace / "go").touch()
    assert beside.result(20).stdout == b"untouched\n"


WRITE_MEMORY = """
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline") as line: words = line.read().split("\\0")
        open(f"/proc/{pid}/mem", "r+b").close()
    except OSError: continue
    print(pid)
"""


LOOK_AT_LAUNCHER = """
for name in ("mem", "environ", "maps", "fd/0", "root/etc", "cwd"):
    try:
        open(f"/proc/2/{name}")
    except OSError as error:
        print(type(error).__name__)
"""


def test_the_launcher_can_neither_be_read_nor_written_nor_inspected(inside):
    """Its number inside is 2: it is the only child of bubblewrap's first process."""
    assert inside.run(LOOK_AT_LAUNCHER).text == "PermissionError\n" * 6
    assert "2" not in inside.run(WRITE_MEMORY).text.splitlines()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ("failed", 139)),
        ("import ctypes; ctypes.string_at(0)", ("failed", 139)),
        ("import os; os._exit(7)", ("failed", 7)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", ("killed", None)),
        ("import os; os.execv('/bin/sh', ['sh', '-c', 'exit 9'])", ("failed", 9)),
        ("import os; os.abort()", ("failed", 134)),
    ],
)
def test_a_kernel_that_dies_under_its_script_is_an_outcome(attempt, code, expected):
    both = attempt(code)
    outcome = both.inside.outcome
    assert both.outside.returncode != 0
    assert (outcome.status, outcome.exit_code) == expected


SERVER = """
import asyncio, sys, tempfile
from pathlib import Path
from sandboxmcp.core.model import Script
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.runner import Runner

async def main():
    runner = Runner(load_settings(flags={"workspace": sys.argv[1]}), Path(tempfile.mkdtemp(dir=sys.argv[2])))
    async with runner.session() as session:
        python = Script("python", "python", "import signal, subprocess\\nsignal.signal(15, signal.SIG_IGN)\\n" + sys.argv[3])
        stubborn = "trap '' HUP INT TERM; (setsid sleep MARK &) ; touch running; sleep MARK"
        shell = Script("shell", "shell", stubborn.replace("MARK", sys.argv[4]))
        await asyncio.gather(session.run(python), session.run(shell))

asyncio.run(main())
"""


def test_a_killed_server_leaves_nothing_a_second_later(sandbox, tmp_path, mark):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    python = f"subprocess.Popen(['sleep', '{mark}'], start_new_session=True)\nopen('running2', 'w')\nwhile True: pass"
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(workspace), str(tmp_path), python, mark])
    wait_for(lambda: (workspace / "running").exists() and (workspace / "running2").exists() and len(alive(f"sleep {mark}")) == 3)
    server.kill()
    server.wait()
    wait_for(lambda: alive(f"sleep {mark}") == [], seconds=1.0)


BACKTRACKING = "import re\nprint('on', flush=True)\nopen('on', 'w').close()\nre.match('(a+)+$', 'a' * 60 + 'b')"


def test_c_code_that_never_lets_go_ends_in_time(inside):
    ran = inside.run(BACKTRACKING, timeout_s=0.7)
    assert (ran.outcome.status, ran.stdout) == ("timeout", b"on\n")


INTERRUPTED = {
    "C code that holds the interpreter": BACKTRACKING,
    "a child that ignores the signal": "import subprocess\nsubprocess.run(['sh', '-c', 'trap \"\" INT; touch on; exec sleep 100'])",
}


@pytest.mark.parametrize("code", INTERRUPTED.values(), ids=INTERRUPTED)
def test_an_interrupt_gets_through(sandbox, tmp_path, monkeypatch, code):
    monkeypatch.setenv("SANDBOXMCP_WORKSPACE", str(tmp_path))

    async def interrupted() -> str:
        manager = AsyncKernelManager(kernel_name="sandboxmcp-python", kernel_spec_manager=SandboxKernelSpecManager())
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=30)
            reply = asyncio.ensure_future(client.execute(code, reply=True, timeout=30))
            async with asyncio.timeout(20):
                while not (tmp_path / "on").exists():
                    await asyncio.sleep(0.01)
            await manager.interrupt_kernel()
            return (await reply)["content"]["ename"]
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)

    assert asyncio.run(interrupted()) == "KeyboardInterrupt"


SEIZE = """
import os
try:
    memory = os.open("/proc/1/mem", os.O_RDWR)
    start = int(open("/proc/1/maps").readline().split("-")[0], 16)
    print(os.pread(memory, 4, start)[1:], os.pwrite(memory, os.pread(memory, 4, start), start))
except OSError as error:
    print(type(error).__name__)
print(os.listdir("/proc/1"))
"""
"""Whoever writes the memory of the first process makes it outlive the server: it is what ends with it."""


def test_the_first_process_of_the_sandbox_cannot_be_seized(inside, cannot_show):
    plain = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--uid", "1000"]
    outside = subprocess.run([*plain, sys.executable, "-c", SEIZE], capture_output=True, text=True, timeout=20, check=False)
    if not outside.stdout.startswith("b'ELF' 4"):
        cannot_show("/proc/1/mem", "a sandbox without our arguments does not start, or keeps it too")
    assert inside.run(SEIZE).text == "FileNotFoundError\n[]\n"
