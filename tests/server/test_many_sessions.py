"""Many sessions in one process, each with a client of its own, connected in memory: none sees anything of another."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client

from sandboxmcp.backend import Backend
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.registry import shared_kernels
from sandboxmcp.server.app import make_server
from sandboxmcp.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]
SESSIONS = 20
_STORES = 3
"""Data folders that the sessions share."""


@dataclass(slots=True)
class One:
    """A session, its client, and what only it may see."""

    number: int
    session: Session
    client: Client

    async def call(self, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        result = await self.client.call_tool(tool, arguments, read_timeout_seconds=120)
        return result.content[0].text, result.structured_content or {}


def workspace(folder: Path, number: int) -> Path:
    """A project with a file, a pack and settings of its own; its user has a home of his own."""
    project = folder / f"project-{number}"
    (project / ".sandboxmcp").mkdir(parents=True)
    (project / "only.txt").write_text(f"the file of {number}\n")
    (project / ".sandboxmcp/sandboxmcp.toml").write_text(f"budget_tokens = {1_000 + number}\n")
    policies = folder / f"home-{number}/.config/sandboxmcp/policies"
    policies.mkdir(parents=True)
    (policies / "own.toml").write_text(
        f"""[pack]
name = "own"
[[rule]]
id = "no-{number}"
language = "shell"
command = "program-{number}"
verdict = "deny"
because = "Not in {number}."
instead = "Use another."
[[rule.example]]
code = "program-{number} all"
verdict = "deny"
[[secret]]
name = "token-{number}"
anchors = ["tok{number}_"]
pattern = 'tok{number}_[a-z]{{12}}'
masked = ["tok{number}_abcdefghijkl"]
kept = ["tok{number}_abc"]
"""
    )
    return project


@asynccontextmanager
async def opened(backend: Backend, folder: Path, number: int) -> AsyncIterator[One]:
    project = workspace(folder, number)
    flags = {
        "data_dir": str(folder / f"data-{number % _STORES}"),
        "workspace": str(project),
        "policy_packs": ["default", "own"],
        "limits.memory": f"{512 + number}MiB",
    }
    environ = {"HOME": str(folder / f"home-{number}"), "PATH": os.environ["PATH"]}
    session = Session(load_settings(flags, environ=environ, project=project), backend, environ)
    try:
        async with Client(make_server(session), mode="auto") as client:
            yield One(number, session, client)
    finally:
        await session.close()


async def together(sessions: list[One], work: Any) -> list[Any]:
    """What the work comes to for each, all of them at once."""
    done: dict[int, Any] = {}

    async def run(one: One) -> None:
        done[one.number] = await work(one)

    async with anyio.create_task_group() as group:
        for one in sessions:
            group.start_soon(run, one)
    return [done[one.number] for one in sessions]


async def until(found: Any) -> None:
    with anyio.fail_after(30):
        while not found():
            await anyio.to_thread.run_sync(threading.Event().wait, 0.01)


def below() -> set[int]:
    """All processes below this one."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


async def test_twenty_sessions_see_nothing_of_each_other(tmp_path: Path) -> None:
    backend, before = Backend(), below()
    try:
        async with anyio.create_task_group() as group:
            ended, closed = anyio.Event(), [anyio.Event() for _ in range(SESSIONS)]
            leave = [anyio.Event() for _ in range(SESSIONS)]
            sessions: dict[int, One] = {}

            async def live(number: int) -> None:
                async with opened(backend, tmp_path, number) as one:
                    sessions[number] = one
                    await leave[number].wait()
                closed[number].set()

            for number in range(SESSIONS):
                group.start_soon(live, number)
            await until(lambda: len(sessions) == SESSIONS)
            everyone = [sessions[number] for number in range(SESSIONS)]
            await each_has_its_own(everyone)
            await closing_one_leaves_the_others(everyone, leave[0], closed[0])
            await one_that_dies_in_mid_call_leaves_nothing(everyone[1], leave[1], closed[1])
            assert backend.statistics.sessions == SESSIONS - 2
            for event in leave:
                event.set()
            ended.set()
    finally:
        backend.close()
    await until(lambda: below() <= before)
    assert backend.statistics.sessions == 0
    assert [path for store in range(_STORES) for path in (tmp_path / f"data-{store}/kernels").iterdir()] == []
    assert [path for store in range(_STORES) for path in (tmp_path / f"data-{store}/incoming").iterdir()] == []


async def each_has_its_own(everyone: list[One]) -> None:
    """Kernels, files, masks, verdicts, jobs, settings and stored output."""
    tokens = " ".join(f"tok{number}_abcdefghijkl" for number in range(SESSIONS))

    async def work(one: One) -> None:
        await one.call("ctx_execute", code=f"x = {one.number}", kernel="k")
        await one.call("ctx_execute", language="shell", code=f"sleep 60; echo {one.number}", background=True)
        printed, _ = await one.call("ctx_execute", language="shell", code=f"echo marker{one.number}; echo {tokens}")
        shown = [f"tok{number}_abcdefghijkl" in printed for number in range(SESSIONS)]
        assert shown == [number != one.number for number in range(SESSIONS)]

    await together(everyone, work)

    async def seen(one: One) -> None:
        told, _ = await one.call("ctx_execute", code="print(x); print(open('only.txt').read())", kernel="k")
        assert f"| {one.number}\n| the file of {one.number}" in told
        text, facts = await one.call("ctx_kernels")
        assert [kernel["name"] for kernel in facts["kernels"]] == ["k"], text
        _, facts = await one.call("ctx_jobs")
        assert len(facts["jobs"]) == 1
        verdicts = [
            await one.call("ctx_execute", language="shell", code=f"program-{other}") for other in (one.number, one.number + 1)
        ]
        assert [facts["status"] for _, facts in verdicts] == ["denied", "failed"], verdicts
        found, _ = await one.call("ctx_search", queries=[f"marker{one.number}"])
        assert f"| marker{one.number}" in found.splitlines()
        other, _ = await one.call("ctx_search", queries=[f"marker{(one.number + _STORES) % SESSIONS}"])
        assert f"| marker{(one.number + _STORES) % SESSIONS}" not in other.splitlines()
        assert one.session.settings.budget_tokens == 1_000 + one.number
        assert one.session.enforced.limits.memory == (512 + one.number) << 20

    await together(everyone, seen)


async def closing_one_leaves_the_others(everyone: list[One], leave: anyio.Event, closed: anyio.Event) -> None:
    leave.set()
    await closed.wait()

    async def still(one: One) -> str:
        return (await one.call("ctx_execute", code="print(x)", kernel="k"))[0]

    told = await together(everyone[1:], still)
    assert [text.endswith(f"| {one.number}") for text, one in zip(told, everyone[1:], strict=True)] == [True] * len(told)


async def one_that_dies_in_mid_call_leaves_nothing(one: One, leave: anyio.Event, closed: anyio.Event) -> None:
    project = one.session.settings.workspace

    async with anyio.create_task_group() as group:

        async def call() -> None:
            with anyio.CancelScope() as scope:
                group.start_soon(cancel_when_begun, scope)
                await one.call("ctx_execute", language="shell", code="touch begun; sleep 30; touch late")

        async def cancel_when_begun(scope: anyio.CancelScope) -> None:
            await until((project / "begun").exists)
            scope.cancel()

        group.start_soon(call)
    leave.set()
    await closed.wait()
    assert not (project / "late").exists()
    names = {(kernel.workspace, kernel.name) for kernel in shared_kernels(one.session.settings.data_dir)}
    assert (str(project), "k") not in names


async def test_two_sessions_on_one_workspace_have_kernels_of_their_own_and_one_project(tmp_path: Path) -> None:
    backend = Backend()
    project = workspace(tmp_path, 0)
    settings = load_settings({"data_dir": str(tmp_path / "data"), "workspace": str(project)}, environ={}, project=project)
    first, second = Session(settings, backend), Session(settings, backend)
    try:
        async with Client(make_server(first)) as one, Client(make_server(second)) as two:
            await one.call_tool("ctx_execute", {"code": "x = 1", "kernel": "k"})
            told = await two.call_tool("ctx_execute", {"code": "print('x' in globals())", "kernel": "k"})
            await one.call_tool("ctx_execute", {"language": "shell", "code": "echo shared > made; echo marker"})
            read = await two.call_tool("ctx_execute", {"language": "shell", "code": "cat made"})
            found = await two.call_tool("ctx_search", {"queries": ["marker"]})
    finally:
        await first.close()
        await second.close()
        backend.close()
    assert [result.content[0].text.rpartition("| ")[2] for result in (told, read)] == ["False", "shared"]
    assert "| marker" in found.content[0].text


async def test_a_session_with_a_broken_pack_does_not_stop_its_neighbour(tmp_path: Path) -> None:
    backend = Backend()
    good, broken = workspace(tmp_path, 0), workspace(tmp_path, 1)
    (broken / ".sandboxmcp/policies").mkdir()
    (broken / ".sandboxmcp/policies/own.toml").write_text("[pack]\nname = 1\n")
    flags = {"data_dir": str(tmp_path / "data")}
    sessions = [
        Session(load_settings({**flags, "workspace": str(one)}, environ={}, project=one), backend) for one in (good, broken)
    ]
    results = []
    try:
        for session in sessions:
            async with Client(make_server(session)) as client:
                results.append(await client.call_tool("ctx_execute", {"language": "shell", "code": "echo on"}))
    finally:
        for session in sessions:
            await session.close()
        backend.close()
    assert [result.is_error for result in results] == [False, True]
    assert "own.toml" in results[1].content[0].text


async def test_a_session_whose_folder_vanishes_says_so_and_its_neighbour_goes_on(tmp_path: Path) -> None:
    backend = Backend()
    gone, there = workspace(tmp_path, 0), workspace(tmp_path, 1)
    flags = {"data_dir": str(tmp_path / "data")}
    first, second = (
        Session(load_settings({**flags, "workspace": str(one)}, environ={}, project=one), backend) for one in (gone, there)
    )
    gone.rename(tmp_path / "elsewhere")
    try:
        async with Client(make_server(first)) as one, Client(make_server(second)) as two:
            refused = await one.call_tool("ctx_execute", {"language": "shell", "code": "echo on"})
            ran = await two.call_tool("ctx_execute", {"language": "shell", "code": "echo on"})
    finally:
        await first.close()
        await second.close()
        backend.close()
    assert (refused.is_error, ran.is_error) == (True, False)
    assert str(gone) in refused.content[0].text


async def test_sessions_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    """SANDBOXMCP_SOAK=1: 500 of them, 50 with a script, as `make soak` does."""
    soak = bool(os.environ.get("SANDBOXMCP_SOAK"))
    number, every = (500, 10) if soak else (30, 10)
    backend, process = Backend(), psutil.Process()
    project = workspace(tmp_path, 0)
    settings = load_settings({"data_dir": str(tmp_path / "data"), "workspace": str(project)}, environ={}, project=project)
    seen = []
    try:
        for count in range(number):
            session = Session(settings, backend)
            async with Client(make_server(session)) as client:
                await client.call_tool("ctx_stats", {})
                if count % every == 0:
                    await client.call_tool("ctx_execute", {"language": "shell", "code": "echo on"})
            await session.close()
            if count % every == every - 1:
                gc.collect()
                seen.append((process.num_fds(), threading.active_count(), len(below()), process.memory_info().rss))
    finally:
        backend.close()
    assert {(fds, processes) for fds, _, processes, _ in seen[1:]} == {(seen[1][0], seen[1][2])}
    assert max(threads for _, threads, _, _ in seen[1:]) <= seen[1][1] + 1  # the timer that writes counts comes and goes
    assert [path.name for path in (tmp_path / "data/incoming").iterdir()] == []
    assert seen[-1][3] - seen[1][3] < 32 << 20
