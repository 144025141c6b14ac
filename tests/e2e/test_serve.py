"""The whole way over stdio, in both eras, on real kernels; and that nothing is left when it ends, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def send(process: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    process.stdin.flush()


@contextmanager
def sleeping(command: list[str], environment: dict[str, str], project: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose sandbox is in the middle of a long script."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=project)
    script = "echo zebra; touch started; sleep 300"
    send(process, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    send(process, call(2, "ctx_execute", code=script, language="shell"))
    wait_until(lambda: (project / "started").exists(), 30)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(happened: Callable[[], bool], bound_s: float) -> None:
    """Look again and again, giving the processor away in between: what is waited for happens in other processes."""
    end = time.monotonic() + bound_s
    while not happened():
        threading.Event().wait(0.01)
        assert time.monotonic() < end, "it did not happen in time"


def gone(pids: set[int]) -> bool:
    """Have all ended? A zombie has; somebody only has not asked yet."""
    return all(not (stat := _stat(pid)) or stat.rpartition(")")[2].split()[0] in "ZX" for pid in pids)


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_main_job_works_over_stdio(server: Any, era: str, project: Path) -> None:
    (project / "data.txt").write_text("".join(f"row {n}{' NEEDLE' if n == 1234 else ''}\n" for n in range(3000)))
    commands = [
        {"label": "rows", "command": "cat data.txt"},
        {"label": "sum", "code": "print(sum(1 for _ in open('data.txt')))", "language": "python"},
        {"label": "boom", "code": "1/0", "language": "python"},
    ]
    async with Client(server, mode=era) as client:
        result = await client.call_tool("ctx_batch_execute", {"commands": commands, "queries": ["NEEDLE"]}, read_timeout_seconds=60)
    text = result.content[0].text
    assert "| row 1234 NEEDLE" in text and "| 3000" in text and "| ZeroDivisionError: division by zero" in text


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_a_client_that_would_hide_the_text_is_recognised_after_the_early_greeting_too(server: Any, era: str) -> None:
    about = Implementation(name="claude-code", version="2.1.280")
    async with Client(server, mode=era, client_info=about) as client:
        result = await client.call_tool("ctx_execute", {"code": "print(6 * 7)"}, read_timeout_seconds=60)
    assert (result.structured_content, "\n| 42" in result.content[0].text) == (None, True)


async def test_nothing_but_protocol_is_ever_on_standard_output(
    command: list[str], environment: dict[str, str], project: Path
) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=project) as process:
        send(
            process, INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call(2, "ctx_execute", code="print(1)")
        )
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        out, _ = process.communicate(timeout=30)
    assert [json.loads(line)["id"] for line in lines] == [1, 2] and out == b"" and process.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"])
async def test_a_signal_ends_the_server_with_everything_it_started(
    command: list[str], environment: dict[str, str], project: Path, processes_of: Any, number: signal.Signals, code: int
) -> None:
    with sleeping(command, environment, project) as process:
        pids = processes_of(process.pid)
        process.send_signal(number)
        assert process.wait(20) == code
        assert len(pids) > 2
        wait_until(lambda: gone(pids), 5)


async def test_hanging_up_ends_the_server_with_everything_it_started(
    command: list[str], environment: dict[str, str], project: Path, processes_of: Any
) -> None:
    with sleeping(command, environment, project) as process:
        pids = processes_of(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
        wait_until(lambda: gone(pids), 5)


async def test_killing_the_server_leaves_nothing_a_second_later(
    command: list[str], environment: dict[str, str], project: Path, processes_of: Any
) -> None:
    with sleeping(command, environment, project) as process:
        pids = processes_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: gone(pids), 1)


async def test_what_was_printed_before_hanging_up_is_found_by_the_next_server(
    command: list[str], environment: dict[str, str], project: Path, server: Any
) -> None:
    with sleeping(command, environment, project) as process:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    async with Client(server) as client:
        found = await client.call_tool("ctx_search", {"queries": ["zebra"]}, read_timeout_seconds=30)
    assert "| zebra" in found.content[0].text


async def test_a_cancelled_call_stops_its_script_and_the_server_goes_on(
    command: list[str], environment: dict[str, str], project: Path, processes_of: Any
) -> None:
    with sleeping(command, environment, project) as process:
        before = processes_of(process.pid)
        send(process, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        send(process, call(3, "ctx_execute", code="echo alive", language="shell"))
        assert process.stdout is not None
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        wait_until(lambda: any(gone({pid}) for pid in before), 10)
    assert [answer["id"] for answer in answers] == [1, 3] and "| alive" in answers[1]["result"]["content"][0]["text"]


async def test_a_bad_configuration_is_told_on_stderr_and_exits_two(
    command: list[str], environment: dict[str, str], project: Path
) -> None:
    (project / "sandboxmcp.toml").write_text("nonsense = 1\n")
    done = subprocess.run(command, input=b"", capture_output=True, env=environment, cwd=project, timeout=30)
    assert (done.returncode, done.stdout, b"unknown key 'nonsense'" in done.stderr) == (2, b"", True)


async def test_the_first_answer_does_not_wait_for_heavy_imports(
    command: list[str], environment: dict[str, str], project: Path
) -> None:
    heavy = {"mcp", "anyio", "jupyter_client", "ipykernel", "sqlite_utils", "tree_sitter", "zmq", "pathspec"}
    script = f"import sys, sandboxmcp.server.stdio; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([command[0], "-c", script], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"
