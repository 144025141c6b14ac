"""The sandbox as a process of the host: it dies with the server, and is not disturbed by threads that end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.launcher import Launcher
from sandboxmcp.sandbox.process import SandboxProcess

SERVER = """
import asyncio, sys, tempfile
from pathlib import Path
from sandboxmcp.core.model import Script
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.runner import Runner

async def main():
    runner = Runner(load_settings(flags={"workspace": sys.argv[1]}), Path(tempfile.mkdtemp(dir=sys.argv[2])))
    async with runner.session() as session:
        print(session._launcher.process.init_pid, flush=True)
        await session.run(Script("endless", "shell", "trap '' HUP INT TERM; (setsid sleep 5432 &); touch running; sleep 5432"))

asyncio.run(main())
"""


def test_nothing_is_left_a_second_after_the_server_was_killed(sandbox, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(workspace), str(tmp_path)], stdout=subprocess.PIPE)
    init = int(server.stdout.readline())
    inside_pids = wait_for(lambda: (workspace / "running").exists() and namespace_of(init))
    assert len(inside_pids) >= 4
    server.kill()
    server.wait()
    assert wait_for(lambda: not any(alive(pid) for pid in inside_pids), seconds=1.0)


def namespace_of(init: int) -> list[int]:
    """Host pids of every process in the pid namespace of `init`."""
    space = os.readlink(f"/proc/{init}/ns/pid")
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(folder / "ns/pid") == space:
                found.append(int(folder.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds: float = 20.0):
    """What the condition gives once it is true; a failure when it never is."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        os.sched_yield()
    return value


def test_the_end_of_the_calling_thread_does_not_end_the_sandbox(inside):
    """Every run of this fixture comes from another loop thread than the one that spawned bubblewrap."""
    inside.run("print(1)")
    first = inside.runner._session._launcher.process.init_pid
    inside.run("print(2)")
    assert inside.runner._session._launcher.process.init_pid == first


def test_killing_a_sandbox_ends_everything_inside(inside):
    async def start() -> Launcher:
        return await Launcher.start(load_settings(flags={"workspace": str(inside.workspace)}))

    launcher = inside.wait(start())
    process: SandboxProcess = launcher.process
    pids = namespace_of(process.init_pid)
    inside.wait(launcher.close())
    assert (launcher.alive, [pid for pid in pids if alive(pid)]) == (False, [])


def test_the_sandbox_process_is_not_the_users_or_roots_uid_when_root_starts_it(inside):
    inside.run("print(1)")
    init = inside.runner._session._launcher.process.init_pid
    status = dict(line.split(":", 1) for line in Path(f"/proc/{init}/status").read_text().splitlines())
    uid = int(status["Uid"].split()[0])
    assert uid == os.getuid() if os.getuid() else uid >= 1_900_000_000


def test_signals_reach_the_items_process_group(inside):
    async def interrupted() -> int | None:
        async with inside.runner.session() as session:
            with open(os.devnull, "wb") as null:
                streams = (null.fileno(), null.fileno())
                code = b"trap 'exit 42' INT; touch trapped; while :; do sleep 0.01; done"
                item = await session._launcher.fork_script({"argv": ["/bin/sh", "-c", "{code}"]}, code, streams)
            while not (inside.workspace / "trapped").exists():
                await __import__("asyncio").sleep(0.01)
            item.signal(signal.SIGINT)
            return await item.ended

    assert inside.wait(interrupted()) == 42
