"""The main job on real input of this machine: one ctx_batch_execute through an MCP client over stdio, and what the agent sees.

Six scripts: three that print more than an agent should read, one that computes over the whole standard library, one that fails
and one that the policy refuses; without git or dpkg there are fewer. Nothing here is prepared: what is printed was captured a
moment ago. Exit 0 only if every script ended as it should and the answer cites what it found.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parent.parent
_SERVER = Path(sys.executable).parent / "sandboxmcp"
_CITATION = re.compile(r"\b\w+:\d+-\d+")

_FUNCTIONS = """\
import ast, pathlib, sysconfig

counts = {}
for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")):
    if "site-packages" in path.parts or "dist-packages" in path.parts or "test" in path.parts:
        continue
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        continue
    functions = sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))
    counts[path.relative_to(sysconfig.get_path("stdlib"))] = functions
for path, functions in counts.items():
    print(f"module {path}: {functions} functions")
print(f"{sum(counts.values())} functions in {len(counts)} modules; most: {max(counts, key=counts.get)}")
"""

_FAILS = """\
release = dict(line.strip().split("=", 1) for line in open("/etc/os-release") if "=" in line)
print("this is", release["PRETTY_NAME"])
print("supported until", release["SUPPORT_END_DATE_OF_THIS_DEMO"])
"""


@dataclass(frozen=True)
class Job:
    """A script, and how it must end."""

    label: str
    language: str
    code: str
    ends: str


def jobs() -> list[Job]:
    """What this machine offers: its packages, the history of this repository if it is one, Python's library everywhere."""
    found = [
        Job("functions per module", "python", _FUNCTIONS, "ok"),
        Job("a script that fails", "python", _FAILS, "failed"),
        Job("a page from the network", "shell", "curl -s https://www.python.org/", "denied"),
        Job(
            "files of this project",
            "shell",
            "find . '(' -name '.?*' -o -name __pycache__ ')' -prune -o -type f -print | xargs -d '\\n' wc -lc",
            "ok",
        ),
    ]
    if shutil.which("git") and (ROOT / ".git").is_dir():
        found.insert(0, Job("history", "shell", "git log --stat", "ok"))
    if shutil.which("dpkg"):
        found.insert(0, Job("packages", "shell", "COLUMNS=160 dpkg -l", "ok"))
    return found


QUERIES = [
    "functions in asyncio base_events",
    "KeyError",
    "python3 interactive high-level object-oriented language",
    "settings table",
]


async def ask(work: Sequence[Job], data: str) -> tuple[str, dict[str, Any]]:
    """The one call: the text that the model gets, and the structured content beside it."""
    server = StdioServerParameters(
        command=str(_SERVER), args=["serve"], env={"SANDBOXMCP_DATA_DIR": data, "SANDBOXMCP_WORKSPACE": str(ROOT)}, cwd=str(ROOT)
    )
    commands = [{"label": job.label, "language": job.language, "code": job.code} for job in work]

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        print(f"  {progress:g}/{total or 0:g} {message or ''}", flush=True)

    async with Client(server, read_timeout_seconds=300) as client:
        print(f"connected to {_SERVER.name} serve over stdio, protocol {client.protocol_version}")
        answer = await client.call_tool(
            "ctx_batch_execute", {"commands": commands, "queries": QUERIES}, progress_callback=on_progress
        )
    text = "".join(getattr(part, "text", "") for part in answer.content)
    if answer.is_error:
        raise SystemExit(f"demo: ctx_batch_execute failed: {text}")
    return text, answer.structured_content or {}


def complaints(work: Sequence[Job], text: str, items: Sequence[dict[str, Any]]) -> list[str]:
    """What did not go as it must; empty when the main job works."""
    ended = {item["label"]: item["status"] for item in items}
    wrong = [
        f"{job.label!r} must end {job.ends}, but is {ended.get(job.label)}" for job in work if ended.get(job.label) != job.ends
    ]
    if not _CITATION.search(text):
        wrong.append("the answer cites nothing")
    return wrong


def main() -> int:
    work = jobs()
    print(f"{len(work)} scripts, {len(QUERIES)} queries: {', '.join(job.label for job in work)}")
    with tempfile.TemporaryDirectory(prefix="sandboxmcp-demo-") as data:
        text, structured = anyio.run(ask, work, data)
    items = structured.get("items", [])
    captured, returned = sum(item["bytes"] for item in items), len(text.encode())
    print(f"\n---------- what the agent sees ----------\n{text}\n-----------------------------------------")
    share = f"{returned / captured:.1%}" if captured else "all"
    print(f"captured {captured:,} bytes, returned {returned:,} ({share}); the rest is in the store, one search or read away")
    wrong = complaints(work, text, items)
    for line in wrong:
        print(f"demo: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
