"""A credential that a caller gives or a script prints is nowhere in the folder of data, and not in the answers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import zstandard
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from sandboxmcp.policy.secrets.redactor import example_text

TOKEN = example_text("ghp_<36>").decode()
PASSWORD = example_text("<24>").decode()
URL = f"http://ada:{PASSWORD}@127.0.0.1:9/{TOKEN}"
BODY = TOKEN[4:]
"""What must not be found: also where the beginning was cut off."""


def _held(folder: Path) -> list[str]:
    """The files under a folder that hold the token or the password: as they are, inflated, or in their names."""
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = file.read_bytes()
        if file.suffix == ".zst":
            data = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(data)
        if BODY[:30] in str(file) or any(secret[:30].encode() in data for secret in (BODY, PASSWORD)):
            found.append(str(file.relative_to(folder)))
    return found


CALLS: dict[str, dict[str, Any]] = {
    "label": {
        "ctx_batch_execute": {"commands": [{"label": TOKEN, "command": "echo a"}, {"label": f"x {TOKEN}", "command": "false"}]}
    },
    "long-label": {"ctx_batch_execute": {"commands": [{"label": "x" * 70 + " " + TOKEN, "command": "seq 3000"}]}},
    "queries": {"ctx_batch_execute": {"commands": ["seq 3000"], "queries": [TOKEN, f"password={PASSWORD}"], "intent": TOKEN}},
    "code": {"ctx_execute": {"code": f"print({TOKEN!r}); raise ValueError({TOKEN!r})", "intent": TOKEN, "queries": [TOKEN]}},
    "language": {"ctx_execute": {"code": "1", "language": TOKEN}},
    "kernel": {"ctx_execute": {"code": "1", "kernel": TOKEN}},
    "cwd": {"ctx_execute": {"code": "1", "cwd": TOKEN}},
    "background": {"ctx_execute": {"code": f"print({TOKEN!r})", "background": True, "queries": [TOKEN]}},
    "denied": {"ctx_execute": {"code": f"nc {TOKEN} 1", "language": "shell"}},
    "brokered": {"ctx_execute": {"code": f"curl -fsS -o page {URL} -H 'Authorization: Bearer {TOKEN}'", "language": "shell"}},
    "file": {"ctx_execute_file": {"path": f"{TOKEN}.txt", "code": "print(FILE_PATH, FILE_CONTENT)", "intent": TOKEN}},
    "no-file": {"ctx_execute_file": {"path": f"no-{TOKEN}", "code": "1"}},
    "index-file": {"ctx_index": {"path": f"{TOKEN}.txt"}},
    "index-label": {"ctx_index": {"content": f"words {TOKEN}", "source": TOKEN}},
    "index-folder": {"ctx_index": {"path": ".", "source": TOKEN, "include": [TOKEN, "*.txt"]}},
    "search": {"ctx_search": {"queries": [TOKEN, "words"], "source": TOKEN}},
    "fetch": {"ctx_fetch_and_index": {"url": URL, "source": TOKEN, "intent": TOKEN}},
    "fetches": {"ctx_fetch_and_index": {"requests": [{"url": URL}, {"url": f"http://127.0.0.1:9/?access_token={PASSWORD}"}]}},
    "read": {"ctx_read": {"handle": TOKEN}},
    "grep": {"ctx_read": {"handle": "abc234", "grep": TOKEN}},
    "sources": {"ctx_sources": {"action": "list", "source": TOKEN}},
    "all-sources": {"ctx_sources": {"action": "list"}},
    "forget": {"ctx_sources": {"action": "forget", "source": f"no {TOKEN}"}},
    "purge": {"ctx_purge": {"scope": "source", "source": TOKEN}},
    "confirm": {"ctx_purge": {"scope": "session", "dry_run": False, "confirm": TOKEN}},
    "kernels": {"ctx_kernels": {"action": "stop", "kernel": TOKEN}},
    "jobs": {"ctx_jobs": {"action": "result", "job": TOKEN}},
    "all-jobs": {"ctx_jobs": {"action": "list"}},
    "unknown-argument": {"ctx_search": {"queries": ["words"], TOKEN: TOKEN}},
}


@pytest.mark.anyio
@pytest.mark.usefixtures("sandbox")
async def test_a_token_in_every_argument_of_every_tool_is_neither_kept_nor_returned(
    server: StdioServerParameters, project: Path, tmp_path: Path
) -> None:
    (project / f"{TOKEN}.txt").write_text(f"words of a file: {TOKEN}\n")
    said: dict[str, str] = {}
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        for name, call in CALLS.items():
            ((tool, arguments),) = call.items()
            result = await session.call_tool(tool, arguments)
            said[name] = f"{result.content} {result.structured_content}"
        kept_while_it_runs = _held(tmp_path / "data")
    leaked = [name for name, text in said.items() if BODY[:30] in text or PASSWORD in text]
    assert (leaked, kept_while_it_runs, _held(tmp_path / "data")) == ([], [], [])
    assert "[redacted:github-token]" in said["code"] and (tmp_path / "data" / "policy.log").stat().st_size > 0


@pytest.mark.anyio
@pytest.mark.usefixtures("sandbox")
async def test_what_a_killed_server_had_captured_is_masked_before_anything_reads_it(
    server: StdioServerParameters,
    project: Path,
    environment: dict[str, str],
    tmp_path: Path,
    processes_of: Callable[[int], set[int]],
) -> None:
    process = subprocess.Popen(
        [server.command, *server.args], cwd=project, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    code = f"print({TOKEN!r}, flush=True); import time; time.sleep(600)"
    for message in (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"t","version":"1"}}}',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ctx_execute","arguments":{"code":"' + code + '"}}}',
    ):
        process.stdin.write(message + "\n")
    process.stdin.flush()
    data = tmp_path / "data"
    with anyio.fail_after(60):
        while not (raw := _held(data)):
            await anyio.sleep(0.05)
    places = [data / name for name in raw]
    modes = {place.stat().st_mode & 0o777 for place in places} | {place.parent.stat().st_mode & 0o777 for place in places}
    running = processes_of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with anyio.fail_after(60):
        while any(os.path.exists(f"/proc/{pid}") for pid in running - {process.pid}):
            await anyio.sleep(0.05)
    listed = subprocess.run(
        [sys.executable, "-m", "sandboxmcp", "sources"], cwd=project, env=environment, check=True, capture_output=True, text=True
    )
    assert (modes, _held(data), "recovered:" in listed.stdout) == ({0o600, 0o700}, [], True)
