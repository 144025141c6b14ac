"""The checkout's own repository: what scripts may write in it, and which folders outside the workspace hold it."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from sandboxmcp.sandbox.protection import look_at
from sandboxmcp.sandbox.repositories.git_folder import is_listed, outside_folders, unlisted, writable_folders

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "protocol.file.allow=always")


def git(folder, *words):
    return subprocess.run(["git", *AUTHOR, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(folder):
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("one\n")
    git(folder, "add", "file")
    git(folder, "commit", "-qm", "first")
    return folder


def planted(workspace):
    """What the look at a repository that scripts may write names, beside what was there before."""
    before = look_at(workspace, (), git_writable=True)
    yield
    root = os.open(workspace, os.O_RDONLY)
    try:
        found = [name for folder in before.writable for name in unlisted(root, folder, before.writable)]
    finally:
        os.close(root)
    yield sorted(set(found) - set(before.existing))


APART = "git checkout -qb b; echo 2 > file; git commit -qam b; git checkout -q main; echo 3 > file; git commit -qam c; "
"""Two branches that do not merge."""
ORDINARY = {
    "commits": "echo 2 > file; git commit -qam two; git commit -q --amend -m three; git reset -q --soft HEAD~1; git commit -qm x",
    "branches and tags": "git checkout -qb a/b/c; git tag t; git tag -am note v1; git branch -m a/b/d; git checkout -q main",
    "a stash": "echo 2 > file; git stash -q; git stash pop -q; git stash -q; git stash list",
    "a merge": "git checkout -qb b; echo 2 > g; git add g; git commit -qm g; git checkout -q main; git merge -q --no-ff -m m b",
    "a merge that stops": f"{APART} git merge b",
    "a rebase that stops": f"{APART} git rebase b",
    "an interactive rebase that stops": f"{APART} git -c sequence.editor='sed -i s/pick/edit/' rebase -i HEAD~1",
    "picks that stop": f"{APART} git checkout -q b; git commit -q --allow-empty -m d; git checkout -q main; git cherry-pick b~1 b",
    "mails that stop": f'{APART} git checkout -q b; git commit -q --amend -m "it\'s b"; git format-patch -1 --stdout > ../p; '
    "git checkout -q main; git am ../p",
    "packing": "git gc -q; git repack -qad; git pack-refs --all; git commit-graph write; git multi-pack-index write",
    "a split index": "git update-index --split-index; echo 2 > g; git add g; git update-index --index-version 4",
    "fetching": "git clone -q . ../other; cd ../other && git commit -q --allow-empty -m x && cd - && git fetch -q ../other main",
    "a shallow history": "git clone -q . ../other; git fetch -q --depth 1 file://$PWD/../other main",
    "notes": "git notes add -m note",
}


@pytest.mark.parametrize("code", ORDINARY.values(), ids=ORDINARY.keys())
def test_what_git_itself_writes_is_on_the_list(tmp_path, code):
    workspace = repository(tmp_path / "project")
    look = planted(workspace)
    next(look)
    words = " ".join(AUTHOR)
    done = subprocess.run(
        ["bash", "-c", f'git() {{ command git {words} -c core.editor=true "$@"; }}\n{code}'],
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (next(look), "fatal:" in done.stderr) == ([], False), done.stderr


PLANTED = {
    "hooks": ("mkdir -p .git/hooks2; mv .git/hooks2 .git/hook", [".git/hook"]),
    "a remote in a file": ("mkdir -p .git/remotes; echo 'URL: ../evil' > .git/remotes/origin", [".git/remotes"]),
    "settings of a worktree": ("echo > .git/config.worktree", [".git/config.worktree"]),
    "a common folder": ("echo ../evil > .git/commondir", [".git/commondir"]),
    "objects from elsewhere": (
        "mkdir -p .git/objects/info; echo /etc > .git/objects/info/alternates",
        [".git/objects/info/alternates"],
    ),
    "an index that is a link": ("rm .git/index; ln -s ../file .git/index", [".git/index"]),
    "a log that is a link": ("rm .git/logs/HEAD; ln -s ../../file .git/logs/HEAD", [".git/logs/HEAD"]),
    "a branch that is a link": ("ln -s ../../../file .git/refs/heads/x", [".git/refs/heads/x"]),
    "logs that are a link": ("mv .git/logs l; ln -s ../l .git/logs", [".git/logs"]),
    "a message that is a pipe": ("rm .git/COMMIT_EDITMSG; mkfifo .git/COMMIT_EDITMSG", [".git/COMMIT_EDITMSG"]),
    "a head that is a folder": ("rm .git/HEAD; mkdir .git/HEAD", [".git/HEAD"]),
    "a worktree": ("git worktree add -q ../wt", [".git/worktrees"]),
    "a submodule's repository": ("git init -q --bare .git/modules/x", [".git/modules"]),
    "branches deeper than any name": (
        "cd .git/refs/heads; for n in $(seq 70); do mkdir d; cd d; done",
        [".git/refs/" + "heads/" + "d/" * 62 + "d"],
    ),
    "a todo list that runs a command": (
        "mkdir .git/rebase-merge; printf 'pick 1 a\\nexec touch /x\\n' > .git/rebase-merge/git-rebase-todo",
        [".git/rebase-merge/git-rebase-todo"],
    ),
    "its short form behind blanks": (
        "mkdir .git/rebase-merge; printf '# a\\n \\tx\\ttouch /x\\n' > .git/rebase-merge/git-rebase-todo",
        [".git/rebase-merge/git-rebase-todo"],
    ),
    "a command that no git knows": (
        "mkdir .git/sequencer; printf 'shell touch\\n' > .git/sequencer/todo",
        [".git/sequencer/todo"],
    ),
    "a strategy of its own": ("mkdir .git/rebase-merge; echo evil > .git/rebase-merge/strategy", [".git/rebase-merge/strategy"]),
    "an option that names one": (
        "mkdir .git/sequencer; printf '[options]\\nstrategy = evil\\n' > .git/sequencer/opts",
        [".git/sequencer/opts"],
    ),
    "an author that a shell would run": (
        "mkdir .git/rebase-merge; echo \"GIT_AUTHOR_NAME='a'; touch /x\" > .git/rebase-merge/author-script",
        [".git/rebase-merge/author-script"],
    ),
    "a todo list that is a link": (
        "mkdir .git/rebase-merge; ln -s ../../file .git/rebase-merge/git-rebase-todo",
        [".git/rebase-merge/git-rebase-todo"],
    ),
    "a list that nobody may read": (
        "mkdir .git/rebase-apply; echo x > .git/rebase-apply/patch; chmod 0 .git/rebase-apply",
        [],
    ),
    "a todo list of five megabytes": (
        "mkdir .git/rebase-merge; yes '# a' | head -c 5000000 > .git/rebase-merge/git-rebase-todo",
        [".git/rebase-merge/git-rebase-todo"],
    ),
}


@pytest.mark.parametrize(("code", "found"), PLANTED.values(), ids=PLANTED.keys())
def test_what_git_would_obey_or_follow_is_not_on_the_list(tmp_path, code, found):
    workspace = repository(tmp_path / "project")
    look = planted(workspace)
    next(look)
    subprocess.run(["bash", "-c", code], cwd=workspace, check=True, capture_output=True, timeout=60)
    assert next(look) == found


def test_what_stood_before_is_left_and_what_was_planted_is_moved_aside(tmp_path):
    workspace = repository(tmp_path / "project")
    (workspace / ".git/rebase-merge").mkdir()
    (workspace / ".git/rebase-merge/git-rebase-todo").write_text("exec make test\n")
    (workspace / ".git/logs/HEAD").rename(workspace / "log")
    (workspace / ".git/logs/HEAD").symlink_to("../../log")
    seen = look_at(workspace, (), git_writable=True)
    assert seen.sweep() == []
    (workspace / ".git/logs/HEAD").unlink()
    (workspace / ".git/logs/HEAD").symlink_to("../../file")
    (workspace / ".git/commondir").write_text("../evil\n")
    assert sorted(seen.sweep()) == [
        "moved .git/commondir, which is protected, to .git/commondir.quarantined-1",
        "moved .git/logs/HEAD, which is protected, to .git/HEAD.quarantined-1",
    ]
    assert (os.readlink(workspace / ".git/logs/HEAD"), seen.sweep()) == ("../../log", [])


def test_by_default_the_whole_repository_is_read_only(tmp_path):
    workspace = repository(tmp_path / "project")
    assert look_at(workspace, ()).existing == (".git",)


def test_repositories_of_submodules_are_writable_as_the_checkouts_is(tmp_path):
    workspace, library = repository(tmp_path / "project"), repository(tmp_path / "library")
    git(workspace, "submodule", "--quiet", "add", "--name", "a/b", str(library), "lib")
    assert writable_folders(workspace) == (".git", ".git/modules/a/b")
    existing = look_at(workspace, (), git_writable=True).existing
    assert {".git/config", ".git/hooks", ".git/modules/a/b/config", ".git/modules/a/b/hooks"} <= set(existing)


LISTED = {
    "index": True, "HEAD.lock": True, "refs/heads/a": True, "logs/HEAD": True, "objects/ab/cd": True,
    "objects/info/commit-graph": True, "config": False, "hooks/pre-commit": False, "objects/info/alternates": False,
    "commondir": False, "rebase-merge/git-rebase-todo": False, "modules/x/config": False, "": False, "objects": False,
}  # fmt: skip


def test_what_an_overlay_may_carry_over_is_told_by_its_name():
    assert {name: is_listed(name) for name in LISTED} == LISTED


class TestOutside:
    """Which folders a `.git` file may open."""

    def test_the_common_folder_of_a_linked_worktree(self, tmp_path):
        repository(tmp_path / "main")
        git(tmp_path / "main", "worktree", "add", "-q", "../linked")
        assert outside_folders(tmp_path / "linked") == (str(tmp_path / "main/.git"),)

    def test_of_a_repository_that_holds_its_worktrees_only_what_is_gits(self, tmp_path):
        repository(tmp_path / "one")
        git(tmp_path, "clone", "-q", "--bare", "one", "all")
        git(tmp_path / "all", "worktree", "add", "-q", "wt/a")
        (tmp_path / "all/wt/.env").write_text("KEY=secret")
        found = outside_folders(tmp_path / "all/wt/a")
        assert {os.path.basename(path) for path in found} >= {"HEAD", "objects", "refs", "worktrees", "config"}
        assert not any(path == str(tmp_path / "all") or "/wt" in path for path in found)

    def test_the_repository_of_a_submodule(self, tmp_path):
        workspace, library = repository(tmp_path / "project"), repository(tmp_path / "library")
        git(workspace, "submodule", "--quiet", "add", str(library), "lib")
        assert outside_folders(workspace / "lib") == (str(workspace / ".git/modules/lib"),)

    @pytest.mark.parametrize(
        "kind", ["of another workspace", "of no worktree", "that is gone", "of no repository", "a link", "inside"]
    )
    def test_none_for_a_file_that_was_planted(self, tmp_path, kind):
        repository(tmp_path / "main")
        git(tmp_path / "main", "worktree", "add", "-q", "../linked")
        secrets = tmp_path / "home/.ssh"
        (secrets / "worktrees/x").mkdir(parents=True)
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        (secrets / "worktrees/x/gitdir").write_text(f"{workspace}/.git\n")
        (secrets / "worktrees/x/commondir").write_text("../..\n")
        forged = workspace / "evil/worktrees/x"
        forged.mkdir(parents=True)
        (forged / "gitdir").write_text(f"{workspace}/.git\n")
        (forged / "commondir").write_text(f"{secrets}\n")
        target = {
            "of another workspace": tmp_path / "main/.git/worktrees/linked",
            "of no worktree": tmp_path / "main/.git",
            "that is gone": tmp_path / "gone/.git/worktrees/x",
            "of no repository": secrets / "worktrees/x",
            "a link": secrets / "worktrees/x",
            "inside": forged,
        }[kind]
        if kind == "a link":
            (workspace / "pointer").write_text(f"gitdir: {target}\n")
            (workspace / ".git").symlink_to("pointer")
        else:
            (workspace / ".git").write_text(f"gitdir: {target}\n")
        assert outside_folders(workspace) == ()
