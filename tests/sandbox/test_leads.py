"""What git's settings lead to, as git reads them."""

from __future__ import annotations

import pytest

from sandboxmcp.sandbox.leads import leads

SETTINGS = {
    "a relative path": ("[core]\n\thooksPath = .githooks\n", (".githooks",)),
    "small letters and no space": ("[core]\nhookspath=a/b/../c\n", ("a/c",)),
    "a section and its key in one line": ("[core] hooksPath = hooks # mine\n", ("hooks",)),
    "quotes and an escape": ('[core]\nhooksPath = "my \\"hooks\\""; not this\n', ('my "hooks"',)),
    "a value over two lines": ("[core]\nhooksPath = gi\\\nthooks\n", ("githooks",)),
    "a program and its argument": ('[filter "x"]\nclean = tools/clean --fast %f\n', ("tools/clean",)),
    "a condition": ('[includeIf "gitdir:~/work/"]\npath = ../extra\n', ("extra",)),
    "a path elsewhere": ("[core]\nhooksPath = /usr/share/hooks\n", ()),
    "words that are no files": ("[alias]\nst = status -sb\n[core]\npager = less -F\n", ()),
    "a folder that a command enters": ("[alias]\nlint = !cd build/ && make\n", ()),
    "a setting that names no program": ('[branch "a"]\nmerge = refs/heads/a\n', ()),
    "no settings at all": ("\0[[[=\n", ()),
}


@pytest.fixture(autouse=True)
def no_settings_of_the_users(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_leads_to_a_path(tmp_path, name):
    text, expected = SETTINGS[name]
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(text)
    assert leads(tmp_path, ()) == expected


def test_included_settings_lead_on_and_a_circle_ends(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("[include]\npath = ../one\n")
    (tmp_path / "one").write_text("[include]\npath = one\n[core]\nhooksPath = hooks\n")
    assert leads(tmp_path, ()) == ("one", "hooks")


def test_links_lead_to_each_of_their_ends_and_a_circle_ends(tmp_path):
    (tmp_path / ".claude").symlink_to("agents/first")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/first").symlink_to("second")
    (tmp_path / ".idea").symlink_to(".idea")
    (tmp_path / ".vscode").symlink_to("/usr")
    assert leads(tmp_path, (".claude", ".idea", ".vscode", ".zed")) == ("agents/first", "agents/second")


def test_a_worktree_counts_only_if_it_lies_elsewhere_and_leads_back(tmp_path):
    workspace, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    known = workspace / ".git/worktrees"
    says = {"real": str(elsewhere / ".git"), "forged": "/etc/passwd", "inside": str(workspace / "sub/.git"), "empty": ""}
    for name, line in says.items():
        (known / name).mkdir(parents=True)
        (known / name / "gitdir").write_text(f"{line}\n")
    elsewhere.mkdir()
    (elsewhere / ".git").write_text(f"gitdir: {known / 'real'}\n")
    (known / "none").mkdir()
    names = ("commondir", "config.worktree", "gitdir")
    assert leads(workspace, ()) == tuple(f".git/worktrees/real/{name}" for name in names)
