"""The lists of what is protected: complete by what the issue and the tools' documentation name, each with its source."""

from __future__ import annotations

import os
import tomllib
from pathlib import PurePosixPath

import pytest

from sandboxmcp.core.resources import data_folder
from sandboxmcp.sandbox.workspace.protected_paths import PROTECTED, RULES, TOOLS
from sandboxmcp.sandbox.workspace.quarantine import present

WANTED = """
HEAD .dir-locals.el .dir-locals-2.el lefthook.yml lefthook.yaml lefthook.toml lefthook.json
.lefthook.yaml .lefthook.toml .lefthook.json .config/lefthook.yml .config/lefthook.toml .config/lefthook.json
lefthook-local.yaml lefthook-local.toml lefthook-local.json .lefthook-local.yml .config/lefthook-local.yml
mise.local.toml .mise.local.toml .config/mise .config/mise.toml .qwen .trae .kilocode .kilo .factory .crush crush.json
.crush.json .vs/mcp.json .tool-versions .pdbrc .envrc .vscode .claude
""".split()


@pytest.mark.parametrize("path", WANTED)
def test_what_tools_obey_is_protected(path):
    assert path in PROTECTED


def test_every_tool_says_what_it_obeys_and_where_that_is_documented():
    assert [tool.name for tool in TOOLS if not (tool.obeys and tool.paths and tool.source.startswith(("https://", "docs/")))] == []
    paths = [path for tool in TOOLS for path in tool.paths]
    assert (sorted(set(paths)), [one for one in paths if str(PurePosixPath(one)) != one or one.startswith(("/", ".."))]) == (
        sorted(paths),
        [],
    )


def test_names_of_rules_are_written_as_they_are_compared():
    assert [name for name in (*RULES.names, *RULES.endings, *RULES.folders) if name != name.lower()] == []


def test_the_policy_pack_names_no_file_of_a_workspace_that_is_not_protected():
    pack = tomllib.loads((data_folder("policies") / "default.toml").read_text())
    rule = next(one for one in pack["rule"] if one["id"] == "protected-paths")
    assert [path for path in rule["path"] if not path.startswith(("~", "/", ".git/")) and path not in PROTECTED] == []
    named = {tool.name: set(tool.paths) <= set(rule["path"]) for tool in TOOLS}
    assert [
        name for name in ("Claude Code", "Cursor", "Codex", "Qwen Code", "lefthook", "Crush", "Factory") if not named[name]
    ] == []


@pytest.mark.parametrize("many", [0, 5_000])
def test_what_is_there_is_told_by_one_look_however_many_names_there_are(tmp_path, many):
    for name in (".envrc", ".CLAUDE", *map(str, range(many))):
        (tmp_path / name).touch()
    fd = os.open(tmp_path, os.O_PATH)
    found = set(present(fd, PROTECTED)) & {".envrc", ".claude", ".vscode"}
    os.close(fd)
    assert found == ({".envrc"} if many else {".envrc", ".claude"})  # a listing takes names of other capitals for there
    assert set(present(str(tmp_path), [".envrc", ".vscode/x"])) == {".envrc"}
