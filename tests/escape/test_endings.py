"""A script that was ended does nothing more: neither because a child of it went first, nor after its end was told."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sandboxmcp.core.settings import load_settings
from sandboxmcp.render.reasons import said

SHELL = {
    "list": "sleep 30; touch t",
    "or": "sleep 30 || touch t",
    "pipe": "sleep 30 | cat; touch t",
    "end of a pipe": "sleep 30 | (cat; touch t)",
    "subshell": "(sleep 30; touch t); touch t",
    "background": "(sleep 30; touch t) & wait; touch t",
    "substitution": "x=$(sleep 30; touch t); touch t",
    "process substitution": "cat <(sleep 30; touch t); touch t",
    "until": "until ! sleep 30; do :; done; touch t",
    "loop of short ones": "while sleep 0.02; do date >> log; done; touch t",
    "loop of new files": "while :; do n=$((n+1)); /bin/true || touch t; : > f$((n % 50)); done; touch t",
    "session of its own": "setsid sh -c 'sleep 30; touch t' & wait; touch t",
    "daemon": "(setsid sh -c 'while sleep 0.02; do date >> log; done; touch t' &); sleep 30; touch t",
    "job control": "set -m; (sleep 30; touch t) & wait; touch t",
    "timeout": "timeout 40 sleep 30; touch t",
    "xargs": "echo 30 | xargs sleep; touch t",
    "trap": "trap 'touch t' EXIT HUP INT TERM CHLD; sleep 30 & wait; touch t",
    "fifo": "mkfifo p; (cat p; touch t) & sleep 30 > p; touch t",
    "deep": 'sh -c \'sh -c "sh -c \\"sleep 30; touch t\\"; touch t"; touch t\'; touch t',
    "lock": "(flock 9; sleep 30) 9> l & sleep 0.1; flock l touch t",
}
PYTHON = {
    "run": "subprocess.run(['sleep', '30'])\nopen('t', 'w')",
    "check": "try: subprocess.run(['sleep', '30'], check=True)\nexcept BaseException: open('t', 'w')\nfinally: open('t', 'w')",
    "system": "os.system('sleep 30; touch t')\nopen('t', 'w')",
    "popen": "os.popen('sleep 30; touch t').read()\nopen('t', 'w')",
    "spawn": "pid = os.posix_spawnp('sleep', ['sleep', '30'], os.environ)\nos.waitpid(pid, 0)\nopen('t', 'w')",
    "spawning on and on": "while not os.waitpid(os.posix_spawnp('true', ['true'], os.environ), 0)[1]: pass\nopen('t', 'w')",
    "fork": "pid = os.fork()\nif not pid: time.sleep(30)\nelse: os.waitpid(pid, 0)\nopen('t', 'w')",
    "pipe": "p = subprocess.Popen(['sleep', '30'], stdout=subprocess.PIPE)\np.stdout.read()\nopen('t', 'w')",
    "threads": "def work():\n    while not subprocess.call('true'): pass\n    open('t', 'w')\n"
    "for _ in range(3): threading.Thread(target=work).start()",
    "pool": "from multiprocessing import Pool\ntry:\n    with Pool(2) as pool: pool.map(time.sleep, [30, 30])\n"
    "finally: open('t', 'w')",
}
OTHER = {
    "perl": "system('sleep 30'); open(my $t, '>', 't')",
    "ruby": "system('sleep 30')\nFile.write('t', '')",
    "javascript": "require('child_process').spawnSync('sleep', ['30']); require('fs').writeFileSync('t', '')",
    "php": "system('sleep 30'); touch('t');",
}
NEEDED = {"javascript": "node"}
MOST_AT_ONCE = 8
SIZE = 12 << 20
"""More than the workspace may grow by where a breach is wanted."""


def scripts(number: int) -> list[tuple[str, str]]:
    """So many (language, code): every shape in turn."""
    there = {
        name: code for name, code in OTHER.items() if shutil.which(NEEDED.get(name, name), path="/usr/local/bin:/usr/bin:/bin")
    }
    shapes = [("shell", code) for code in SHELL.values()] + [("python", code) for code in PYTHON.values()] + [*there.items()]
    return list(itertools.islice(itertools.cycle(shapes), number))


def in_folder(language: str, code: str, folder: str, first: str = "") -> str:
    """The code in a folder of its own, where it says that it has begun; `first` is a shell command before that."""
    shell = f"mkdir {folder} && cd {folder} && touch begun {first}"
    match language:
        case "shell":
            return f"{shell}\n{code}"
        case "perl":
            return f"system(q({shell})); chdir '{folder}'; {code}"
        case "ruby":
            return f"system(%q({shell})); Dir.chdir('{folder}')\n{code}"
        case "javascript":
            return f"require('child_process').execSync(`{shell}`); process.chdir('{folder}'); {code}"
        case "php":
            return f"shell_exec('{shell}'); chdir('{folder}'); {code}"
    return f"import os, subprocess, threading, time\nsubprocess.run({shell!r}, shell=True)\nos.chdir('{folder}')\n{code}"


def looks(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file's size and time, but for what fills the disk."""
    return {one.name: (one.stat().st_size, one.stat().st_mtime_ns) for one in folder.glob("*")}


async def appears(path: Path) -> None:
    async with asyncio.timeout(20):
        while not path.exists():
            await asyncio.sleep(0.005)


class Watch:
    """Takes a picture of a script's folder when its end is told; `late`: where something happened because of the end, or after."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.codes: dict[str, str] = {}
        self._told: dict[str, dict[str, tuple[int, int]]] = {}

    def told(self, name: str, code: str) -> None:
        self.codes[name], self._told[name] = code, looks(self.workspace / name)

    @property
    def late(self) -> list[str]:
        there = {name: looks(self.workspace / name) for name in self._told}
        return [self.codes[name] for name, now in there.items() if "t" in now or now != self._told[name]]

    @property
    def begun(self) -> int:
        return sum("begun" in told for told in self._told.values())


async def timed_out(inside, watch: Watch, name: str, language: str, code: str) -> None:
    ran = await inside.run_here(in_folder(language, code, name), language, timeout_s=random.uniform(0.3, 0.9))
    watch.told(name, code)
    assert ran.outcome.status == "timeout", (code, ran.outcome, ran.stderr)


async def cancelled(inside, watch: Watch, name: str, language: str, code: str) -> None:
    running = asyncio.ensure_future(inside.run_here(in_folder(language, code, name), language))
    await appears(watch.workspace / name / "begun")
    await asyncio.sleep(random.uniform(0, 0.2))
    running.cancel()
    await asyncio.wait([running])
    watch.told(name, code)
    assert running.cancelled(), code


async def breached(inside, watch: Watch, name: str, language: str, code: str) -> None:
    filled = in_folder(language, code, name, first=f"&& head -c {SIZE} /dev/zero > big")
    ran = await inside.run_here(filled, language)
    watch.told(name, code)
    assert "the workspace grew" in said(ran.outcome.reasons), (code, ran.outcome)


Way = Callable[..., Awaitable[None]]
WAYS: dict[str, tuple[Way, int]] = {"timeout": (timed_out, 90), "cancelled": (cancelled, 50), "breach": (breached, 14)}


@pytest.mark.parametrize("way", WAYS)
def test_a_script_that_was_ended_does_nothing_more(make_inside, way):
    end, number = WAYS[way]
    inside = make_inside(**({"limits__workspace": "8M"} if way == "breach" else {}))
    watch = Watch(inside.workspace)

    async def all_of_them() -> None:
        room = asyncio.Semaphore(1 if way == "breach" else MOST_AT_ONCE)  # who breaches a limit ends all that share it

        async def one(index: int, language: str, code: str) -> None:
            async with room:
                await end(inside, watch, f"{way}{index}", language, code)

        await asyncio.gather(*(one(index, *script) for index, script in enumerate(scripts(number))))

    inside.wait(all_of_them(), timeout_s=120)
    assert (watch.late, watch.begun > number * 0.8) == ([], True)


def test_what_runs_when_its_session_ends_does_nothing_more(make_inside):
    inside = make_inside()
    watch = Watch(inside.workspace)
    for start, count in ((0, 8), (8, 8), (16, 8), (24, 8)):
        inside.wait(ended_together(inside, watch, scripts(start + count)[start:], start))
    assert (watch.late, watch.begun) == ([], 32)


async def ended_together(inside, watch: Watch, some: list[tuple[str, str]], first: int) -> None:
    running = [
        asyncio.ensure_future(inside.run_here(in_folder(language, code, f"s{number}"), language))
        for number, (language, code) in enumerate(some, first)
    ]
    for number in range(first, first + len(some)):
        await appears(watch.workspace / f"s{number}" / "begun")
    await asyncio.sleep(random.uniform(0, 0.2))
    await inside.runner.close()
    for number, (_, code) in enumerate(some, first):
        watch.told(f"s{number}", code)
    await asyncio.wait(running)


@pytest.mark.anyio
async def test_a_background_job_that_was_cancelled_does_nothing_more(sandbox, tmp_path):
    from sandboxmcp.session import Session
    from sandboxmcp.tools.execution import execute
    from sandboxmcp.tools.jobs import jobs

    workspace = tmp_path / "workspace"
    workspace.mkdir()
    flags = {"workspace": str(workspace), "data_dir": str(tmp_path / "data")}
    session = Session(load_settings(flags=flags, environ={"HOME": str(tmp_path)}))
    watch = Watch(workspace)

    async def one(number: int, language: str, code: str) -> str:
        begun = await execute(session, in_folder(language, code, f"j{number}"), language=language, background=True)
        await appears(workspace / f"j{number}" / "begun")
        await asyncio.sleep(random.uniform(0, 0.2))
        told = await jobs(session, action="cancel", job=begun.structured["job"], budget_tokens=500)
        watch.told(f"j{number}", code)
        return str(told.structured["state"])

    try:
        some = list(enumerate(scripts(16)))
        states = [await asyncio.gather(*(one(number, *script) for number, script in some[at : at + 8])) for at in (0, 8)]
        assert (states, watch.late, watch.begun) == ([["cancelled"] * 8] * 2, [], 16)
    finally:
        await session.close()


CHILDREN = {
    "list": "subprocess.run(['sh', '-c', 'sleep 30; touch t'])",
    "deaf": "subprocess.run(['sh', '-c', 'trap \"\" INT TERM; sleep 30; touch t'])",
    "system": "os.system('sleep 30; touch t')",
    "session of its own": "subprocess.run('(setsid sh -c \"sleep 30; touch t\" & wait)', shell=True, start_new_session=True)",
    "popen": "os.popen('sleep 30; touch t').read()",
    "one after another": "while subprocess.run(['sleep', '0.01']).returncode == 0: pass",
    "pipe": "subprocess.Popen('sleep 30 | (cat; touch t)', shell=True, stdout=subprocess.PIPE).communicate()",
    "background": "subprocess.Popen('while sleep 0.01; do date >> log; done', shell=True)\ntime.sleep(30)",
}
KERNEL = """import os, subprocess, time
os.makedirs('{folder}', exist_ok=True)
os.chdir('{folder}')
open('begun', 'w')
try:
    {code}
    open('t', 'w')
except KeyboardInterrupt:
    open('except', 'w')
finally:
    open('finally', 'w')
os.chdir('..')
"""


def test_an_interrupted_kernel_cleans_up_and_its_children_do_nothing_more(make_inside):
    from sandboxmcp.core.model import Script

    inside = make_inside()
    watch = Watch(inside.workspace)

    async def one(kernel: str, code: str) -> None:
        async with inside.runner.session() as session:
            for turn in range(3):
                name = f"{kernel.replace(' ', '')}{turn}"
                script = Script(
                    "", "python", KERNEL.format(folder=name, code=code.replace("\n", "\n    ")), random.uniform(0.2, 0.5)
                )
                outcome = await session.run_in(kernel.replace(" ", ""), script)
                watch.told(name, code)
                assert (outcome.status, "are kept" in said(outcome.reasons)) == ("timeout", True), (code, outcome)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(name, code) for name, code in CHILDREN.items()))

    inside.wait(all_of_them())
    cleaned = [
        folder.name for folder in inside.workspace.glob("*") if not {"except", "finally"} <= {one.name for one in folder.iterdir()}
    ]
    assert (watch.late, cleaned, watch.begun) == ([], [], 3 * len(CHILDREN))


INTERRUPTED = {
    "list": "sleep 30; touch t",
    "group of its own": "timeout 40 sleep 30; touch t",
    "another interpreter": "perl -e 'sleep 30'; touch t",
    "session of its own": "setsid -w sh -c 'sleep 30; touch t'; touch t",
    "loop of short ones": "while sleep 0.01; do date >> log; done; touch t",
}


def test_an_interrupted_script_takes_no_further_command(make_inside):
    """Ctrl-C is a signal and no end: a program that handles it and exits as it likes lets the shell go on, as at a terminal."""
    inside = make_inside()
    watch = Watch(inside.workspace)

    async def one(number: int, code: str) -> None:
        begun: list = []
        running = asyncio.ensure_future(inside.run_here(in_folder("shell", code, f"i{number}"), "shell", on_begin=begun.append))
        await appears(watch.workspace / f"i{number}" / "begun")
        await asyncio.sleep(random.uniform(0, 0.2))
        begun[0].interrupt()
        ran = await running
        watch.told(f"i{number}", code)
        # A shell that has just collected a child goes on, as at a terminal; it is ended after three seconds.
        assert ran.outcome.status == "failed" or "did not heed" in said(ran.outcome.reasons), (code, ran.outcome)

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number, code) for number, code in enumerate([*INTERRUPTED.values()] * 4)))

    inside.wait(all_of_them())
    assert (watch.late, watch.begun) == ([], 4 * len(INTERRUPTED))


WAKERS = """
import os, signal, sys
def wake():
    while True:
        for pid in filter(str.isdigit, os.listdir('/proc')):
            if pid not in ('1', '2'):
                try: os.kill(int(pid), signal.SIGCONT)
                except OSError: pass
for _ in range(6):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        wake()
"""
FIRST_THREAD_GONE = """
import ctypes, os, threading, time
def work():
    while True:
        with open('log', 'a') as file: file.write('x')
        time.sleep(0.01)
if os.fork() == 0:
    threading.Thread(target=work).start()
    ctypes.CDLL(None).pthread_exit(None)
"""
SIBLING = """
import ctypes, os, platform, signal, time
clone = {'x86_64': 56, 'aarch64': 220}[platform.machine()]
if ctypes.CDLL(None).syscall(ctypes.c_long(clone), ctypes.c_long(0x8000 | signal.SIGCHLD), *[ctypes.c_long(0)] * 4) == 0:
    while True:
        with open('log', 'a') as file: file.write('x')
        time.sleep(0.01)
"""
HIDING = {
    "wakers": (WAKERS, "setsid sh -c 'while sleep 0.01; do date >> log; done' & python3 -c \"$CODE\"; sleep 30; touch t"),
    "a process whose first thread has ended": (FIRST_THREAD_GONE, 'python3 -c "$CODE"; sleep 30; touch t'),
    "a sibling made by clone": (SIBLING, 'exec python3 -c "$CODE\ntime.sleep(30)"'),
    "a daemon in a stopped group": ("", "set -m; (trap '' HUP; while :; do date >> log; done) & kill -STOP $!; sleep 30; touch t"),
}


@pytest.mark.parametrize("way", HIDING)
def test_nothing_that_hides_from_its_end_outlives_it(make_inside, way):
    program, code = HIDING[way]
    inside = make_inside()
    watch = Watch(inside.workspace)
    code = f"CODE=$(cat <<'END'\n{program}\nEND\n)\n{code}"

    async def some() -> None:
        await asyncio.gather(*(cancelled(inside, watch, f"h{number}", "shell", code) for number in range(4)))

    inside.wait(some())
    assert (len(watch.late), watch.begun) == (0, 4)
    left = "ps -e -o args= | grep -e 'def [w]ake' -e 'open(.[l]og' -e '[s]leep 30' -e 'date >[>]'"
    assert inside.run(left, "shell").text == ""


THREADS = {
    "writes": "def work():\n    while True:\n        with open('log', 'a') as file: file.write('x')",
    "starts processes": "def work():\n    while True: subprocess.run('date >> log', shell=True)",
}


@pytest.mark.parametrize("what", THREADS)
def test_a_thread_that_a_script_left_does_nothing_after_its_end_was_told(make_inside, what):
    """The launcher, which would end it, is stopped by the script: so the answer has time to come before the end."""
    inside = make_inside()
    watch = Watch(inside.workspace)
    code = f"{THREADS[what]}\nthreading.Thread(target=work, daemon=True).start()\nwhile not os.path.exists('log'): pass"
    code += "\nos.kill(2, 19)"

    async def twice() -> str:
        ran = await inside.run_here(in_folder("python", code, "d"))
        watch.told("d", code)
        await inside.run_here("print('time for the thread')")
        return ran.outcome.status

    assert (inside.wait(twice()), watch.late) == ("ok", [])
