"""Private folders are swept when their process is gone, and never while it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxmcp.core.folders import PrivateFolder, sweep

HOLD = "import sys\nfrom pathlib import Path\nfrom sandboxmcp.core.folders import PrivateFolder\n"
HOLD += "print(PrivateFolder(Path(sys.argv[1])).path, flush=True)\nsys.stdin.read()"


@pytest.fixture
def holder(tmp_path):
    """Another process that has a folder below `tmp_path`, and the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def test_a_folder_is_private_and_goes_with_its_removal(tmp_path):
    made = PrivateFolder(tmp_path)
    assert (made.path.stat().st_mode & 0o777, os.listdir(tmp_path)) == (0o700, [made.path.name])
    made.remove()
    made.remove()
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_is_swept_by_the_next_one(tmp_path, holder):
    process, left = holder
    (left / "inside").write_text("x")
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert left.exists()
    made = PrivateFolder(tmp_path)
    assert os.listdir(tmp_path) == [made.path.name]
    made.remove()


def test_what_another_process_has_is_left_alone_and_so_is_our_own(tmp_path, holder):
    made = PrivateFolder(tmp_path)
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([holder[1], made.path])
    made.remove()


def test_other_peoples_things_are_left_alone(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("x")
    (tmp_path / "sandboxmcp-run-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "sandboxmcp-run-file").write_text("x")
    (tmp_path / "sandboxmcp-demo").mkdir()
    before = sorted(tmp_path.rglob("*"))
    sweep(tmp_path)
    sweep(tmp_path / "missing")
    assert sorted(tmp_path.rglob("*")) == before
