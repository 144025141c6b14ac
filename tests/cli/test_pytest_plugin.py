"""The pytest plugin, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def good(no_make: str) -> str:
    """A pack that extends another, with two examples."""
    extending = no_make.replace('"own"\n', '"own"\nextends = ["default"]\n')
    return extending + '[[rule.example]]\ncode = "ninja all"\nverdict = "allow"\n'


def _pytest(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    (folder / ".sandboxmcp/policies").mkdir(parents=True)
    (folder / ".sandboxmcp/policies/own.toml").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, env=os.environ | {"HOME": str(folder)}, check=False)
    return done.returncode, done.stdout


def test_every_example_of_a_pack_is_a_test(good: str, tmp_path: Path) -> None:
    code, out = _pytest(tmp_path, good, ".sandboxmcp/policies")
    assert (code, "2 passed" in out) == (0, True)


def test_an_example_that_disagrees_fails_with_its_line(good: str, tmp_path: Path) -> None:
    code, out = _pytest(tmp_path, good.replace("ninja all", "make ninja"), ".sandboxmcp/policies")
    assert (code, "own.toml:14: the example is deny by no-make, not allow" in out, "1 passed" in out) == (1, True, True)


def test_a_broken_pack_is_an_error_of_the_collection(good: str, tmp_path: Path) -> None:
    code, out = _pytest(tmp_path, good.replace("because", "becuase"), ".sandboxmcp/policies")
    assert (code, "unknown key 'becuase'" in out) == (2, True)


def test_other_toml_files_are_left_alone(good: str, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("x = 1\n")
    code, out = _pytest(tmp_path, good, "other.toml")
    assert (code, "no tests ran" in out) == (4, True) or code == 5
