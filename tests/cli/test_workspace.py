"""`sandboxmcp workspace`: what an overlay holds, from the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.sandbox.overlay.layer import layer_of, prepare, release


@pytest.fixture
def layer(tmp_path: Path, say: Any) -> Any:
    """A layer with a changed and a new file, the second with a name that would colour a terminal."""
    project = tmp_path / "project"
    (project / "a.txt").write_text("a\n")
    made = prepare(layer_of(tmp_path / "data", project), project)
    (made / "upper" / "a.txt").write_text("b\n")
    (made / "upper" / "\x1b[31mred").write_text("x\n")
    yield made
    release(made)


def test_changes_are_listed_and_nothing_of_them_reaches_the_terminal_raw(say: Any, layer: Path) -> None:
    said = say("workspace", "diff")
    assert said.code == 0 and said.out.splitlines()[1] == "M a.txt" and "\x1b" not in said.out


def test_a_patch_shows_the_lines(say: Any, layer: Path) -> None:
    assert "-a\n+b\n" in say("workspace", "diff", "--patch").out


def test_applied_changes_are_in_the_project_and_forgotten(say: Any, layer: Path, tmp_path: Path) -> None:
    facts = say("workspace", "apply", "--json").document
    assert ([one["path"] for one in facts["applied"]], facts["left_out"]) == (["\x1b[31mred", "a.txt"], [])
    assert (tmp_path / "project" / "a.txt").read_text() == "b\n" and say("workspace", "diff").out == "no changes\n"


def test_discarded_changes_are_not(say: Any, layer: Path, tmp_path: Path) -> None:
    assert say("workspace", "discard").out == "2 changes discarded\n"
    assert (tmp_path / "project" / "a.txt").read_text() == "a\n"


def test_without_an_overlay_there_are_no_changes(say: Any) -> None:
    assert [say("workspace", name).out for name in ("diff", "apply", "discard")] == ["no changes\n"] * 2 + ["0 changes discarded\n"]
