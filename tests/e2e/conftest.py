"""`python -m sandboxmcp serve` as an agent starts it, spoken to over its standard streams."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import StdioServerParameters


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    ours = {"HOME": str(tmp_path), "SANDBOXMCP_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": root}
    return {"PATH": os.environ["PATH"], **ours}


@pytest.fixture
def command() -> list[str]:
    return [sys.executable, "-m", "sandboxmcp", "serve", "--surface", "direct"]


@pytest.fixture
def server(project: Path, environment: dict[str, str], command: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=project)


@pytest.fixture
def processes_of() -> Callable[[int], set[int]]:
    """A process and all its descendants, by their numbers."""

    def tree(pid: int) -> set[int]:
        found = {pid}
        with contextlib.suppress(OSError):  # it may end while it is looked at
            for task in os.listdir(f"/proc/{pid}/task"):
                for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                    found |= tree(int(child))
        return found

    return tree
