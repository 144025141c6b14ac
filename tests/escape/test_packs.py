"""What a policy pack demands is held by the sandbox itself: a script that hides from the rules meets the mount."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDDEN = """
import os
write = getattr(os, "wr" + "ite")
place = os.environ.get("PLACE", ".")
def to(name, *flags):
    try:
        fd = getattr(os, "op" + "en")(os.path.join(place, name), *flags)
        write(fd, b"changed")
        return "written"
    except OSError as error:
        return os.strerror(error.errno)
def by(name, *names):
    try:
        getattr(os, name)(*(os.path.join(place, one) for one in names))
        return "done"
    except OSError as error:
        return os.strerror(error.errno)
print(to("kept", os.O_WRONLY), to("new", os.O_WRONLY | os.O_CREAT), sep="\\n")
print(by("mkdir", "folder"), by("link", "kept", "second"), by("rename", "kept", "moved"), sep="\\n")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kept").write_text("kept")
    return folder


def run(project: Path, packs: str, code: str = HIDDEN) -> list[str]:
    settings = {"POLICY_PACKS": packs, "WORKSPACE": str(project), "DATA_DIR": str(project.parent / "data")}
    variables = {f"SANDBOXMCP_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "sandboxmcp", "run", "--lang", "python", "-c", code]
    ended = subprocess.run(command, cwd=project, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return [line.removeprefix("| ") for line in ended.stdout.splitlines() if line.startswith("| ")]


def state(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() if path.is_file() else "/" for path in folder.iterdir()}


def test_under_the_pack_strict_a_script_writes_nothing_to_the_project(sandbox: None, project: Path, tmp_path: Path) -> None:
    outside = subprocess.run([sys.executable, "-c", HIDDEN], cwd=project, capture_output=True, text=True, timeout=20)
    assert (outside.stdout.split(), sorted(state(project))) == (
        ["written", "written", "done", "done", "done"],
        ["folder", "moved", "new", "second"],
    )
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").write_text("kept")
    said = run(other, "strict")
    assert (said, state(other)) == (["Read-only file system"] * 5, {"kept": "kept"})


def test_a_projects_own_pack_can_take_writing_away_and_not_give_it_back(sandbox: None, project: Path) -> None:
    policies = project / ".sandboxmcp" / "policies"
    policies.mkdir(parents=True)
    for mode, packs, wanted in (("ro", "default", "Read-only file system"), ("rw", "strict", "Read-only file system")):
        (policies / "own.toml").write_text(f'[pack]\nname = "own"\n[settings]\nworkspace_mode = "{mode}"\n')
        assert run(project, packs)[:2] == [wanted, wanted]
    assert state(project)["kept"] == "kept"
