"""Clients that behave badly: one that stops reading, one that cuts an emoji in two, one that cancels at the worst moment."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("sandbox")
HELLO: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "odd", "version": "1"}},
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def call(number: int, tool: str, **arguments: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


@pytest.fixture
def serve(command, environment, project):
    """Starts a server; whatever is left of it is killed."""
    started = []

    def start() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, cwd=project))
        return started[-1]

    yield start
    for server in started:
        server.kill()
        server.wait()


def send(server: subprocess.Popen[bytes], *messages: dict[str, Any]) -> None:
    server.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    server.stdin.flush()


def answer(server: subprocess.Popen[bytes], number: int | str) -> dict[str, Any]:
    while True:
        message = json.loads(server.stdout.readline())
        if message.get("id") == number:
            return message


@pytest.mark.parametrize("how", ["signal", "end of input"])
def test_a_client_that_stopped_reading_does_not_keep_the_server(serve, how):
    server = serve()
    text = "".join(f"line {number}\n" for number in range(20_000))
    send(server, *HELLO, call(1, "ctx_index", content=text, source="big"))
    handle = answer(server, 1)["result"]["content"][0]["text"].split()[0].rstrip(":,")
    many = [call(number, "ctx_read", handle=handle, budget_tokens=20_000) for number in range(2, 40)]
    send(server, *many)  # more than a pipe holds; nobody reads
    if how == "signal":
        server.terminate()
    else:
        server.stdin.close()
    assert server.wait(30) in (0, 143)


def test_half_of_an_emoji_is_answered(serve):
    server = serve()
    send(server, *HELLO, call(1, "ctx_execute", code="print('cut: \ud83d')"))
    text = answer(server, 1)["result"]["content"][0]["text"]
    assert "| cut: �" in text or "| cut: ?" in text


NESTED = '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ctx_execute","arguments":{"code":%s}},"id":"deep"}'


@pytest.mark.parametrize("first", [True, False], ids=["as the first line", "later"])
def test_a_call_nested_too_deep_to_be_read_is_answered_and_the_server_lives_on(serve, first):
    server = serve()
    if not first:
        send(server, *HELLO)
    server.stdin.write((NESTED % ("[" * 20_000 + "]" * 20_000)).encode() + b"\n")
    server.stdin.flush()
    refused = answer(server, "deep")["error"]
    send(server, *HELLO, call(1, "ctx_sources"))
    assert (refused["code"], "recursion limit" in refused["message"]) == (-32700, True)
    assert answer(server, 1)["result"].get("isError") is not True


def test_what_a_script_printed_is_kept_whenever_it_is_cancelled(serve, project: Path):
    server = serve()
    send(server, *HELLO)
    for number in range(1, 13):
        send(
            server,
            call(number, "ctx_execute", language="shell", code=f"echo mark{number}; touch m{number}; head -c 300000 /dev/zero"),
        )
        while not (project / f"m{number}").exists():
            pass
        for _ in range(number * 3000):
            pass
        send(server, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    for number in range(1, 13):
        found(server, f"mark{number}")


def found(server: subprocess.Popen[bytes], word: str) -> None:
    """Search until a source has the word on a line; storing may still be under way."""
    deadline = time.monotonic() + 20
    for request in itertools.count(1000 * int(word.removeprefix("mark"))):
        send(server, call(request, "ctx_search", queries=[word]))
        if f"| {word}\n" in answer(server, request)["result"]["content"][0]["text"] + "\n":
            return
        assert time.monotonic() < deadline, f"{word} was lost"
