"""Where paths in code lead, and which patterns cover them."""

from pathlib import Path

import pytest

from sandboxmcp.policy.engine import Engine, load_engine
from sandboxmcp.policy.facts import HOLE
from sandboxmcp.policy.paths import Places, covers, is_outside, resolved

HERE = Places("/home/me/work", "/home/me")
RESOLVED = {
    "relative": ("a/./b/../c", "", "a/c"),
    "folder": ("x", "sub", "sub/x"),
    "absolute-inside": ("/home/me/work/a", "", "a"),
    "workspace": ("/home/me/work", "", "."),
    "above": ("../other", "", "~/other"),
    "far-above": ("../../../etc", "", "/etc"),
    "home": ("~/.bashrc", "", "~/.bashrc"),
    "home-spelled-out": ("/home/me/.bashrc", "", "~/.bashrc"),
    "workspace-by-home": ("~/work/a", "", "a"),
    "other-home": ("~you/x", "", "~you/x"),
    "slashes": ("//etc//passwd", "", "/etc/passwd"),
    "near-miss": ("/home/me/workshop/a", "", "~/workshop/a"),
    "hidden": (f"{HOLE}/.git/hooks/x", "", f"{HOLE}/.git/hooks/x"),
}
COVERED = [
    (".git/hooks", ".git/hooks/pre-commit", "write", True),
    (".git/hooks", "sub/.git/hooks", "write", True),
    (".git/hooks", ".git/hooksx", "write", False),
    (".git/hooks", ".git", "write", False),
    (".git/hooks", ".git", "move", True),
    (".git/hooks", "sub", "move", False),
    ("~/.bashrc", "~/.bashrc", "write", True),
    ("~/.bashrc", "sub/~/.bashrc", "write", False),
    ("/dev/sd*", "/dev/sda1", "write", True),
    ("/dev/sd*", "dev/sda1", "write", False),
    ("*", "anything", "read", True),
    (".env*", "config/.env.local", "read", True),
]


@pytest.mark.parametrize(("path", "cwd", "expected"), RESOLVED.values(), ids=RESOLVED)
def test_a_path_is_followed_without_a_disk(path: str, cwd: str, expected: str) -> None:
    assert resolved(path, cwd, HERE) == expected


@pytest.mark.parametrize(("pattern", "path", "access", "expected"), COVERED)
def test_a_pattern_covers_what_it_names_and_what_is_below(pattern: str, path: str, access: object, expected: bool) -> None:
    assert covers([pattern], path, access) is expected  # type: ignore[arg-type]


def test_what_is_outside() -> None:
    paths = ["a", ".", "/etc", "~", "~/x", "..", "../a", "/tmp/x", "/tmp", "/dev/null", f"{HOLE}/x"]
    assert [path for path in paths if is_outside(path)] == ["/etc", "~", "~/x", "..", "../a", "/tmp"]


@pytest.fixture(scope="module")
def placed() -> Engine:
    return load_engine(places=HERE)


def test_the_workspace_may_be_spelled_out(placed: Engine) -> None:
    verdicts = [placed.judge(f"rm -rf {path}", "shell").action for path in ("/home/me/work/build", "~/work/x", "/home/me/other")]
    assert verdicts == ["allow", "allow", "deny"]


def test_a_rule_about_urls_matches_in_every_language(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        "[pack]\nname = 'own'\n[[rule]]\nid = 'internal'\nlanguage = ['shell', 'python']\nurl = '*://*.corp/*'\nverdict = 'deny'\n"
        "because = 'Internal.'\ninstead = 'Ask.'\n[[rule.example]]\ncode = 'git clone https://git.corp/a'\nverdict = 'deny'\n"
    )
    engine = load_engine(["own"], [tmp_path])
    codes = [("tool --from https://x.corp/y", "shell"), ("f('https://x.corp/y')", "python"), ("tool https://x.org/y", "shell")]
    assert [engine.judge(code, language).rule for code, language in codes] == ["internal", "internal", None]


def test_a_pack_of_ten_thousand_rules_loads_and_judges(tmp_path: Path) -> None:
    rule = (
        "[[rule]]\nid = 'r{0}'\nlanguage = 'shell'\ncommand = 'p{0}'\nverdict = 'deny'\nbecause = 'B.'\ninstead = 'I.'\n"
        "[[rule.example]]\ncode = 'p{0}'\nverdict = 'deny'\n"
    )
    (tmp_path / "own.toml").write_text("[pack]\nname = 'own'\n" + "".join(rule.format(at) for at in range(10_000)))
    engine = load_engine(["own"], [tmp_path])
    assert [engine.judge(code, "shell").rule for code in ("p0", "true; p9999 x", "q")] == ["r0", "r9999", None]
