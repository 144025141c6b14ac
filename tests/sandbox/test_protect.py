"""Protected paths of the workspace: bound where they exist, swept where they do not."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess

import pytest

from sandboxmcp.sandbox.protect import look_at
from sandboxmcp.sandbox.submodules import submodules

NAMES = (".git/hooks", ".git/config", ".envrc")


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_what_exists_and_what_does_not_is_told_apart(tmp_path):
    (tmp_path / ".git/hooks").mkdir(parents=True)
    seen = look_at(tmp_path, NAMES)
    assert (seen.existing, seen.links, seen.mountpoints) == ((".git/hooks",), (), (".git",))


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
        (workspace / ".git").symlink_to(elsewhere)
    else:
        (workspace / ".git").write_text(f"gitdir: {elsewhere}")
    assert seen.sweep() == ["moved .git, which is protected, to .git.quarantined-1"]
    assert (tree(workspace), tree(elsewhere)) == ([".git.quarantined-1"], ["config"])


def test_the_file_that_stands_for_git_in_a_worktree_is_protected_as_it_is(make_inside):
    own = make_inside()
    (own.workspace / ".git").write_text("gitdir: /elsewhere\n")
    ran = own.run("echo 'gitdir: evil' > .git; mv .git g2; rm .git; cat .git", "shell")
    assert (ran.text, ran.outcome.reason, ran.stderr.count(b"Read-only") + ran.stderr.count(b"busy")) == (
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
    """A sandbox whose workspace is a git repository with one commit and no hooks."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    own = make_inside()
    git(own.workspace, "init", "-q")
    for hook in (own.workspace / ".git/hooks").iterdir():
        hook.unlink()
    (own.workspace / ".git/hooks").rmdir()
    git(own.workspace, "commit", "-q", "--allow-empty", "-m", "first")
    return own


def git(folder, *words):
    return subprocess.run(["git", *AUTHOR, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
SUBMODULE = (
    "git init -q lib && cd lib && git " + " ".join(AUTHOR) + " commit -q --allow-empty -m x && cd .. && "
    "printf '[core]\\nfsmonitor = touch PWNED\\n' >> lib/.git/config && "
    "git update-index --add --cacheinfo 160000,$(git -C lib rev-parse HEAD),lib"
)
HOOK = "printf '#!/bin/sh\\ntouch PWNED\\n' > {0}/pre-commit && chmod +x {0}/pre-commit"
PLANTS = {
    "hooks": "mkdir -p .git/hooks && " + HOOK.format(".git/hooks"),
    "renamed .git": "mv .git g2; cp -r g2 .git; mkdir -p .git/hooks; " + HOOK.format(".git/hooks"),
    "commondir": "cp -r .git evil && mkdir evil/hooks && " + HOOK.format("evil/hooks") + " && echo ../evil > .git/commondir",
    "config": "printf '[core]\\nfsmonitor = touch PWNED\\n' >> .git/config",
    "a submodule": SUBMODULE,
    "a submodule in a packed index": f"{SUBMODULE} && git update-index --index-version 4",
    "a submodule in a split index": f"{SUBMODULE} && git update-index --split-index && echo > file && git add file",
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


def entry(mode, name, told=None):
    """One file of an index, version 2; `told`: the length that its flags tell."""
    length = len(name) if told is None else told
    whole = struct.pack(">24xI12x20sH", mode, b"\1" * 20, length) + name
    return whole + b"\0" * (8 - len(whole) % 8)


def test_a_name_that_ends_before_its_told_length_hides_no_submodule(repository):
    inner = entry(0o100644, b"b") * 3
    decoy = b"a" + b"\0" * 9 + inner + b"x"  # read to its NUL, what follows would look like the rest of the index
    entries = entry(0o100644, decoy) + entry(0o160000, b"lib")
    body = struct.pack(">4sII", b"DIRC", 2, 2) + entries
    (repository.workspace / ".git/index").write_bytes(body + hashlib.sha1(body, usedforsecurity=False).digest())
    assert (git(repository.workspace, "ls-files")[-4:], submodules(repository.workspace)) == ("lib\n", ("lib",))


def test_an_index_that_a_script_keeps_cutting_does_not_end_the_server(repository):
    cut = "import os\nwith open('.git/index', 'wb') as file:\n    while True: file.truncate(1 << 26), file.truncate(0)"
    cutting = repository.start(repository.run_here(cut, timeout_s=60))
    assert {repository.run("true", "shell").outcome.status for _ in range(20)} == {"ok"}
    cutting.cancel()


def test_a_submodule_of_the_hosts_stays_one_whose_settings_cannot_be_written(repository, tmp_path):
    git(tmp_path, "init", "-q", "library")
    git(tmp_path / "library", "commit", "-q", "--allow-empty", "-m", "x")
    git(repository.workspace, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    writes = "for name in .git/modules/lib/config .git/modules/lib/hooks/pre-commit lib/.git; do echo x >> $name; done; mv lib l2"
    commit = f"cd lib && echo text > file && git add file && git {' '.join(AUTHOR)} commit -qm inside"
    ran = repository.run(f"{writes}; {commit}", "shell")
    assert (ran.outcome.status, ran.outcome.reason, ran.stderr.count(b"Read-only")) == ("ok", "", 3)
    assert git(repository.workspace / "lib", "log", "--format=%s").split() == ["inside", "x"]


def test_git_itself_works_inside(repository):
    code = f"echo text > file && git add file && git {' '.join(AUTHOR)} commit -qm inside && git log --format=%s"
    ran = repository.run(code, "shell")
    assert (ran.text.split(), ran.outcome.reason) == (["inside", "first"], "")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_repository_made_on_the_host_meanwhile_is_not_touched_and_then_protected(make_inside):
    own = make_inside()
    own.run("true", "shell")
    git(own.workspace, "init", "-q")
    ran = own.run("touch .git/hooks/pre-commit", "shell")
    assert (ran.outcome.exit_code, "Read-only" in ran.stderr.decode()) == (1, True)
    assert (own.workspace / ".git/config").exists()
