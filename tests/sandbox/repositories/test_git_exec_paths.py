"""What git's settings lead to, as git reads them."""

from __future__ import annotations

import os

import pytest

from sandboxmcp.sandbox.repositories.git_exec_paths import leads as leads_and_sources

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


def leads(workspace, names):
    return leads_and_sources(workspace, names).paths


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


def test_settings_of_a_submodule_lead_from_its_own_worktree(tmp_path):
    (tmp_path / ".git/modules/lib").mkdir(parents=True)
    (tmp_path / ".git/modules/lib/config").write_text("[core]\nworktree = ../../../lib\nhooksPath = hooks\n")
    (tmp_path / ".git/modules/lib/HEAD").write_text("ref: refs/heads/main\n")
    assert leads(tmp_path, ()) == ("lib/hooks",)


def test_what_was_read_is_told_so_that_a_change_of_it_can_be_seen(tmp_path):
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / ".git/config").write_text("[include]\npath = ../extra\n")
    found = leads_and_sources(tmp_path, (".git", ".envrc"))
    read = {os.path.relpath(path, tmp_path) for path in found.read if path.startswith(f"{tmp_path}/")}
    assert (found.paths, read) == (("extra",), {".git/config", ".git/config.worktree", "extra", ".git", ".git/hooks"})
