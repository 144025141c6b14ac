"""`sandboxmcp jobs` and `run --kernel` beside a running server, which has the jobs and the kernels."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("sandbox")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
Call = Callable[..., Any]


@pytest.fixture
def serve(say: Any) -> Iterator[Call]:
    """A server of this project in a process of its own; called with a tool's name and arguments it gives the result."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sandboxmcp", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
    )
    assert process.stdin is not None and process.stdout is not None
    incoming, outgoing = process.stdout, process.stdin

    def ask(number: int, method: str, params: dict[str, Any]) -> Any:
        outgoing.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        outgoing.flush()
        return json.loads(incoming.readline())["result"]

    ask(1, "initialize", HELLO)
    outgoing.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    yield lambda tool, **arguments: ask(2, "tools/call", {"name": tool, "arguments": arguments})
    process.communicate(timeout=30)


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def wait_until(happened: Callable[[], bool], bound_s: float = 60.0) -> None:
    """Look again and again: what is waited for happens in other processes."""
    end = time.monotonic() + bound_s
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        threading.Event().wait(0.01)


def test_a_job_of_a_running_server_is_listed_looked_at_and_cancelled(serve: Call, say: Any) -> None:
    code = "echo giraffe; touch begun; sleep 300"
    job = serve("ctx_execute", code=code, language="shell", background=True)["structuredContent"]["job"]
    wait_until(Path("begun").exists)
    assert say("jobs", "list").out.startswith(f"{job}: running elsewhere, shell, ")
    assert f"{job}: running for " in say("jobs", "result", job).out
    assert "| giraffe" in say("jobs", "cancel", job).out
    assert say("jobs", "result", job, "--json").document["state"] == "cancelled"


def test_a_job_that_has_ended_is_answered_from_the_store(serve: Call, say: Any) -> None:
    job = serve("ctx_execute", code="echo okapi >&2; exit 3", language="shell", background=True)["structuredContent"]["job"]
    wait_until(lambda: serve("ctx_jobs", action="result", job=job)["structuredContent"]["state"] != "running")
    document = say("jobs", "result", job, "--json").document
    assert (document["state"], document["exit_code"], document["text"].endswith("\n| okapi")) == ("failed", 3, True)


def test_a_job_that_there_is_not_is_a_usage_error(say: Any) -> None:
    said = say("jobs", "result", "jnone", "--json")
    assert (said.code, said.document["error"]) == (2, "there is no job 'jnone'. Known: none.")


def test_a_script_runs_in_the_kernel_of_a_running_server(serve: Call, say: Any) -> None:
    serve("ctx_execute", code="animals = ['zebra'] * 3000", kernel="work")
    said = say("run", "--kernel", "work", "-c", "for one in animals: print(one)\nanimals = 42", "--query", "zebra", "--json")
    assert (said.code, said.document["kernel"], said.document["lines"]) == (0, "work", 3000)
    assert "| zebra" in said.document["text"]
    assert serve("ctx_execute", code="print(animals)", kernel="work")["content"][0]["text"].endswith("\n| 42")


def test_a_script_that_fails_there_fails_here(serve: Call, say: Any) -> None:
    serve("ctx_execute", code="x = 1", kernel="work")
    said = say("run", "--kernel", "work", "-c", "1 / 0")
    assert (said.code, said.out.startswith("exit 1, "), "| ZeroDivisionError" in said.out) == (1, True, True)
    assert say("run", "--kernel", "work", "-c", "import requests").code == 3
    assert "runs python, not shell" in say("run", "--kernel", "work", "--lang", "shell", "-c", "ls").err


def test_a_kernel_that_nobody_has_ends_with_the_command(say: Any) -> None:
    said = say("run", "--kernel", "lonely", "-c", "print(6 * 7)")
    assert (said.code, said.out.endswith("\n| 42\n"), "it ends with this command" in said.err) == (0, True, True)
