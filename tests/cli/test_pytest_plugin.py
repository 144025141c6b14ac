"""The pytest plugin, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

GOOD = """[pack]
name = "own"
extends = ["default"]
[[rule]]
id = "no-make"
language = "shell"
command = "make"
verdict = "deny"
because = "Not here."
instead = "Use ninja."
[[rule.example]]
code = "make all"
verdict = "deny"
[[rule.example]]
code = "ninja all"
verdict = "allow"
"""


def _pytest(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    (folder / ".sandboxmcp/policies").mkdir(parents=True)
    (folder / ".sandboxmcp/policies/own.toml").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, env=os.environ | {"HOME": str(folder)}, check=False)
    return done.returncode, done.stdout


def test_every_example_of_a_pack_is_a_test(tmp_path: Path) -> None:
    code, out = _pytest(tmp_path, GOOD, ".sandboxmcp/policies")
    assert (code, "2 passed" in out) == (0, True)


def test_an_example_that_disagrees_fails_with_its_line(tmp_path: Path) -> None:
    code, out = _pytest(tmp_path, GOOD.replace("ninja all", "make ninja"), ".sandboxmcp/policies")
    assert (code, "own.toml:14: the example is deny by no-make, not allow" in out, "1 passed" in out) == (1, True, True)


def test_a_broken_pack_is_an_error_of_the_collection(tmp_path: Path) -> None:
    code, out = _pytest(tmp_path, GOOD.replace("because", "becuase"), ".sandboxmcp/policies")
    assert (code, "unknown key 'becuase'" in out) == (2, True)


def test_other_toml_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("x = 1\n")
    code, out = _pytest(tmp_path, GOOD, "other.toml")
    assert (code, "no tests ran" in out) == (4, True) or code == 5
