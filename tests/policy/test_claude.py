"""Claude Code's permissions as a pack, and settings files in every state of disrepair."""

import os
from pathlib import Path

import pytest

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.policy.claude_permissions import claude_files, claude_packs
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.judge import Engine

SETTINGS = """{
  // what this project does not want
  "permissions": {
    "allow": ["Bash(curl:*)"],
    "deny": ["Bash(git push:*)", "Bash(npm run build)", "Bash(terraform * -auto-approve)", "Read(./secrets/**)", "WebFetch"],
    "ask": ["Bash(rm:*)", "Edit(docs/**)",],
  },
}
"""
VERDICTS = {
    "prefix": ("git push origin main", "deny"),
    "prefix-alone": ("cd x && git push", "deny"),
    "other-word": ("git pushx", "allow"),
    "exact": ("npm run build", "deny"),
    "longer-than-exact": ("npm run build:all", "allow"),
    "glob": ("terraform apply -auto-approve", "deny"),
    "ask": ("rm notes.txt", "ask"),
    "read": ("cat secrets/key.txt", "deny"),
    "read-elsewhere": ("cat src/key.txt", "allow"),
    "edit": ("echo x > docs/a.md", "ask"),
    "allow-loosens-nothing": ("curl https://example.org", "deny"),
    "in-a-pipe": ("true | bash -c 'git push -f'", "deny"),
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    project = tmp_path_factory.mktemp("project")
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text(SETTINGS)
    return load_engine(imported=claude_packs(claude_files(project / "home", project)))


@pytest.mark.parametrize(("code", "action"), VERDICTS.values(), ids=VERDICTS)
def test_an_entry_means_what_it_means_there(code: str, action: str, imported: Engine) -> None:
    assert imported.judge(code, "shell").action == action


def test_reading_in_python_is_judged_by_the_same_entry(imported: Engine) -> None:
    assert imported.judge("print(open('secrets/key.txt').read())", "python").rule == "deny-4"


def test_the_verdict_names_the_entry(imported: Engine) -> None:
    verdict = imported.judge("git push", "shell")
    assert (verdict.pack, verdict.because) == (
        "claude:settings.json",
        "Claude Code's settings (settings.json) say deny to Bash(git push:*): the user denies it.",
    )


def test_files_that_are_not_there_are_no_packs(tmp_path: Path) -> None:
    assert claude_packs(claude_files(tmp_path, tmp_path)) == ()


def test_an_empty_file_denies_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("\ufeff\n")
    assert [pack.rules for pack in claude_packs((tmp_path / "s.json",))] == [()]


UNREADABLE = {
    "not-json": (b'{"permissions": {\n  "deny": [x]\n', "are not JSON"),
    "not-utf8": (b'{"permissions":\n "\xff"}', "are not UTF-8"),
    "a-list": (b"[]", "are no object"),
    "permissions-a-list": (b'{"permissions": []}', "permissions in .* is no object"),
    "deny-a-text": (b'{"permissions": {"deny": "Bash"}}', "permissions.deny .* is no list"),
    "bad-entry": (b'{"permissions": {"deny": ["Bash("]}}', r"holds 'Bash\('"),
    "huge": (b" " * (1 << 20) + b"{}", "larger than 1 MiB"),
    "deep": (b"[" * 100_000, "nested too deeply|are not JSON"),
}


@pytest.mark.parametrize(("raw", "what"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_understood_is_an_error(raw: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_bytes(raw)
    with pytest.raises(BrokenPack, match=what) as refused:
        claude_packs((tmp_path / "s.json",))
    assert refused.value.exit_code == 6


def test_a_folder_a_circle_and_a_closed_file_are_errors(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "closed").write_text("{}")
    (tmp_path / "closed").chmod(0)
    files = [tmp_path / "folder", tmp_path / "loop", *([tmp_path / "closed"] if os.geteuid() else [])]
    for file in files:
        with pytest.raises(BrokenPack, match="cannot be read"):
            claude_packs((file,))


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_file_that_never_ends_is_a_broken_pack_and_no_hang(tmp_path: Path, kind: str) -> None:
    """A repository may carry a link to /dev/stdin, where an MCP server is spoken to."""
    (tmp_path / ".claude").mkdir()
    for file in (tmp_path / ".claude/settings.json", tmp_path / "own.toml"):
        os.mkfifo(file) if kind == "pipe" else file.symlink_to("/dev/zero")
    for read in (lambda: claude_packs(claude_files(tmp_path, tmp_path)), lambda: load_engine(project=tmp_path)):
        with pytest.raises(BrokenPack, match="cannot be read: it is no regular file"):
            read()
