"""Tab completion: the script for a shell, and what the shell is answered."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(say: Any, shell: str) -> None:
    said = say("completion", shell)
    assert (said.code, "sandboxmcp" in said.out, "_SANDBOXMCP_COMPLETE" in said.out) == (0, True, True)


def test_the_shell_is_the_user_s_unless_another_is_named(say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert say("completion", "--json").document["shell"] == "zsh"
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    said = say("completion")
    assert (said.code, "Name one of: bash, zsh, fish." in said.err) == (2, True)


def test_a_shell_that_asks_is_answered(tmp_path: Any) -> None:
    asked = {"_SANDBOXMCP_COMPLETE": "complete_bash", "COMP_WORDS": "sandboxmcp se", "COMP_CWORD": "1", "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "sandboxmcp"], env={**os.environ, **asked}, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"search", "serve"}
