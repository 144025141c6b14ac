"""Repositories that appear in a workspace: each plant first runs code of its own where nothing stops it, and then does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from sandboxmcp.sandbox.repositories.watch import Repositories

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
TABLE = tomllib.loads(Path(__file__).with_name("repositories.toml").read_text())
PLANTS = {one["name"]: (one["script"], one.get("then", "cd sub && git status")) for one in TABLE["plant"]}
ORDINARY = {one["name"]: one["script"] for one in TABLE["ordinary"]}


def shell(folder, code):
    environment = {
        **os.environ,
        "HOME": "/nonexistent",
        "GIT_AUTHOR_NAME": "t",
        "GIT_COMMITTER_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@e",
    }
    environment |= {"GIT_COMMITTER_EMAIL": "t@e", "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["/bin/bash", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize(("script", "then"), PLANTS.values(), ids=PLANTS.keys())
def test_what_a_script_plants_is_moved_aside(tmp_path, script, then):
    if script.startswith("hg") and shutil.which("hg") is None:
        pytest.skip("Mercurial is not installed")
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    for folder in (outside, workspace):
        folder.mkdir()
    mark = tmp_path / "outside-mark"
    planted = shell(outside, script.replace("{mark}", str(mark)))
    assert not mark.exists()
    done = shell(outside, then.replace("{mark}", str(mark)))
    assert mark.exists(), (planted.stderr, done.stderr)  # the plant works where nothing stops it

    repositories, mark = Repositories(workspace), tmp_path / "mark"
    shell(workspace, script.replace("{mark}", str(mark)))
    said = repositories.look()
    assert said
    assert all("could run programs on the host" in one for one in said)
    shell(workspace, then.replace("{mark}", str(mark)))
    assert not mark.exists()
    assert repositories.look() == []


@pytest.mark.parametrize("script", ORDINARY.values(), ids=ORDINARY.keys())
def test_what_is_ordinary_stays(tmp_path, script):
    if script.startswith("hg") and shutil.which("hg") is None:
        pytest.skip("Mercurial is not installed")
    repositories = Repositories(tmp_path)
    done = shell(tmp_path, script)
    assert done.returncode == 0, done.stderr
    assert repositories.look() == []
    assert repositories.look() == []
    assert Repositories(tmp_path).unusual == ()
