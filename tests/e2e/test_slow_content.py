"""While content that is slow to understand is being indexed, the server answers everything else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("sandbox")
HELLO: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
LINES = {
    "JSON of numbers": '{"a": [' + "1," * 50_000 + "1]}\n",
    "JSON that is deep": ('{"a":' * 900 + "1" + "}" * 900 + "\n") * 20,
    "headings of one letter": "# h\n",
    "comments without an end": "<html>" + "<!--" * 25_000 + "\n",
}
BYTES = 3_000_000


@pytest.fixture
def server(command: list[str], environment: dict[str, str], project: Path) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, cwd=project) as server:
        send(server, *HELLO)
        yield server
        server.kill()


def send(server: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    server.stdin.flush()


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def answers(server: subprocess.Popen[bytes], last: int) -> dict[int, dict[str, Any]]:
    """Results by the numbers of their requests, in the order in which they came, as far as the last one."""
    found: dict[int, dict[str, Any]] = {}
    while last not in found:
        assert server.stdout is not None
        message = json.loads(server.stdout.readline())
        if "result" in message:
            found[message["id"]] = message["result"]
    return found


@pytest.mark.parametrize("name", LINES)
def test_a_ping_and_a_script_are_answered_before_slow_content_is_indexed(
    server: subprocess.Popen[bytes], project: Path, name: str
) -> None:
    (project / "slow.txt").write_text(LINES[name] * (BYTES // len(LINES[name])))
    send(server, call(1, "ctx_execute", code="print(0)"))  # the kernel is warm
    answers(server, 1)
    send(
        server,
        call(2, "ctx_index", path="slow.txt"),
        {"jsonrpc": "2.0", "id": 3, "method": "ping"},
        call(4, "ctx_execute", code="print(1)"),
    )
    found = answers(server, 2)
    assert list(found)[-1] == 2 and set(found) >= {2, 3, 4}
    assert "\n| 1" in found[4]["content"][0]["text"] and "indexed " in found[2]["content"][0]["text"]
