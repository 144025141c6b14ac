"""More than 200 calls through a real client and at a real command line, compared byte for byte with what was recorded.

Handles are numbered in the order in which they were stored; times, sizes of memory, process numbers and folders are replaced by
words. Record anew with SANDBOXMCP_GOLDEN=write, and read the difference: each changed byte belongs into the commit that changes it.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]
CALLS = Path(__file__).parent.parent / "golden" / "calls"
Call = tuple[str, dict[str, Any]]
Step = Call | list[str]
"""A tool with its arguments, or the words of a command line."""

LOG = """for n in range(2000):
    said = f"ERROR disk full on node {n}" if n % 401 == 0 else f"INFO request served path=/api/v{n % 13}"
    print(f"2026-01-01 00:00:{n % 60:02} worker-{n % 7} {said}")
"""
TABLE = "for n in range(900): print(f'{n},{n * n},city{n % 17}')"
MARKDOWN = """# Notes

## Install

Run `make demo` first.

## Errors

A connection reset means that the peer closed.

## Caching

Cached pages live a day.
"""


def execute(code: str, **more: Any) -> Call:
    return "ctx_execute", {"code": code, **more}


def shell(code: str, **more: Any) -> Call:
    return execute(code, language="shell", **more)


def batch(*commands: Any, **more: Any) -> Call:
    return "ctx_batch_execute", {"commands": list(commands), **more}


def search(*queries: str, **more: Any) -> Call:
    return "ctx_search", {"queries": list(queries), **more}


def tool(name: str, **arguments: Any) -> Call:
    return f"ctx_{name}", arguments


GROUPS: dict[str, list[Step]] = {
    "execute": [
        execute("print(6 * 7)"),
        execute(""),
        execute("x = 1"),
        execute("6 * 7"),
        execute("'text'"),
        execute("import sys; print('out'); print('err', file=sys.stderr)"),
        execute("1/0"),
        execute("def f(n):\n    return f(n + 1)\nf(0)", budget_tokens=300),
        execute("import sys; sys.exit(3)"),
        execute("raise SystemExit('no')"),
        execute("import os; os.kill(os.getpid(), 9)"),
        execute("import os; os._exit(7)"),
        execute("print('é€😀 ' * 3)"),
        execute("print('\\x1b[31mred\\x1b[0m')"),
        execute("print('a\\rb\\rc')"),
        execute("import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\x00binary')"),
        execute("print('x' * 4999)"),
        execute("print('x' * 5001)"),
        execute("print('x' * 100000)", budget_tokens=200),
        execute("for n in range(40): print('same line')"),
        execute("while True: pass", timeout_s=0.5),
        execute("print('before', flush=True)\nwhile True: pass", timeout_s=0.5),
        execute("def (:"),
        execute("import requests"),
        execute("import urllib.request; urllib.request.urlopen('https://example.org')"),
        execute("import no_such_module_here"),
        execute("open('/etc/shadow')"),
        execute("open('made.txt', 'w').write('x'); print(open('made.txt').read())"),
        execute("print('token ghp_' + 'a1B2c3D4' * 5)"),
        execute("from IPython.display import display, HTML; display(HTML('<b>x</b>'))"),
        execute("print(input())"),
        execute("print(1)", language="py"),
        execute("puts 6*7", language="ruby"),
        execute("console.log(6*7)", language="javascript"),
        execute("print 6*7", language="perl"),
        execute("x", language="cobol"),
        execute("print(1)", cwd="no/such/folder"),
        execute("print(1)", cwd="/"),
        execute("print(1)", timeout_s=0),
        execute("print(1)", timeout_s="soon"),
        execute("print(1)", budget_tokens=49),
        execute("print(1)", budget_tokens=50),
        execute("print(1)", budget=50),
        execute("print('\\0')"),
        ("ctx_execute", {}),
        ("ctx_execute", {"code": 7}),
        ("ctx_execute", {"code": "print(1)", "language": None}),
        ("ctx_nothing", {"code": "print(1)"}),
    ],
    "shell": [
        shell("echo hello"),
        shell("echo out; echo err >&2; exit 4"),
        shell("false"),
        shell("no_such_command_here"),
        shell("seq 1 3000", intent="2500"),
        shell("seq 1 3000 | sed 's/^/a rather long line of output with the number /'", budget_tokens=90),
        shell("seq 1 3000 | tail -3"),
        shell("sleep 9", timeout_s=0.3),
        shell("sleep 9 & echo started"),
        shell("curl https://example.org"),
        shell("curl -sS -o page.html https://example.org", timeout_s=20),
        shell("wget -q -O page.html https://example.org", timeout_s=20),
        shell("curl --version | head -1 | cut -d' ' -f1"),
        shell("rm -rf /"),
        shell("echo x > .git/hooks/pre-commit"),
        shell("kill -9 $$"),
        shell("kill -TERM $$"),
        shell("printf 'no newline'"),
        shell("cat /dev/zero | head -c 20000 | tr '\\0' 'z'", budget_tokens=120),
        shell("echo 'unclosed"),
        shell("python3 -c 'print(1)'"),
        shell('for n in $(seq 400); do echo "row $n value $((n * 3))"; done', queries=["row 77", "value 900"]),
        shell('for n in $(seq 400); do echo "row $n value $((n * 3))"; done', queries=["nothing like it"]),
    ],
    "batch": [
        batch("echo one", "echo two"),
        batch({"label": "a", "command": "echo one"}, {"label": "b", "code": "print(2)", "language": "python"}),
        batch({"label": "same", "command": "echo 1"}, {"label": "same", "command": "echo 2"}),
        batch({"label": "log", "code": LOG, "language": "python"}, queries=["disk full"]),
        batch({"label": "log", "code": LOG, "language": "python"}, queries=["disk full", "worker-3"], budget_tokens=300),
        batch({"label": "log", "code": LOG, "language": "python"}, intent="errors", budget_tokens=160),
        batch({"label": "log", "code": LOG, "language": "python"}, budget_tokens=385),
        batch({"label": "table", "code": TABLE, "language": "python"}, queries=["city13 11025"], budget_tokens=20000),
        batch(
            {"label": "ok", "command": "echo fine"}, {"label": "bad", "command": "exit 2"}, {"label": "den", "command": "curl x"}
        ),
        batch({"command": "exit 2"}, {"command": "echo never"}, stop_on_error=True, concurrency=1),
        batch({"command": "sleep 9", "timeout_s": 0.3}, {"command": "echo beside"}),
        batch({"label": "x" * 300, "command": "echo long label"}),
        batch({"label": "two\nlines", "command": "echo odd label"}),
        batch({"language": "cobol", "code": "x"}, "echo beside"),
        batch({"label": "neither"}),
        batch(),
        batch("echo 1", concurrency=0),
        batch("echo 1", concurrency=99),
        batch("echo 1", queries=[]),
        batch("echo 1", queries=["x"] * 3, budget_tokens=80),
        batch("echo needle-in-batch", queries=["needle"], query_scope="all"),
        batch("echo 1", query_scope="everything"),
        batch("echo 1", surprise=True),
        batch(*[f"echo item {n}" for n in range(12)], budget_tokens=800),
        batch(*[f"seq {n} 2000" for n in range(3)], budget_tokens=50),
        batch("not json", commands="x"),
    ],
    "kernels": [
        execute("x = 41", kernel="k"),
        execute("x + 1", kernel="k"),
        execute("print(x)", kernel="other"),
        execute("while True: pass", kernel="k", timeout_s=0.5),
        execute("x", kernel="k"),
        execute("import os; os._exit(3)", kernel="dying"),
        execute("1", kernel="dying"),
        execute("echo 1", kernel="k", language="shell"),
        execute("1", kernel="bad name!"),
        execute("1", kernel=""),
        tool("kernels", action="interrupt", kernel="k"),
        tool("kernels", action="restart", kernel="k"),
        execute("x", kernel="k"),
        tool("kernels", action="stop", kernel="other"),
        tool("kernels", action="stop", kernel="other"),
        tool("kernels", action="interrupt"),
        tool("kernels", action="dance", kernel="k"),
        tool("kernels", action="stop", kernel="k"),
        tool("kernels", action="stop", kernel="dying"),
        tool("kernels"),
        tool("kernels", action="list"),
    ],
    "jobs": [
        tool("jobs"),
        execute("print('done')", background=True),
        tool("jobs", action="result"),
        tool("jobs", action="result", job="nojob1"),
        tool("jobs", action="cancel", job="nojob1"),
        tool("jobs", action="pause"),
        execute("1", background=True, kernel="bad name!"),
    ],
    "files": [
        tool("execute_file", path="one.txt", code="print(FILE_PATH[-7:], len(FILE_CONTENT))"),
        tool("execute_file", paths=["*.txt"], code="print(FILE_PATH[-7:], FILE_CONTENT[:4])"),
        tool("execute_file", path="one.txt", code='basename "$FILE_PATH"', language="shell"),
        tool("execute_file", path="none.txt", code="print(1)"),
        tool("execute_file", paths=["*.none"], code="print(1)"),
        tool("execute_file", path="../outside", code="print(1)"),
        tool("execute_file", path="/etc/passwd", code="print(1)"),
        tool("execute_file", path="folder", code="print(1)"),
        tool("execute_file", path=".env", code="print(FILE_CONTENT)"),
        tool("execute_file", code="print(1)"),
        tool("execute_file", path="one.txt", code="1/0"),
        tool("execute_file", paths=["one.txt", "two.txt"], code="print(FILE_CONTENT)", intent="second", budget_tokens=100),
    ],
    "knowledge": [
        tool("index", content=MARKDOWN, source="notes"),
        tool("index", content=MARKDOWN, source="notes"),
        tool("index", content="", source="empty"),
        tool("index", path="one.txt"),
        tool("index", path="."),
        tool("index", path=".", include=["*.md"], max_files=1),
        tool("index", path="*.txt", exclude=["two*"]),
        tool("index", path="none.txt"),
        tool("index", path="/etc/passwd"),
        tool("index", path=".env"),
        tool("index"),
        tool("index", content="x", path="y"),
        tool("index", content="a b c", source="x", max_files=0),
        search("caching"),
        search("connecton rest"),
        search("install", "errors", "nothing at all like it"),
        search("make demo", kind="code"),
        search("make demo", source="notes"),
        search("make demo", source="no such label"),
        search("the", limit=1),
        search("the", limit=1, sort="recent"),
        search("", budget_tokens=100),
        search(),
        search("x", kind="poem"),
        search("x", limit=0),
        search("install", budget_tokens=60),
        search("install", scope="all"),
        search("install", scope="session"),
        search('"connection reset"'),
        search("a" * 5000),
        tool("read", handle="H1"),
        tool("read", handle="H1:3-5"),
        tool("read", handle="H1", from_line=7),
        tool("read", handle="H1", from_line=7, to_line=3),
        tool("read", handle="H1", from_line=700),
        tool("read", handle="H1", grep="cached"),
        tool("read", handle="H1", grep="no such text"),
        tool("read", around="H1:5-5"),
        tool("read", handle="H1", budget_tokens=60),
        tool("read", handle="nohandle"),
        tool("read", handle="H1:x-y"),
        tool("read"),
        tool("sources"),
        tool("sources", source="notes"),
        tool("sources", action="forget", handle="H2"),
        tool("sources", action="forget", handle="H2"),
        tool("sources", action="forget"),
        tool("sources", action="burn"),
        tool("purge", scope="source", source="no such label"),
        tool("purge", scope="everything"),
        tool("purge"),
        tool("purge", scope="all", dry_run=False),
        tool("purge", scope="all", dry_run=False, confirm="wrong"),
        tool("fetch_and_index", url="not a url"),
        tool("fetch_and_index", url="http://127.0.0.1:9/x"),
        tool("fetch_and_index", url="file:///etc/passwd"),
        tool("fetch_and_index"),
        tool("fetch_and_index", requests=[]),
    ],
    "terminal": [
        ["version"],
        ["run", "-c", "print(6*7)"],
        ["run", "-c", "print(6*7)", "--json"],
        ["run", "-c", "1/0"],
        ["run", "-c", "1/0", "--json"],
        ["run", "--lang", "shell", "-c", "echo hi; exit 5"],
        ["run", "--lang", "shell", "-c", "curl https://example.org"],
        ["run", "--lang", "shell", "-c", "curl https://example.org", "--json"],
        ["run", "--lang", "shell", "-c", "sleep 9", "--timeout", "0.3"],
        ["run", "one.txt"],
        ["run", "none.py"],
        ["run", "--lang", "cobol", "-c", "x"],
        ["run"],
        ["run", "--lang", "shell", "-c", "seq 2000", "--budget", "80"],
        ["run", "--lang", "shell", "-c", "seq 2000", "--query", "1234", "--budget", "80"],
        ["run", "-c", "print(1)", "--budget", "1"],
        ["run", "-c", "print(1)", "--surprise"],
        ["index", "one.txt", "two.txt"],
        ["index", "one.txt", "--json"],
        ["index", "none.txt"],
        ["index", "/etc/passwd", "--json"],
        ["search", "first"],
        ["search", "first", "--json"],
        ["search", "first", "--limit", "0"],
        ["search", "nothing at all"],
        ["read", "nohandle"],
        ["read", "nohandle", "--json"],
        ["sources", "--source", "no such label"],
        ["sources", "--forget", "nohandle"],
        ["purge", "--scope", "source", "--source", "no such label"],
        ["fetch", "http://127.0.0.1:9/x"],
        ["fetch", "not a url", "--json"],
        ["policy", "explain", "curl https://example.org"],
        ["policy", "explain", "--json", "curl -sS -o x https://example.org"],
        ["policy", "explain", "rm -rf /"],
        ["policy", "check", "one.txt"],
        ["policy", "check", "none.sh"],
        ["policy", "show", "none"],
        ["kernels", "list"],
        ["kernels", "stop", "none"],
        ["kernels", "interrupt", "none", "--json"],
        ["jobs", "list"],
        ["jobs", "result", "none"],
        ["jobs", "cancel", "none", "--json"],
        ["workspace", "diff"],
        ["no-such-command"],
        ["run", "-c", "print(1)", "--workspace", "/"],
        ["run", "-c", "print(1)", "--policy-packs", "none"],
    ],
}


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """Items one after the other, so that handles are given in order."""
    return {**environment, "SANDBOXMCP_CONCURRENCY": "1"}


@pytest.fixture
def place(tmp_path: Path, project: Path) -> Path:
    """A project with a few files, in a folder of its own."""
    (project / "one.txt").write_text("first line of one\nlast line of one\n")
    (project / "two.txt").write_text("first line of two\nthe second text\n")
    (project / "notes.md").write_text(MARKDOWN)
    (project / "folder").mkdir()
    (project / ".env").write_text("KEY=value-of-the-key\n")
    (project.parent / "outside").write_text("x\n")
    return tmp_path


class Normal:
    """Replaces what differs between two runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handles: dict[str, str] = {}

    def _look(self) -> None:
        database = next(iter((self._folder / "data").rglob("*.db")), None)
        if database is None:
            return
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as store:
            for (handle,) in store.execute("SELECT handle FROM sources ORDER BY id"):
                self._handles.setdefault(handle, f"H{len(self._handles) + 1}")

    def real(self, value: Any) -> Any:
        """Arguments with the handles that their numbers stand for."""
        self._look()
        names = {number: handle for handle, number in self._handles.items()}
        return json.loads(re.sub(r"\bH\d+\b", lambda match: names.get(match[0], match[0]), json.dumps(value)))

    def __call__(self, text: str) -> str:
        self._look()
        for handle, number in self._handles.items():
            text = re.sub(rf"(?:\b|(?<=\\n)){handle}\b", number, text)
        for pattern, word in REPLACED:
            text = re.sub(pattern, word, text)
        text = text.replace(str(Path(__file__).parents[2]), "CHECKOUT")
        return text.replace(f"{self._folder}/project", "PROJECT").replace(str(self._folder), "PLACE")


REPLACED = (
    (r"([xz])\1{19,}", r"\1…"),  # how many of a long line fit depends on how long the times are
    (r'("(?:\w+_s|\w+_at|memory)": ?)[\d.e-]+', r"\1N"),
    (r" \+ \d+(?:\.\d+)?m?s indexing\b", ""),  # told where it takes longer than the script, as on a busy machine
    (r"\b\d+(?:\.\d+)? ?(?:ms|µs|s)\b", "T"),
    (r"\b\d+(?:\.\d+)? ?MiB\b", "M MiB"),
    (r"\bj[0-9a-f]{6}\b", "JOB"),
    (r"\b(?:just now|\d+ (?:seconds?|minutes?) ago)\b", "AGO"),
    (r"pid \d+", "pid P"),
    (r"\d+\.\d+\.\d+", "VERSION"),
)


def compare(name: str, lines: list[str]) -> None:
    file, text = CALLS / f"{name}.txt", "\n".join(lines) + "\n"
    if os.environ.get("SANDBOXMCP_GOLDEN") == "write":
        file.write_text(text)
    differences = "\n".join(unified_diff(file.read_text().splitlines(), text.splitlines(), "recorded", "now", n=3, lineterm=""))
    assert not differences, differences


def test_there_are_more_than_two_hundred() -> None:
    assert sum(map(len, GROUPS.values())) >= 200


@pytest.mark.parametrize("name", [name for name in GROUPS if name != "terminal"])
async def test_calls_through_a_client_answer_as_recorded(name: str, place: Path, server: StdioServerParameters) -> None:
    normal, lines = Normal(place), list[str]()
    async with Client(server) as client:
        for step in GROUPS[name]:
            assert isinstance(step, tuple)
            lines += [f"=== {step[0]} {json.dumps(step[1], ensure_ascii=False)}"]
            try:
                result = await client.call_tool(step[0], normal.real(step[1]), read_timeout_seconds=90)
                facts = json.dumps(result.structured_content, ensure_ascii=False) if result.structured_content else ""
                answer = "\n".join(one.text if one.type == "text" else f"<{one.type}>" for one in result.content)
                lines += [f"--- {'error' if result.is_error else 'ok'}", normal(answer), *(["---", normal(facts)] if facts else [])]
            except Exception as error:
                lines += ["--- refused", normal(str(error))]
    compare(name, lines)


def test_commands_at_a_terminal_answer_as_recorded(place: Path, project: Path, environment: dict[str, str]) -> None:
    normal, lines = Normal(place), list[str]()
    for step in GROUPS["terminal"]:
        assert isinstance(step, list)
        command = [sys.executable, "-m", "sandboxmcp", *step]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL
        )
        lines += [f"=== {' '.join(step)}", f"--- exit {done.returncode}", normal(done.stdout)]
        lines += ["--- stderr", normal(done.stderr)] if done.stderr else []
    compare("terminal", lines)
