"""Kernels that stay between calls: what lives on, what is told apart, and how they end."""

from __future__ import annotations

import asyncio

import pytest

from sandboxmcp.core.errors import KernelError, KernelGone, UsageError
from sandboxmcp.core.model import Outcome, Script
from sandboxmcp.render.reasons import said


class Named:
    """Runs scripts in named kernels of one sandbox."""

    def __init__(self, inside) -> None:
        self.inside = inside

    async def run_here(
        self, name: str, code: str, timeout_s: float = 20.0, language: str = "python", **more
    ) -> tuple[Outcome, str]:
        async with self.inside.runner.session() as session:
            outcome = await session.run_in(name, Script("test", language, code, timeout_s), **more)
        return outcome, outcome.stdout.path.read_text()

    def run(self, name: str, code: str, timeout_s: float = 20.0, language: str = "python") -> tuple[Outcome, str]:
        return self.inside.wait(self.run_here(name, code, timeout_s, language))

    def session(self, work):
        async def within():
            async with self.inside.runner.session() as session:
                return await work(session)

        return self.inside.wait(within())


@pytest.fixture(scope="module")
def named(make_inside):
    return Named(make_inside())


def test_variables_live_on_and_each_call_has_its_own_output(named):
    assert named.run("a", "x = 41; print('first')")[1] == "first\n"
    assert named.run("a", "print('second')\nx + 1")[1] == "second\n42\n"


def test_two_kernels_do_not_share_variables(named):
    named.run("b", "y = 1")
    assert named.run("c", "y")[0].exit_code == 1


def test_an_error_keeps_the_variables(named):
    named.run("d", "z = 5")
    outcome, _ = named.run("d", "1 / 0")
    assert (outcome.status, outcome.exit_code, "ZeroDivisionError" in outcome.stderr.path.read_text()) == ("failed", 1, True)
    assert named.run("d", "z")[1] == "5\n"


TAKE_ALL = """
import threading
never = threading.Event()
try:
    while True: threading.Thread(target=never.wait, daemon=True).start()
except RuntimeError: print("all taken")
"""


def test_a_kernel_that_takes_all_threads_leaves_the_one_beside_it_its_variables(make_inside):
    own = Named(make_inside(limits__processes=40))
    own.run("keeps", "kept = 7")
    assert own.run("takes", TAKE_ALL)[1] == "all taken\n"
    with pytest.raises(KernelError, match=r"no further process starts.*raise limits\.processes"):
        own.inside.run("true", "shell")
    assert own.run("keeps", "kept")[1] == "7\n"
    own.session(lambda session: session.named.stop("takes"))
    assert own.inside.run("echo again", "shell").text == "again\n"


LIES = {
    "a digit that is no number": "class Lie:\n    def __repr__(self): return '\u00b2'\nlen = lambda _: Lie()",
    "a number without end": "class Lie:\n    def __repr__(self): return '9' * 5000\nlen = lambda _: Lie()",
    "a reply of another form": (
        "async def forged(*_, **__): return {'status': 'ok', 'execution_count': 1, 'user_expressions': 'x'}\n"
        "get_ipython().kernel.do_execute = forged"
    ),
}


@pytest.mark.parametrize("code", LIES.values(), ids=LIES.keys())
def test_a_kernel_that_lies_about_its_variables_is_listed_without_a_count(make_inside, code):
    own = Named(make_inside())
    own.run("liar", code)
    states = own.session(lambda session: session.states())
    assert [(state.name, state.variables) for state in states] == [("liar", None)]


def test_a_forked_child_is_no_second_kernel(named):
    assert named.run("forked", "import os\nchild = os.fork()\nchild and os.waitpid(child, 0)[1]")[1].splitlines()[-1] == "0"
    assert named.run("forked", "child > 0")[1] == "True\n"


def test_a_kernel_that_does_not_welcome_us_is_nudged_until_it_publishes_something(named):
    async def again(session):
        kernel = await session._pool._start()
        await kernel._welcomed()  # ipykernel says it once a subscription: it was said when the kernel started
        answered = await kernel.answers(20.0)
        await kernel.forget()
        return answered

    assert named.session(again)


ENDLESS = {
    "loop": "while True: pass",
    "sleep": "import time; time.sleep(60)",
    "child": "import subprocess; subprocess.run(['sleep', '60'])",
    "C code": "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
}


@pytest.mark.parametrize("code", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_timeout_interrupts_and_keeps_the_variables(named, code):
    named.run("e", "kept = 'yes'")
    outcome, _ = named.run("e", f"print('begun', flush=True)\n{code}", timeout_s=0.7)
    assert (outcome.status, said(outcome.reasons)) == (
        "timeout",
        "timed out after 0.7 s; it was interrupted, the variables of e are kept",
    )
    assert named.run("e", "kept")[1] == "'yes'\n"


def test_a_kernel_that_does_not_heed_the_interrupt_is_ended_and_says_so(named):
    stubborn = "import time\nwhile True:\n    try: time.sleep(60)\n    except KeyboardInterrupt: pass"
    outcome, _ = named.run("f", stubborn, timeout_s=0.5)
    assert said(outcome.reasons) == "timed out after 0.5 s; the kernel f ended, its variables are gone"
    assert named.run("f", "print('anew')")[1] == "anew\n"


def test_a_crash_is_told_and_the_next_call_starts_anew(named):
    named.run("g", "v = 1")
    outcome, _ = named.run("g", "import os; os.abort()")
    assert (outcome.status, said(outcome.reasons)) == ("failed", "ended by SIGABRT; the kernel g ended, its variables are gone")
    assert named.run("g", "'v' in globals()")[1] == "False\n"


def test_two_clients_of_one_kernel_wait_for_each_other(named):
    async def both():
        one = named.run_here("h", "import time\nfor i in range(5): print('one', flush=True); time.sleep(0.05)")
        two = named.run_here("h", "print('two')")
        return [text for _, text in await asyncio.gather(one, two)]

    assert sorted(named.inside.wait(both())) == ["one\n" * 5, "two\n"]


def test_cancellation_interrupts_and_passes_on_what_was_printed(named):
    partial: list[Outcome] = []
    flag = named.inside.workspace / "begun"
    named.run("i", "w = 7")
    code = "import pathlib, time\nprint('half', flush=True)\npathlib.Path('begun').touch()\ntime.sleep(60)"
    future = named.inside.start(named.run_here("i", code, on_partial=partial.append))
    named.inside.wait(appears(flag))
    future.cancel()
    named.inside.wait(appears(partial))
    assert (partial[0].status, partial[0].stdout.path.read_text()) == ("cancelled", "half\n")
    assert named.run("i", "w")[1] == "7\n"


async def appears(thing) -> None:
    """Wait for a file, or for a list to be filled."""
    async with asyncio.timeout(20):
        while not (thing.exists() if hasattr(thing, "exists") else thing):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("must_run", [True, False])
def test_a_call_that_waits_for_a_kernel_that_ends_is_told_so_or_gets_a_notice(named, must_run):
    flag = named.inside.workspace / f"waited-{must_run}"
    code = f"import os, pathlib, time\npathlib.Path({str(flag)!r}).touch()\ntime.sleep(0.5)\nos._exit(3)"

    async def both() -> str:
        first = asyncio.ensure_future(named.run_here("w", code))
        await appears(flag)
        second = asyncio.ensure_future(named.run_here("w", "print('it ran')", must_run=must_run))
        await first
        return (await second)[1]

    if must_run:
        with pytest.raises(KernelGone, match="the kernel w ended while this waited for its turn; nothing of it ran"):
            named.inside.wait(both())
    else:
        assert named.inside.wait(both()) == "it ran\n"
        assert "the kernel w ended while a call waited for its turn" in named.inside.runner.take_notices()[-1]


def test_states_are_told(named):
    named.run("j", "one = 1; two = 2; block = bytearray(50_000_000)")
    states = named.session(lambda session: session.named.states())
    state = next(state for state in states if state.name == "j")
    assert (state.language, state.busy, state.calls, state.variables) == ("python", False, 1, 3)
    assert state.memory > 50_000_000


def test_interrupt_stop_and_restart(named):
    named.run("k", "u = 1")
    named.session(lambda session: session.named.restart("k"))
    assert named.run("k", "'u' in globals()")[1] == "False\n"
    named.session(lambda session: session.named.stop("k"))
    with pytest.raises(UsageError, match="there is no kernel 'k'"):
        named.session(lambda session: session.named.stop("k"))


def test_idle_kernels_are_reaped(named):
    named.run("idle", "1")
    assert "idle" in named.session(lambda session: session.named.reap(0.0))


@pytest.mark.parametrize("name", ["", "a/b", "../x", "x" * 300, "a b", "-x"])
def test_a_name_that_cannot_be_one_is_a_clear_error(named, name):
    with pytest.raises(UsageError, match="cannot be a kernel's name"):
        named.run(name, "1")


def test_shell_keeps_no_state(named):
    with pytest.raises(UsageError, match="'shell' keeps no state between calls"):
        named.run("l", "echo", language="shell")
