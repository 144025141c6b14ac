"""The room inside the sandbox stands alone: it may be read there without anything of the host side."""

import ast
import sys
from pathlib import Path

import pytest

GUEST = Path(__file__).resolve().parents[1] / "kernels" / "guest"
FILES = sorted(GUEST.rglob("*.py"))
_JUPYTER = {"ipykernel", "IPython", "jupyter_client", "jupyter_core", "traitlets", "tornado", "zmq"}
_KNOWN_IF_THERE = {"numpy"}
"""Looked up among the loaded modules, never needed."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_guest_file_imports_only_the_standard_library_jupyter_and_its_neighbours(file: Path) -> None:
    allowed = sys.stdlib_module_names | _JUPYTER | _KNOWN_IF_THERE | {neighbour.stem for neighbour in FILES}
    imported: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported.add((node.module or "").partition(".")[0])

    assert imported - allowed == set()


def test_there_are_guest_files() -> None:
    assert FILES != []
