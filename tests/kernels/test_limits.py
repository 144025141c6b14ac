"""Every limit is met by a real script, says what was met and what to raise, and leaves other scripts alone."""

from __future__ import annotations

import asyncio

import pytest

from sandboxmcp.render.reasons import said

GROW = """
import time
held = []
for _ in range(400):
    held.append(bytearray(b'x') * 4_000_000)
    time.sleep(0.005)
time.sleep(20)
"""
FOUR_CHILDREN = """
import subprocess, sys
code = 'x = b"x" * 110_000_000; input()'
children = [subprocess.Popen([sys.executable, '-c', code], stdin=subprocess.PIPE) for _ in range(4)]
children[0].wait()
"""
FOUR_FORKS_THAT_SHARE = """
import os, time
held = bytearray(b'x') * 120_000_000
for _ in range(4):
    if os.fork() == 0:
        time.sleep(0.6)
        os._exit(0)
for _ in range(4):
    os.wait()
print('fine')
"""
NAMELESS_FILES = """
import os, time
for _ in range(40):
    os.write(os.memfd_create('x'), b'x' * 15_000_000)
    time.sleep(0.02)
time.sleep(20)
"""
NINE_PARTS = """
import time
for i in range(9):
    with open(f'part{i}', 'wb') as file:
        file.write(b'x' * 9_000_000)
    time.sleep(0.1)
time.sleep(20)
"""
RAISE_LIMITS = """
import resource
for name in ('NPROC', 'NOFILE', 'FSIZE', 'CORE'):
    number = getattr(resource, 'RLIMIT_' + name)
    hard = resource.getrlimit(number)[1]
    try:
        resource.setrlimit(number, (hard + 1, hard + 1))
        print('raised', name)
    except ValueError:
        print('refused', name)
"""


@pytest.fixture(scope="module")
def small(make_inside):
    return make_inside(
        limits__memory="300MiB",
        limits__tmpfs="64MiB",
        limits__file="20MiB",
        limits__workspace="30MiB",
        limits__files=2000,
        limits__cpu=1,
    )


def test_memory_of_one_process(small):
    outcome = small.run(GROW).outcome
    assert (outcome.status, outcome.exit_code) == ("killed", None)
    assert said(outcome.reasons).startswith("killed: ") and said(outcome.reasons).endswith("limit 300 MiB; raise limits.memory")


def test_memory_of_many_children(small):
    assert "raise limits.memory" in said(small.run(FOUR_CHILDREN).outcome.reasons)


def test_shared_pages_of_forks_are_counted_once(small):
    # Shared memory that other tests of this machine make meanwhile counts too, so one of three may be ended for it.
    assert b"fine\n" in (small.run(FOUR_FORKS_THAT_SHARE).stdout for _ in range(3))


def test_memory_in_files_without_a_name(small):
    assert "raise limits.memory" in said(small.run(NAMELESS_FILES).outcome.reasons)


def test_the_largest_item_goes_and_the_other_one_stays(small):
    async def both():
        other = small.run_here("until [ -e /tmp/stop ]; do sleep 0.05; done; echo untouched", "shell")
        waiting = asyncio.ensure_future(other)
        grown = await small.run_here(GROW)
        await small.run_here("touch /tmp/stop", "shell")
        return grown.outcome.status, (await waiting).stdout

    assert small.wait(both()) == ("killed", b"untouched\n")


def test_processes(make_inside):
    own = make_inside(limits__processes=64)
    code = "import subprocess\nkids = []\nfor _ in range(200):\n    kids.append(subprocess.Popen(['sleep', '9']))"
    outcome = own.run(code).outcome
    assert outcome.status == "failed"
    assert said(outcome.reasons) == "it probably met limits.processes (64); raise it if that is meant"


def test_descriptors(make_inside):
    own = make_inside(limits__descriptors=128)
    outcome = own.run("held = [open('/dev/null') for _ in range(500)]").outcome
    assert said(outcome.reasons) == "it probably met limits.descriptors (128); raise it if that is meant"


def test_processor_time(small):
    outcome = small.run("while True: pass").outcome
    assert (outcome.status, outcome.exit_code) == ("failed", 152)
    assert said(outcome.reasons) == "ended by SIGXCPU; it probably met limits.cpu (1); raise it if that is meant"


def test_one_large_file(small):
    outcome = small.run("with open('large', 'wb') as file:\n    for _ in range(30): file.write(b'x' * 1_000_000)").outcome
    assert said(outcome.reasons) == f"it probably met limits.file ({20 << 20:,}); raise it if that is meant"


def test_a_sparse_file_of_a_terabyte(small):
    assert (
        "File too large" in small.run("import os; os.truncate(os.open('sparse', os.O_CREAT | os.O_RDWR), 1 << 40)").stderr.decode()
    )


def test_tmpfs(small):
    outcome = small.run("for i in range(9):\n    with open(f'/tmp/{i}', 'wb') as file: file.write(b'x' * 10_000_000)").outcome
    small.run("rm -f /tmp/?", "shell")
    assert said(outcome.reasons) == "what it wrote may not be whole, since /tmp is full: remove files there, or raise limits.tmpfs"


def test_growth_of_the_workspace(small):
    outcome = small.run(NINE_PARTS).outcome
    assert (outcome.status, said(outcome.reasons).split(";")[1]) == ("killed", " raise limits.workspace")


def test_many_small_files_in_memory_end_the_sandbox_that_holds_them(small):
    first = small.runner._session
    outcome = small.run("import time\nfor i in range(9000): open(f'/tmp/f{i}', 'w').close()\ntime.sleep(20)").outcome
    assert (outcome.status, said(outcome.reasons).split(";")[1]) == ("killed", " raise limits.files")
    assert small.run("ls -d /tmp/f[0-9]* 2>/dev/null | wc -l", "shell").stdout == b"0\n"
    assert small.runner._session is not first


def test_limits_cannot_be_raised_from_inside(small):
    assert small.run(RAISE_LIMITS).stdout.split() == [
        b"refused",
        b"NPROC",
        b"refused",
        b"NOFILE",
        b"refused",
        b"FSIZE",
        b"refused",
        b"CORE",
    ]


def test_a_stopped_launcher_costs_its_sandbox_not_the_host(make_inside):
    own = make_inside(limits__memory="200MiB")
    stop = "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\n" + GROW
    assert own.run(stop).outcome.status == "killed"
    assert own.run("echo alive", "shell").stdout == b"alive\n"
