"""`sandboxmcp log` lists what a real client had run, however it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
Log = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def log(project: Path, environment: dict[str, str]) -> Log:
    def listed(*words: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "sandboxmcp", "log", "--json", *words]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)
        return [facts["run"]] if "run" in facts else list(facts["runs"])

    return listed


async def test_runs_of_a_client_are_listed_with_how_they_ended(server: StdioServerParameters, log: Log, tmp_path: Path) -> None:
    async with Client(server) as client:
        commands = [f"echo {TOKEN}", "exit 3", "true", "curl https://example.org"]
        await client.call_tool("ctx_batch_execute", {"commands": commands}, read_timeout_seconds=60)
        await client.call_tool("ctx_execute", {"code": "x = 1", "kernel": "k"}, read_timeout_seconds=60)
        await client.call_tool("ctx_execute", {"code": "while True: pass", "timeout_s": 0.3}, read_timeout_seconds=60)
        await client.call_tool("ctx_execute", {"code": "print(1)", "background": True}, read_timeout_seconds=60)
        while "running" in (await client.call_tool("ctx_jobs", {})).content[0].text:
            pass
    background, timeout, kernel, batch = log()
    assert [item["status"] for item in batch["items"]] == ["ok", "failed", "ok", "denied"]
    assert [len(item["handles"]) for item in batch["items"]] == [1, 0, 0, 0] and batch["surface"] == "mcp"
    assert (kernel["kernel"], background["items"][0]["status"]) == ("k", "ok")
    assert [one["code"] for one in timeout["items"][0]["reasons"]] == ["timeout"]
    assert [run["run"] for run in log("--status", "denied")] == [batch["run"]]
    assert log(str(timeout["run"]))[0]["items"][0]["code"] == "while True: pass"
    assert {run["session"] for run in log(batch["session"][:6])} == {batch["session"]}
    assert not any(TOKEN.encode() in file.read_bytes() for file in tmp_path.rglob("*.db*"))


async def test_a_run_whose_server_was_killed_is_lost(
    command: list[str], environment: dict[str, str], project: Path, log: Log
) -> None:
    from tests.e2e.test_serve import INITIALIZE, call, send, wait_until

    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=project)
    send(process, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    send(process, call(2, "ctx_execute", code="touch started; sleep 300", language="shell"))
    wait_until(lambda: (project / "started").exists(), 60)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert [item["status"] for run in log() for item in run["items"]] == ["lost"]


def test_a_project_may_switch_the_journal_off_and_not_on(project: Path, environment: dict[str, str], log: Log) -> None:
    run = [sys.executable, "-m", "sandboxmcp", "run", "-c", "print(1)"]

    def ran() -> tuple[int, str]:
        done = subprocess.run(run, cwd=project, env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    mine = Path(environment["HOME"]) / ".config/sandboxmcp/sandboxmcp.toml"
    mine.parent.mkdir(parents=True)
    (project / "sandboxmcp.toml").write_text("journal = false\n")
    assert (ran(), log()) == ((0, ""), [])
    mine.write_text("journal = false\n")
    (project / "sandboxmcp.toml").write_text("journal = true\n")
    code, refused = ran()
    assert (code, "loosens 'journal'" in refused) == (2, True)
    mine.unlink()
    assert (ran(), len(log())) == ((0, ""), 1)
