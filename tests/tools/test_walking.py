"""Folders as git sees them, compared with git itself; nothing of the repository's own is ever started by us."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxmcp.core.errors import UsageError
from sandboxmcp.tools.walking import matches, walk

FILES = [
    "a.py",
    "b.log",
    "keep.log",
    "build/out.txt",
    "src/a.py",
    "src/build/x.txt",
    "src/deep/b.log",
    "src/deep/keep.log",
    "doc/x y.md",
]
RULES = [
    "*.log",
    "!keep.log",
    "build/",
    "/build/",
    "/a.py",
    "src/*",
    "!src/deep/",
    "deep/*",
    "**/x.txt",
    "doc/**",
    "# note",
    "\\#x",
    "x y.md",
    "[ab].py",
]


def lay_out(folder: Path, rules: dict[str, list[str]]) -> None:
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    for where, lines in rules.items():
        (folder / where / ".gitignore").write_text("\n".join(lines) + "\n")


def seen_by_git(folder: Path) -> list[str]:
    command = ["git", "-C", str(folder), "ls-files", "--cached", "--others", "--exclude-per-directory=.gitignore", "-z"]
    return sorted(filter(None, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")))


def seen_by_us(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in walk(folder))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@given(top=st.lists(st.sampled_from(RULES), max_size=5), below=st.lists(st.sampled_from(RULES), max_size=3))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_walk_sees_what_git_sees(tmp_path_factory: pytest.TempPathFactory, top: list[str], below: list[str]) -> None:
    folder = tmp_path_factory.mktemp("walk")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    lay_out(folder, {"": top, "src": below})
    assert seen_by_us(folder) == seen_by_git(folder)


def test_a_subfolder_obeys_the_rules_above_it(tmp_path: Path) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("*.md\n")
    lay_out(tmp_path, {"": ["*.log"]})
    assert (seen_by_us(tmp_path / "src"), seen_by_us(tmp_path / "doc")) == (["a.py", "build/x.txt"], [])


def test_include_and_exclude_narrow_a_folder(tmp_path: Path) -> None:
    lay_out(tmp_path, {})
    names = [file.name for file in walk(tmp_path, include=["*.py", "*.log"], exclude=["deep/"])]
    assert names == ["a.py", "b.log", "keep.log", "a.py"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("*.py", ["a.py"]), ("**/*.py", ["a.py", "src/a.py"]), ("src/d*/*.log", ["src/deep/b.log", "src/deep/keep.log"])],
)
def test_a_glob_names_files(tmp_path: Path, pattern: str, names: list[str]) -> None:
    lay_out(tmp_path, {})
    assert [file.relative_to(tmp_path).as_posix() for file in matches(pattern, tmp_path, [tmp_path])] == names


def test_a_glob_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder"):
        list(matches("nowhere/*.py", tmp_path, [tmp_path]))


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    lay_out(tmp_path, {})
    (tmp_path / "loop").symlink_to(tmp_path)
    assert "loop/a.py" not in seen_by_us(tmp_path)


@pytest.mark.parametrize("pattern", ["../../**", "/**", "../*", "src/../../*.py"])
def test_a_glob_does_not_look_outside_the_roots(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(UsageError, match="outside the folders that may be read"):
        matches(pattern, tmp_path / "project", [tmp_path / "project"])


@pytest.mark.parametrize("pattern", ["", " ", "!", "a\0b", "[z-a]", "x" * 5_000], ids=repr)
def test_a_pattern_that_is_none_is_named(tmp_path: Path, pattern: str) -> None:
    for name in ("include", "exclude"):
        given: dict[str, Any] = {name: ["*.py", pattern]}
        with pytest.raises(UsageError, match=f"{name} holds .* which is no pattern"):
            walk(tmp_path, **given)


def test_a_line_that_is_no_rule_leaves_the_others_in_force(tmp_path: Path) -> None:
    lay_out(tmp_path, {"": ["!", "[z-a]", "*.log"]})
    assert [name for name in seen_by_us(tmp_path) if name.endswith(".log")] == []


def test_a_rule_that_would_be_tried_for_years_is_none(tmp_path: Path) -> None:
    lay_out(tmp_path, {"": ["*a" * 20 + "b", "*.log"]})
    (tmp_path / ("a" * 250)).touch()
    with pytest.raises(UsageError, match="is no pattern"):
        walk(tmp_path, exclude=["*a" * 20 + "b"])
    found = seen_by_us(tmp_path)
    assert ("a" * 250 in found, [name for name in found if name.endswith(".log")]) == (True, [])


def test_what_is_not_looked_into_is_told(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    here = os.open(deep, os.O_RDONLY)
    for _ in range(250):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "a.py").write_text("x\n")
    told: dict[str, str] = {}
    assert [file.name for file in walk(tmp_path, left_out=lambda path, why: told.update({path.name: why}))] == ["a.py"]
    assert told == {"loop": "a link to a folder is not followed", "d": "a folder 200 folders deep"}
