"""What is remembered for a quick answer counts only as long as nothing has changed that it came from."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.cli.quick import explain_quickly

Say = Callable[..., Any]
PLAIN = ("policy", "explain", "--", "ls -la")


@pytest.fixture
def remembered(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert (explain_quickly(PLAIN), say(*PLAIN).code) == (None, 0)
    return say


def test_a_second_question_is_answered_at_once_and_alike(remembered: Say, capsys: pytest.CaptureFixture[str]) -> None:
    slow = remembered(*PLAIN).out
    assert (explain_quickly(PLAIN), capsys.readouterr().out) == (0, slow)


def test_what_could_match_a_rule_goes_to_the_packs(remembered: Say) -> None:
    codes = ["curl u", "$C", "rm -rf /", "echo x > .envrc", "npm install"]
    assert [explain_quickly(("policy", "explain", "--", code)) for code in codes] == [None] * 5


@pytest.mark.parametrize(
    "line", [("policy", "explain", "--json", "--", "ls"), ("policy", "explain", "--policy-packs", "ci", "ls"), ("run",)]
)
def test_other_questions_go_the_ordinary_way(remembered: Say, line: tuple[str, ...]) -> None:
    assert explain_quickly(line) is None


CHANGES: dict[str, Callable[[Path], object]] = {
    "project-pack": lambda home: Path(".sandboxmcp/policies").mkdir(parents=True),
    "project-settings": lambda home: Path("sandboxmcp.toml").write_text(""),
    "claude": lambda home: (home / ".claude").mkdir() or (home / ".claude/settings.json").write_text("{}"),
    "user-settings": lambda home: (
        (home / ".config/sandboxmcp").mkdir(parents=True) or (home / ".config/sandboxmcp/sandboxmcp.toml").write_text("")
    ),
    "environment": lambda home: os.environ.update(SANDBOXMCP_POLICY_PACKS="strict"),
    "writable-by-others": lambda home: next((home / "cache/sandboxmcp").iterdir()).chmod(0o666),
    "not-json": lambda home: next((home / "cache/sandboxmcp").iterdir()).write_text("{"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_asks_the_packs_again(remembered: Say, change: Callable[[Path], object], tmp_path: Path) -> None:
    before = dict(os.environ)
    try:
        change(tmp_path)
        assert explain_quickly(PLAIN) is None
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_what_flags_changed_is_not_remembered(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    say("policy", "explain", "--policy-packs", "programs", "--", "ls -la")
    assert explain_quickly(PLAIN) is None
