"""The recipe of docs/policy-ci.md, executed as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs/policy-ci.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.strip().split("\n")]
PACK = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
EXPECTED = {"sandboxmcp policy diff": 1}
"""A verdict changes there: the project's pack denies what the default one does not."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in (".sandboxmcp/policies", "scripts", "notebooks"):
        (tmp_path / folder).mkdir(parents=True)
    assert PACK is not None
    (tmp_path / ".sandboxmcp/policies/project.toml").write_text(PACK[1])
    (tmp_path / "scripts/build.sh").write_text("make all\n")
    (tmp_path / "notebooks/a.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "print(1)"}], "metadata": {}}')
    (tmp_path / "commands.txt").write_text("make all\nterraform apply\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(line.split()[:4]) + f"-{n}" for n, line in enumerate(COMMANDS)])
def test_the_command_of_the_recipe_works(command: str, project: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"HOME": str(project), "PATH": path}
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, env=environment, check=False)
    expected = next((code for start, code in EXPECTED.items() if command.startswith(start)), 0)
    assert (done.returncode, done.stderr) == (expected, "")
