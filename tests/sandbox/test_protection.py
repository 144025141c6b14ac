"""Protected paths of the workspace: bound where they exist, swept where they do not."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from sandboxmcp.render.reasons import said
from sandboxmcp.sandbox.protection import look_at

NAMES = (".husky/hooks", ".husky/config", ".envrc")


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_what_exists_and_what_does_not_is_told_apart(tmp_path):
    (tmp_path / ".husky/hooks").mkdir(parents=True)
    seen = look_at(tmp_path, NAMES)
    assert (seen.existing, seen.links, seen.mountpoints) == ((".husky/hooks",), (), (".husky",))


def test_a_planted_file_is_moved_aside_and_reported(tmp_path):
    seen = look_at(tmp_path, NAMES)
    (tmp_path / ".envrc").write_text("evil")
    assert seen.sweep() == ["moved .envrc, which is protected, to .envrc.quarantined-1"]
    assert (tree(tmp_path), seen.sweep()) == ([".envrc.quarantined-1"], [])


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_redirection_in_place_of_a_folder_is_moved_aside(tmp_path, kind):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config").write_text("the host's")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    seen = look_at(workspace, NAMES)
    if kind == "link":
        (workspace / ".husky").symlink_to(elsewhere)
    else:
        (workspace / ".husky").write_text(f"gitdir: {elsewhere}")
    assert seen.sweep() == ["moved .husky, which is protected, to .husky.quarantined-1"]
    assert (tree(workspace), tree(elsewhere)) == ([".husky.quarantined-1"], ["config"])


def test_the_file_that_stands_for_git_in_a_worktree_is_protected_as_it_is(make_inside):
    own = make_inside()
    (own.workspace / ".git").write_text("gitdir: /elsewhere\n")
    ran = own.run("echo 'gitdir: evil' > .git; mv .git g2; rm .git; cat .git", "shell")
    assert (ran.text, said(ran.outcome.reasons), ran.stderr.count(b"Read-only") + ran.stderr.count(b"busy")) == (
        "gitdir: /elsewhere\n",
        "",
        3,
    )
    assert (tree(own.workspace), (own.workspace / ".git").read_text()) == ([".git"], "gitdir: /elsewhere\n")


def test_a_link_that_the_host_made_is_left_and_put_back_when_changed(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / ".git").symlink_to("mine")
    seen = look_at(tmp_path, NAMES)
    assert seen.sweep() == []
    (tmp_path / ".git").unlink()
    (tmp_path / ".git").symlink_to("evil")
    assert seen.sweep() == ["moved .git, which is protected, to .git.quarantined-1"]
    assert os.readlink(tmp_path / ".git") == "mine"


def test_a_change_on_the_host_makes_it_outdated(tmp_path):
    seen = look_at(tmp_path, NAMES)
    assert not seen.outdated
    (tmp_path / ".envrc").touch()
    assert seen.outdated


REPLACE = {
    "as git and editors save": lambda path: (path.with_name("new").write_text("b"), path.with_name("new").rename(path)),
    "by taking it away first": lambda path: (path.unlink(), path.write_text("b")),
}


@pytest.mark.parametrize("replace", REPLACE.values(), ids=REPLACE.keys())
def test_what_the_host_replaces_is_protected_again(make_inside, replace):
    own = make_inside()
    (own.workspace / ".envrc").write_text("a")
    assert own.run("echo evil >> .envrc", "shell").outcome.status == "failed"
    replace(own.workspace / ".envrc")
    assert own.run("echo evil >> .envrc", "shell").outcome.status == "failed"
    assert (own.workspace / ".envrc").read_text() == "b"


def test_what_the_host_replaces_while_a_script_runs_is_told(tmp_path):
    (tmp_path / ".envrc").write_text("a")
    seen = look_at(tmp_path, NAMES)
    REPLACE["as git and editors save"](tmp_path / ".envrc")
    assert seen.sweep() == [".envrc was changed on the host while a script ran, which could then write it: look at it"]


@pytest.fixture
def repository(make_inside):
    """A sandbox whose workspace is a git repository with one commit and no hooks, which scripts may write."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    own = make_inside(git="rw")
    git(own.workspace, "init", "-q")
    for hook in (own.workspace / ".git/hooks").iterdir():
        hook.unlink()
    (own.workspace / ".git/hooks").rmdir()
    git(own.workspace, "commit", "-q", "--allow-empty", "-m", "first")
    return own


def git(folder, *words):
    return subprocess.run(["git", *AUTHOR, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
HOOK = "printf '#!/bin/sh\\ntouch PWNED\\n' > {0}/pre-commit && chmod +x {0}/pre-commit"
PLANTS = {
    "hooks": "mkdir -p .git/hooks && " + HOOK.format(".git/hooks"),
    "renamed .git": "mv .git g2; cp -r g2 .git; mkdir -p .git/hooks; " + HOOK.format(".git/hooks"),
    "commondir": "cp -r .git evil && mkdir evil/hooks && " + HOOK.format("evil/hooks") + " && echo ../evil > .git/commondir",
    "config": "printf '[core]\\nfsmonitor = touch PWNED\\n' >> .git/config",
    "config by rename": "printf '[core]\\nfsmonitor = touch PWNED\\n' > .git/c && mv .git/c .git/config",
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_no_planted_hook_runs_on_the_host(repository, tmp_path, plant):
    outside = tmp_path / "outside"
    subprocess.run(["cp", "-r", repository.workspace, outside], check=True)
    subprocess.run(["bash", "-c", plant], cwd=outside, check=False, capture_output=True)
    subprocess.run(["git", "status"], cwd=outside, check=False, capture_output=True)
    subprocess.run(["git", *AUTHOR, "commit", "-q", "--allow-empty", "-m", "x"], cwd=outside, check=False)
    assert list(outside.rglob("PWNED"))  # the plant works where nothing stops it

    repository.run(plant, "shell")
    git(repository.workspace, "status")
    git(repository.workspace, "commit", "-q", "--allow-empty", "-m", "second")
    assert git(repository.workspace, "log", "--format=%s").split() == ["second", "first"]
    assert not list(repository.workspace.rglob("PWNED"))


def test_a_submodule_of_the_hosts_stays_one_whose_settings_cannot_be_written(repository, tmp_path):
    git(tmp_path, "init", "-q", "library")
    git(tmp_path / "library", "commit", "-q", "--allow-empty", "-m", "x")
    git(repository.workspace, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    writes = "for name in .git/modules/lib/config .git/modules/lib/hooks/pre-commit lib/.git; do echo x >> $name; done; mv lib l2"
    commit = f"cd lib && echo text > file && git add file && git {' '.join(AUTHOR)} commit -qm inside"
    ran = repository.run(f"{writes}; {commit}", "shell")
    assert (ran.outcome.status, said(ran.outcome.reasons), ran.stderr.count(b"Read-only")) == ("ok", "", 3)
    assert git(repository.workspace / "lib", "log", "--format=%s").split() == ["inside", "x"]


def test_git_itself_works_inside(repository):
    code = f"echo text > file && git add file && git {' '.join(AUTHOR)} commit -qm inside && git log --format=%s"
    ran = repository.run(code, "shell")
    assert (ran.text.split(), said(ran.outcome.reasons)) == (["inside", "first"], "")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_repository_made_on_the_host_meanwhile_is_not_touched_and_then_protected(make_inside):
    own = make_inside()
    own.run("true", "shell")
    git(own.workspace, "init", "-q")
    ran = own.run("touch .git/hooks/pre-commit", "shell")
    assert (ran.outcome.exit_code, "Read-only" in ran.stderr.decode()) == (1, True)
    assert (own.workspace / ".git/config").exists()
