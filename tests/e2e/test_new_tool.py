"""Adding a tool takes one file and one line: a copy of the program gets a tool, which is then seen wherever tools are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[2]
TOOL = '''\
"""The tool `ctx_greet`, at the terminal `greet`."""

from sandboxmcp.render.answer import answer
from sandboxmcp.session import Session
from sandboxmcp.tools.specs.common import BUDGET_TOKENS
from sandboxmcp.tools.toolspec import Alias, Argument, Command, ToolSpec

TONES = ("plain", "warm")


def greet(session: Session, *, names: list[str], times: int = 1, tone: str = "plain", loud: bool = False, budget_tokens: int):
    lines = [f"hello {name} ({tone}, {budget_tokens})" for name in names for _ in range(times)]
    return answer([line.upper() if loud else line for line in lines], budget_tokens, {"greeted": len(names)})


SPEC = ToolSpec(
    name="ctx_greet",
    toolset="manners",
    description="Greet people.",
    summary="greets people, or | things",
    runs="sandboxmcp.tools.specs.greet:greet",
    is_read_only=True,
    is_destructive=False,
    is_open_world=False,
    arguments=(
        Argument("names", "strings", "whom", required=True, is_positional=True),
        Argument("times", "integer", "how often", minimum=1, maximum=3, default=1, aliases=(Alias("count"),)),
        Argument("tone", "string", choices=TONES, synonyms={"kind": "warm"}, help="plain or warm.", flags=("--tone", "-t")),
        Argument("loud", "boolean", "in capitals"),
        BUDGET_TOKENS,
    ),
    commands=(Command("greet", "Greet people.\\n\\nOne line for each."),),
)
'''
SCHEMA = {
    "type": "object",
    "properties": {
        "names": {"type": "array", "items": {"type": "string"}, "description": "whom"},
        "times": {"type": "integer", "minimum": 1, "maximum": 3, "description": "how often"},
        "tone": {"type": "string", "enum": ["plain", "warm"]},
        "loud": {"type": "boolean", "description": "in capitals"},
        "budget_tokens": {"type": "integer", "minimum": 50},
    },
    "required": ["names"],
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with one tool more: a module in `specs`, and a line in the registry."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("sandboxmcp", "kernels", "policies", "scripts", "docs"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, root)
    registry = root / "sandboxmcp/tools/registry.py"
    registry.write_text(registry.read_text().replace('    "stats",\n', '    "greet",\n    "stats",\n'))
    (root / "sandboxmcp/tools/specs/greet.py").write_text(TOOL)
    return root


@pytest.fixture
def environment(environment: dict[str, str], copy: Path) -> dict[str, str]:
    """That of the other tests, with the copy in place of the program."""
    return environment | {"PYTHONPATH": str(copy), "COLUMNS": "120", "TERM": "dumb"}


@pytest.fixture
def say(project: Path, environment: dict[str, str]) -> Any:
    """Runs a command line of the copy: its exit code, and both its streams as one text."""

    def run(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "sandboxmcp", *arguments]
        ended = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=60)
        return ended.returncode, ended.stdout + ended.stderr

    return run


@pytest.mark.anyio
async def test_a_client_is_listed_the_tool_and_calls_it(server: StdioServerParameters) -> None:
    async with Client(server, read_timeout_seconds=60) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert (listed["ctx_greet"].description, listed["ctx_greet"].input_schema) == ("Greet people.", SCHEMA)
        called = await client.call_tool("ctx_greet", {"names": "Ada", "count": 2, "tone": "kind", "budget_tokens": 100.0})
        assert (text(called), called.structured_content) == ("hello Ada (warm, 100)\n" * 2, {"greeted": 1})
        default = await client.call_tool("ctx_greet", {"names": ["Ada"]})
        assert text(default) == "hello Ada (plain, 2000)\n"


@pytest.mark.anyio
async def test_its_arguments_are_checked(server: StdioServerParameters) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "ctx_greet: argument 'names' is missing. It wants a list of texts.": {},
        "ctx_greet: 'times' wants a whole number from 1 up to 3, not 4": {"names": ["Ada"], "times": 4},
        "ctx_greet: 'tone' wants one of plain, warm, not 'cold'": {"names": ["Ada"], "tone": "cold"},
    }
    async with Client(server, read_timeout_seconds=60) as client:
        answers = [await client.call_tool("ctx_greet", arguments) for arguments in wrong.values()]
        assert [text(one).strip() for one in answers] == list(wrong)
        misspelt = text(await client.call_tool("ctx_greet", {"names": ["Ada"], "lod": True}))
        assert "Did you mean 'loud'? Known: names, times, tone, loud, budget_tokens." in misspelt
        assert "ctx_greet" in text(await client.call_tool("ctx_gret", {}))


def test_it_is_a_command_with_its_flags_and_checks(say: Any) -> None:
    assert say("greet", "Ada", "Bob", "--times", "2", "-t", "warm", "--budget", "90") == (
        0,
        "hello Ada (warm, 90)\n" * 2 + "hello Bob (warm, 90)\n" * 2,
    )
    assert say("greet", "Ada", "--loud") == (0, "HELLO ADA (PLAIN, 2000)\n")
    assert say("greet", "Ada", "--times", "4") == (2, "sandboxmcp: greet: --times wants a whole number from 1 up to 3, not 4\n")
    assert say("greet")[0] == 2 and '"greeted": 1' in say("greet", "Ada", "--json")[1]


def test_help_shows_it(say: Any) -> None:
    assert re.search(r"greet +Greet people\.", say("--help")[1])
    shown = say("greet", "--help")[1]
    wanted = (
        r"names\.\.\. +<list\[str\]> +whom",
        r"--times .*how often \[default: 1\]",
        r"--tone .*plain or warm\.",
        "One line for each",
    )
    assert [pattern for pattern in wanted if not re.search(pattern, shown)] == []


def test_the_table_in_the_readme_gets_a_row(copy: Path, environment: dict[str, str]) -> None:
    script = [sys.executable, "-P", str(copy / "scripts/reference.py")]
    checked = subprocess.run([*script, "--check"], env=environment, capture_output=True, text=True, timeout=60)
    row = "| `ctx_greet` | greets people, or \\| things |\n"
    assert (checked.returncode, f"+{row}" in checked.stdout) == (1, True)
    subprocess.run(script, env=environment, check=True, timeout=60)
    (before, after) = (copy / "README.md").read_text().split(row)
    assert before + after == (ROOT / "README.md").read_text()


def text(answer: Any) -> str:
    """What the model is told, each line ended."""
    return "".join(f"{part.text}\n" for part in answer.content)
