"""Exit codes, one line of error, one document of JSON; no command here needs a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.settings import KEYS

COMMANDS = [
    "help",
    "serve",
    "run",
    "shell",
    "search",
    "index",
    "read",
    "sources",
    "doctor",
    "stats",
    "version",
    "policy",
    "jobs",
    "completion",
]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nope", "No such command 'nope'"),
        ("run --nope", "No such option: --nope"),
        ("run", "either a FILE"),
        ("run missing.py", "missing.py cannot be read"),
        ("run -c 1 --budget 49", "--budget is 49, the minimum is 50"),
        ("run -c 1 --lang pyton", "Did you mean 'python'?"),
        ("run -c 1 --limits-memory none", "flag --limits-memory wants a size"),
        ("read nope", "no source 'nope'. sandboxmcp sources lists them."),
        ("search x --kind fish", "search: --kind wants one of code, prose, log, data"),
        ("read", "sandboxmcp read wants a handle or --around"),
        ("index *.nope", "no file matches '*.nope'"),
        ("serve --surface round", "unknown surface 'round'"),
        ("index missing.md", "No such file"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_two(say: Any, line: str, message: str) -> None:
    said = say(*line.split())
    assert (said.code, said.out, said.err.count("\n"), message in said.err) == (2, "", 1, True)


def test_with_json_an_error_is_one_document_too(say: Any) -> None:
    said = say("read", "nope", "--json")
    assert (said.code, said.document["ok"], said.document["exit_code"]) == (2, False, 2)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("index -", 2),
        ("search x", 0),
        ("sources", 0),
        ("sources --forget nope", 2),
        ("fetch http://[", 2),
        ("purge all", 0),
        ("purge nope", 2),
        ("kernels list", 0),
        ("kernels stop nope", 2),
        ("jobs list", 0),
        ("jobs cancel nope", 2),
        ("workspace diff", 0),
        ("policy list", 0),
        ("policy explain ls", 0),
        ("policy explain curl", 0),
        ("policy log", 0),
        ("stats", 0),
        ("version", 0),
        ("completion bash", 0),
        ("completion tcsh", 2),
        ("help", 0),
        ("help search", 0),
        ("help nope", 2),
        ("nope", 2),
        ("stats --data-dir /dev/null/x", 5),
        ("run -c 1 --policy-packs nope", 6),
    ],
)
def test_with_json_every_command_gives_one_document(say: Any, line: str, code: int) -> None:
    said = say(*line.split(), "--json")
    assert (said.code, said.document["ok"]) == (code, code == 0)


def test_an_index_is_searched_read_listed_and_forgotten(say: Any) -> None:
    Path("notes.md").write_text("# Animals\n\nThe zebra runs.\n")
    handle = say("index", "notes.md", "--json").document["handle"]
    assert "| The zebra runs." in say("search", "zebra").out
    assert say("read", f"{handle}:1-1").out.endswith("| # Animals\n")
    assert say("read", "--around", f"{handle}:1-1").out.endswith("| # Animals\n|\n| The zebra runs.\n")
    assert say("sources", "--json").document["sources"][0]["label"] == "file:notes.md"
    assert (say("sources", "--forget", handle).code, say("read", handle).code) == (0, 2)


def test_standard_input_is_indexed_as_a_text(say: Any) -> None:
    assert say("index", "-", "--source", "piped", stdin=b"a giraffe\n").code == 0
    assert "| a giraffe" in say("search", "giraffe", "--source", "piped").out


@pytest.mark.parametrize(("code", "exit_code", "action"), [("ls -la", 0, "allow"), ("curl http://example.com", 3, "deny")])
def test_the_policy_is_asked_without_running_anything(say: Any, code: str, exit_code: int, action: str) -> None:
    said = say("policy", "check", "-", "--json", stdin=code.encode())
    assert (said.code, said.document["action"]) == (exit_code, action)


def test_the_ending_of_a_file_names_the_language_that_is_judged(say: Any) -> None:
    Path("fetch.py").write_text("import requests\n")
    assert (say("policy", "check", "fetch.py").code, say("policy", "check", "fetch.py", "--lang", "shell").code) == (3, 0)


def test_a_broken_pack_is_exit_code_six(say: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("not = [toml")
    assert say("policy", "check", "-", "--policy-packs", str(tmp_path / "bad.toml")).code == 6


def test_a_store_that_cannot_be_opened_is_exit_code_five(say: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert say("search", "x", "--data-dir", str(tmp_path / "file")).code == 5


def test_the_version_is_printed(say: Any) -> None:
    assert say("version", "--json").document["version"] == say("version").out.strip() == say("--version").out.strip()


def test_without_a_command_the_help_is_printed_and_nothing_more(say: Any) -> None:
    bare = say()
    assert (bare.code, bare.err, bare.out.strip()) == (0, "", say("--help").out.strip())
    assert say("help").out.strip() == bare.out.strip()


def test_the_help_of_a_command_names_the_settings_that_act_there_and_where_the_others_are(say: Any) -> None:
    help_ = say("search", "--help").out
    assert [word in help_ for word in ("--workspace", "--limits-memory", "--budget-tokens")] == [True, False, False]
    assert "Settings: sandboxmcp help settings" in help_ and say("help", "search").out == help_


def test_a_flag_that_the_help_hides_works(say: Any) -> None:
    assert "70 tokens" not in say("search", "x", "--budget-tokens", "70", "--limits-memory", "1g").err
    assert "flag --budget-tokens wants a whole number from 50" in say("search", "x", "--budget-tokens", "7").err


def test_the_settings_are_listed_with_what_is_in_force(say: Any) -> None:
    assert "--budget-tokens  SANDBOXMCP_BUDGET_TOKENS  [70]" in say("help", "settings", "--budget-tokens", "70").out
    rows = say("help", "settings", "--json").document["settings"]
    assert [row["flag"] for row in rows] == ["--" + key.name.replace("_", "-").replace(".", "-") for key in KEYS]


def test_calls_from_the_command_line_are_counted(say: Any) -> None:
    say("index", "-", stdin=b"a giraffe\n")
    say("search", "giraffe")
    tools = say("stats", "--json").document["tools"]
    assert {name: facts["calls"] for name, facts in tools.items()} == {"ctx_index": 1, "ctx_search": 1}


def test_the_help_is_short_and_lists_daily_commands_first(say: Any) -> None:
    lines = say("--help").out.splitlines()
    names = [words[1] for line in lines if (words := line.split()) and words[0] == "│" and words[1].isalpha()]
    assert (len(lines) < 40, names[:4], names[-1]) == (True, ["run", "shell", "search", "read"], "help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_that_says_what_it_does(say: Any, command: str) -> None:
    said = say(command, "--help")
    assert (said.code, len(said.out) > 200, "Usage:" in said.out) == (0, True, True)


def test_nothing_heavy_is_imported_before_a_command_needs_it() -> None:
    heavy = {"mcp", "jupyter_client", "sqlite_utils", "tree_sitter", "zmq", "pathspec"}
    script = f"import sys, sandboxmcp.cli.app; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_misspelt_variable_is_told_once_on_stderr_and_changes_nothing_else(say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANDBOXMCP_LIMTS_MEMORY", "1GiB")
    said = say("policy", "explain", "--json", "--", "ls")
    note = "sandboxmcp: note: the variable SANDBOXMCP_LIMTS_MEMORY is no setting and changes nothing; did you mean"
    assert (said.code, said.document["verdict"], said.err) == (0, "allow", f"{note} SANDBOXMCP_LIMITS_MEMORY?\n")


def test_a_module_that_a_script_left_in_the_project_is_not_imported(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    for name in ("typer", "json", "sqlite_utils", "anyio"):
        (project / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\n")
    root, home = Path(__file__).parents[2], tmp_path / "home"
    environment = {**os.environ, "PYTHONPATH": str(root), "HOME": str(home), "SANDBOXMCP_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "sandboxmcp", "sources"]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr, (tmp_path / "mark").exists()) == (0, "", False)
