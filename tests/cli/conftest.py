"""The command line in this process, on a store and a project of its own."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.cli.app import run_command_line


@dataclass(frozen=True)
class Said:
    """What a command left: its exit code and both its streams."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs one command line; `stdin` is what it reads. The working folder is the project."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SANDBOXMCP_DATA_DIR", str(tmp_path / "data"))

    def run(*arguments: str, stdin: bytes = b"") -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run_command_line(arguments)
        return Said(code, *capsys.readouterr())

    return run
