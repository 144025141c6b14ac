"""A sandbox whose watchdog or background loop has died runs nothing more: the next script gets a new one."""

from __future__ import annotations

import asyncio

import pytest

from sandboxmcp.core.model import Outcome
from sandboxmcp.kernels.named_kernels import NamedKernels
from sandboxmcp.render.reasons import said
from sandboxmcp.sandbox import watch


async def session_of(inside):
    async with inside.runner.session() as session:
        return session


def test_a_sandbox_whose_loop_has_died_is_replaced_before_the_next_script(make_inside, monkeypatch):
    async def reap(self, idle_s):
        raise RuntimeError("no more")

    monkeypatch.setattr(NamedKernels, "reap_forever", reap)
    inside = make_inside()
    first = inside.wait(session_of(inside))
    inside.wait(asyncio.sleep(0))  # the loop has its turn, and its owner learns of its end
    monkeypatch.undo()
    assert first.outdated == "its background loop reaping ended (RuntimeError: no more)"
    assert inside.run("print('on')").text == "on\n"
    second = inside.wait(session_of(inside))
    assert second is not first
    assert [(loop.name, loop.alive) for loop in second.loops] == [("reaping", True), ("guarding", True)]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nothing_runs_on_without_its_watchdog(make_inside, monkeypatch):
    inside = make_inside()
    assert inside.run("true", "shell").outcome.status == "ok"

    def failing(pid):
        raise RuntimeError("blind")

    monkeypatch.setattr(watch, "tree", failing)
    outcome = inside.run("sleep 30; touch late", "shell").outcome
    monkeypatch.undo()
    assert outcome.status == "killed" and "its watchdog failed (RuntimeError: blind)" in said(outcome.reasons)
    assert not (inside.workspace / "late").exists()
    assert inside.run("echo on", "shell").text == "on\n"


WAITING = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('on')"


def test_a_kernel_that_sends_nothing_does_not_pay_for_the_growth_of_the_server(inside):
    """Another session may index something large in the same process meanwhile."""

    async def grown() -> Outcome:
        running = asyncio.ensure_future(inside.run_here(WAITING, "python", 60.0))
        while not (inside.workspace / "begun").exists():
            await asyncio.sleep(0.01)
        held = [bytearray(b"x" * (20 << 20)) for _ in range(20)]
        for _ in range(40):  # so many rounds of the watchdog
            await asyncio.sleep(0.05)
        (inside.workspace / "go").touch()
        outcome = (await running).outcome
        del held
        return outcome

    assert inside.wait(grown(), 90).status == "ok"
