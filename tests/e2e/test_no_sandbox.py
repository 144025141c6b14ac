"""Where the system gives no sandbox nothing is run instead: shown inside a bubblewrap that forbids further namespaces."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.fixture
def fenced_in() -> list[str]:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap comes from the wheel here")
    options = "--unshare-user --uid 1000 --disable-userns --dev-bind / /".split()
    return ["bwrap", *options, sys.executable, "-m", "sandboxmcp"]


def test_without_a_sandbox_a_script_is_not_run_and_the_error_names_the_way_out(
    fenced_in: list[str], environment: dict[str, str], project: Path
) -> None:
    arguments = ["run", "--json", "-c", "open('escaped', 'w')"]
    done = subprocess.run([*fenced_in, *arguments], capture_output=True, env=environment, cwd=project, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["exit_code"], b"sandboxmcp doctor" in done.stderr) == (4, 4, True)
    assert list(project.iterdir()) == []


def test_without_a_sandbox_everything_else_works(fenced_in: list[str], environment: dict[str, str], project: Path) -> None:
    (project / "notes.md").write_text("the zebra runs\n")
    for arguments in (["index", "notes.md"], ["search", "zebra"]):
        done = subprocess.run([*fenced_in, *arguments], capture_output=True, env=environment, cwd=project, timeout=60)
    assert (done.returncode, b"| the zebra runs" in done.stdout) == (0, True)


def test_doctor_says_what_is_wrong_and_how_to_mend_it(fenced_in: list[str], environment: dict[str, str], project: Path) -> None:
    done = subprocess.run([*fenced_in, "doctor"], capture_output=True, text=True, env=environment, cwd=project, timeout=60)
    assert (done.returncode, "FAILED" in done.stdout, "fix: " in done.stdout) == (4, True, True)
