"""What the README shows of people's kernels is done as it is written there: the script, and joining an agent's kernel."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from mcp import Client

from sandboxmcp.cli.app import run_command_line

pytestmark = [pytest.mark.usefixtures("sandbox")]
README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_script_of_a_plain_jupyter_client_works_as_it_is_written(
    tmp_path: Path, project: Path, environment: dict[str, str]
) -> None:
    (script,) = re.findall(r"^```python\n(from jupyter_client.*?)^```", README, re.M | re.S)
    assert run_command_line(["kernels", "install", "--prefix", str(tmp_path / "prefix")]) == 0
    variables = {**environment, "JUPYTER_PATH": str(tmp_path / "prefix/share/jupyter"), "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", script], cwd=project, env=variables, capture_output=True, text=True, timeout=90)
    assert (ended.returncode, ended.stdout, inside(project)) == (0, "42 in sandbox\nKeyboardInterrupt\n", []), ended.stderr
    assert "FileNotFoundError" in ended.stderr and os.listdir(project) == []
    assert "`42 in sandbox`, a FileNotFoundError and `KeyboardInterrupt`" in README


def inside(project: Path) -> list[str]:
    """The numbers of all processes that have the project mounted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [folder.name] if str(project) in (folder / "mountinfo").read_text() else []
    return found


LOAD = """
import collections, csv
rows = list(csv.DictReader(open('access.csv')))
print(len(rows), 'requests')
"""
SLOWEST = "for row in sorted(rows, key=lambda row: -int(row['ms'])): print(row['path'], row['ms'], 'ms')"


@pytest.mark.anyio
async def test_a_person_joins_the_kernel_of_an_agents_batch_as_the_transcript_shows(
    server: Any, command: list[str], project: Path, environment: dict[str, str]
) -> None:
    rows = [{"path": f"/{'checkout' if n % 5 == 0 else 'cart'}", "ms": str(n % 400)} for n in range(2_400)]
    (project / "access.csv").write_text("path,ms\n" + "".join(f"{row['path']},{row['ms']}\n" for row in rows))
    typed = re.findall(r"^(?:terminal|analysis@\d+)> (.*)$", README, re.M)
    assert typed[:2] == [":kernels", ":connect analysis"] and len(typed) == 5
    counted = collections.Counter(row["path"] for row in rows if int(row["ms"]) > 300)

    def shell() -> subprocess.CompletedProcess[str]:
        argv = [*command[:3], "shell"]
        text = "\n".join(typed) + "\n"
        return subprocess.run(argv, input=text, cwd=project, env=environment, capture_output=True, text=True, timeout=90)

    async with Client(server) as client:
        items = [{"label": "load", "code": LOAD, "language": "python", "kernel": "analysis"}]
        items.append({"label": "slowest", "code": SLOWEST, "language": "python", "kernel": "analysis"})
        batch = await client.call_tool("ctx_batch_execute", {"commands": items, "concurrency": 1}, read_timeout_seconds=90)
        said = await anyio.to_thread.run_sync(shell)
        again = {"code": "print(by_path.most_common(1))", "kernel": "analysis"}
        after = await client.call_tool("ctx_execute", again, read_timeout_seconds=60)
    assert re.search(r"^load: ok, .*\n\| 2400 requests\nslowest: ok, .* 2400 lines$", batch.content[0].text, re.M)
    assert (said.returncode, str(dict(counted)) in said.stdout, "{'path': '/checkout', 'ms': '0'}" in said.stdout) == (
        0,
        True,
        True,
    )
    assert re.search(r"^analysis@\d+\tpython\tthis project\tidle\t2\t", said.stdout, re.M)
    assert after.content[0].text.endswith(f"| {counted.most_common(1)}")
