"""What the pages say exists, exists; and no text that a model is sent tells it how to phrase its answers."""

import ast
import functools
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sandboxmcp.cli.app import run_command_line
from sandboxmcp.core.settings import KEYS

ROOT = Path(__file__).resolve().parents[1]
PAGES = {name: (ROOT / name).read_text() for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md")}
README = PAGES["README.md"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EVERYTHING = "\n".join(PAGES.values())


def _code(page: str) -> str:
    """Code spans and code blocks, one a line: prose that happens to say "make sure" is no make target."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.M | re.S)
    return "\n".join(blocks + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)))


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def _tree(page: str) -> list[str]:
    """Paths of the tree block: two blanks of indent a level, the first word is the name, folders end in a slash."""
    (block,) = re.findall(r"^```text\n(sandboxmcp/ .*?)^```", page, re.M | re.S)
    paths: list[str] = []
    parents: list[str] = []
    for line in block.splitlines():
        name, depth = line.split()[0], (len(line) - len(line.lstrip())) // 2
        parents = [*parents[:depth], name]
        paths.append("".join(parents))
    return paths


def test_every_make_target_that_a_page_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", _code(EVERYTHING)))

    assert named - _targets() == set()


def test_the_two_commands_of_the_readme_are_make_demo_and_make_test() -> None:
    assert {"demo", "test"} <= set(re.findall(r"^make ([a-z]+)", _code(README), re.M))


def test_make_alone_lists_every_target_that_a_page_names() -> None:
    listed = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert set(re.findall(r"\bmake ([a-z-]+)", _code(EVERYTHING))) <= set(re.findall(r"make ([a-z-]+)", listed))


def test_every_line_of_the_tree_exists() -> None:
    assert [path for path in _tree(README) if not (ROOT / path).exists() or path.endswith("/") != (ROOT / path).is_dir()] == []


def test_the_tree_names_every_room_and_every_package() -> None:
    shipped = {f"sandboxmcp/{child.parent.name}/" for child in (ROOT / "sandboxmcp").glob("*/__init__.py")}
    rooms = {f"{name}/" for name in ("kernels", "policies", "tests", "benchmarks", "docs", "scripts")}

    assert (shipped | rooms) - set(_tree(README)) == set()


def test_every_relative_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", EVERYTHING)

    assert [link for link in links if not (ROOT / link).exists()] == []


def _named_commands() -> set[str]:
    """`serve`, `policy check`, and each of `sandboxmcp serve | run | …`."""
    lines = re.findall(r"\bsandboxmcp ([a-z]+(?: \| [a-z]+)*)(?: (check|test|list|explain)\b)?", _code(EVERYTHING))
    return {f"{name} {sub}".strip() for names, sub in lines for name in names.split(" | ")}


def test_every_command_that_a_page_names_answers_help(capfd: pytest.CaptureFixture[str]) -> None:
    named = _named_commands()
    answers = {name: (run_command_line([*name.split(), "--help"]), capfd.readouterr().out) for name in sorted(named)}

    assert {"serve", "run", "search", "read", "doctor"} <= named
    assert {name: said for name, said in answers.items() if said[0] or "Usage" not in said[1]} == {}


def test_every_exit_code_that_the_readme_lists_is_one_of_ours() -> None:
    errors = ast.parse((ROOT / "sandboxmcp/core/errors.py").read_text())
    raised = {
        node.value.value
        for node in ast.walk(errors)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
    }

    assert {int(row) for row in re.findall(r"^\| (\d) \|", README, re.M)} == raised | {0}


def test_every_tool_that_a_page_names_is_served() -> None:
    assert set(re.findall(r"\bctx_\w+", EVERYTHING)) - {tool["name"] for tool in _served()["tools"]} == set()


def test_the_readme_names_every_tool() -> None:
    assert {tool["name"] for tool in _served()["tools"]} - set(re.findall(r"\bctx_\w+", README)) == set()


def test_every_pack_that_is_shipped_is_named_in_the_readme_and_the_other_way_round() -> None:
    assert set(re.findall(r"policies/(\w+)\.toml", README)) == {pack.stem for pack in (ROOT / "policies").glob("*.toml")}


def test_every_setting_that_a_page_names_exists() -> None:
    ours = {key.variable for key in KEYS} | {"SANDBOXMCP_SANDBOX"}  # the last one is for the tests alone

    assert set(re.findall(r"\bSANDBOXMCP_[A-Z_]+", EVERYTHING)) - ours == set()


def test_the_settings_page_is_what_the_table_says() -> None:
    assert (ROOT / "docs/settings.md").read_text() == _script("reference").settings_page()


def test_json_examples_parse() -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", README, re.M | re.S)

    assert [json.loads(block) for block in blocks] != []


def test_the_changelog_opens_with_the_current_version() -> None:
    versions = re.findall(r"^## (\S+)", PAGES["CHANGELOG.md"], re.M)

    assert versions[0] == PROJECT["version"]


def test_the_constraints_hold_names_and_versions_only() -> None:
    lines = (ROOT / "constraints-dev.txt").read_text().splitlines()

    assert [line for line in lines if not re.fullmatch(r"#.*|[a-z0-9-]+==[\w.+]+( ; .+)?", line)] == []


PHRASING = re.compile(
    r"\b(?:be|stay|keep it) (?:brief|concise|terse|short|polite|verbose)\b"
    r"|\b(?:your|the final) (?:answer|reply|response|wording|tone|style)s?\b"
    r"|\b(?:respond|reply) (?:with|in|only|briefly)\b|\bin your own words\b"
    r"|\b(?:tell|inform|remind|apologi[sz]e to|explain to) the user\b"
    r"|\b(?:no|avoid|skip|drop|without) (?:filler|pleasantries|preamble|hedging|articles|markdown|emoji)\b"
    r"|\b(?:use|prefer) (?:bullet|short sentences|fragments|plain prose)\b|\b(?:at most|under) \d+ (?:words|sentences)\b",
    re.I,
)


def test_no_text_that_a_model_is_sent_says_how_to_phrase_its_answers() -> None:
    assert [(where, text) for where, text in _texts_for_a_model() if PHRASING.search(text)] == []


TELLING = ["Be concise.", "Reply with one word", "Keep your answer short", "Tell the user that", "in under 100 words"]


@pytest.mark.parametrize("text", TELLING)
def test_the_scan_would_see_such_a_text(text: str) -> None:
    assert PHRASING.search(text)


def _texts_for_a_model() -> Iterator[tuple[str, str]]:
    yield "what the server lists", json.dumps(_served())
    for file in sorted((ROOT / "policies").glob("*.toml")):
        yield file.name, file.read_text()
    for room in ("tools", "server", "policy", "store", "core", "sandbox", "kernels"):
        for file in sorted((ROOT / "sandboxmcp" / room).rglob("*.py")):
            yield from ((file.name, text) for text in _strings(file))


def _strings(file: Path) -> Iterator[str]:
    """Every text constant of a module; docstrings are for people."""
    tree = ast.parse(file.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


@functools.cache
def _served() -> dict[str, Any]:
    """What a client gets before it calls anything: the instructions and the tools, from a started server."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "docs", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]
    command = [sys.executable, "-m", "sandboxmcp", "serve"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.writelines(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n" for message in messages)
        server.stdin.flush()
        answers = {answer["id"]: answer["result"] for answer in (json.loads(server.stdout.readline()) for _ in range(2))}
        server.stdin.close()
    return {"instructions": answers[1].get("instructions"), "tools": answers[2]["tools"]}


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
