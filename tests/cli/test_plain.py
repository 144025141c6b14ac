"""The quick way to `serve` is taken only when every argument is understood there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.cli.plain import serve_plainly


@pytest.mark.parametrize(
    "line",
    [
        "",
        "run -c 1",
        "serve --help",
        "serve --json",
        "serve --surface",
        "serve --surface round",
        "serve --data-dri /x",
        "serve --limits-memory none",
        "serve --data-dir /a --data-dir /b",
        "serve extra",
    ],
)
def test_whatever_else_is_asked_goes_the_ordinary_way(line: str) -> None:
    assert serve_plainly(line.split()) is None


@pytest.mark.parametrize("flag", [["--budget-tokens", "70"], ["--budget-tokens=70", "--surface=direct"]])
def test_flags_are_in_force_on_the_quick_way_and_typer_is_not_loaded(say: Any, flag: list[str]) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ctx_sources", "arguments": {}}}
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request,
    ]
    for number in range(30):
        Path(f"source-number-{number}.txt").write_text(f"text {number}\n")
    say("index", ".")
    script = (
        "import sys; from sandboxmcp.cli.plain import serve_plainly; code = serve_plainly(sys.argv[1:]);"
        "assert 'typer' not in sys.modules"
    )
    command = [sys.executable, "-c", script, "serve", *flag]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.communicate(timeout=30)
    assert (answers[1]["result"]["structuredContent"]["more"] > 20, process.returncode) == (True, 0)
