"""What a script leaves so that git runs it on the host, with the repository read-only (the default) and writable (`git = "rw"`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from sandboxmcp.render.reasons import said

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
AUTHOR = "-c user.name=t -c user.email=t@example.invalid"
GIT = f'git() {{ command git {AUTHOR} "$@"; }}\n'
NESTED = (
    "command git init -q lib && git -C lib commit -q --allow-empty -m x && "
    "printf '[core]\\n\\tfsmonitor = touch {mark};\\n' >> lib/.git/config && rm -rf lib/.git/hooks\n"
)
"""A repository in a subfolder, whose settings name a command that `git status` runs."""
LINK = f"{NESTED} git update-index --add --cacheinfo 160000,$(git -C lib rev-parse HEAD),lib\n"
"""The same, and the index calls it a submodule."""
HOOK = "printf '#!/bin/sh\\ntouch {mark}\\n' > {path} && chmod +x {path}\n"


@dataclass(frozen=True)
class Plant:
    """What the script does, and which command of the user's runs it on the host."""

    script: str
    then: str = "git status"
    host: str = ""
    """What the user's repository has besides one commit."""


PLANTS = {
    "a submodule": Plant(LINK),
    "an index that is a link": Plant(f"{LINK} mv .git/index other && ln -s ../other .git/index"),
    "a shared index that is a link": Plant(
        f"{LINK} git update-index --split-index; for f in .git/sharedindex.*; do mv $f s; ln -s ../s $f; done"
    ),
    "a version 4 index": Plant(f"{LINK} git update-index --index-version 4"),
    "a sparse index": Plant(
        f"mkdir d; echo > d/f; git add d; git commit -qm d; {LINK} git sparse-checkout init --cone --sparse-index"
    ),
    "a submodule after 1,100 others in a submodule": Plant(
        'command git init -q outer; cd outer; for n in $(seq 1100); do echo "160000 $(printf %040d 1) 0\ta$n"; done'
        f" | git update-index --add --index-info; {LINK} git commit -qm x; cd ..; "
        "git update-index --add --cacheinfo 160000,$(git -C outer rev-parse HEAD),outer"
    ),
    "a submodule that stands in a commit only": Plant(
        f"{LINK} git commit -qm evil; git update-index --force-remove lib", "git reset -q --hard; git status"
    ),
    "a submodule on another branch": Plant(
        f"git checkout -q -b evil; {LINK} git commit -qm evil; git checkout -q main", "git checkout -q evil; git status"
    ),
    "a submodule whose repository lies elsewhere": Plant(
        f"{LINK} mv lib/.git deep; mkdir -p a/b; mv deep a/b/c; echo gitdir: ../a/b/c > lib/.git"
    ),
    "a submodule whose repository is a link": Plant(f"{LINK} mv lib/.git deep; ln -s ../deep lib/.git"),
    "a submodule among those of git's own folder": Plant(
        f"{LINK} mkdir -p .git/modules; mv lib/.git .git/modules/lib; echo gitdir: ../.git/modules/lib > lib/.git; "
        "printf '\\tworktree = ../../../lib\\n' >> .git/modules/lib/config"
    ),
    "a command in the list of a rebase": Plant(
        "sed -i '1i exec touch {mark}' .git/rebase-merge/git-rebase-todo",
        f"command git {AUTHOR} -c core.editor=true rebase --continue",
        "echo 2 > file; git commit -qam two; echo 3 > file; git commit -qam three; "
        "git -c sequence.editor='sed -i 1s/pick/edit/' rebase -q -i HEAD~2 >&2 || true",
    ),
    "a remote that is a folder of the project": Plant(
        "command git init -q --bare evil.git; mkdir -p evil.git/hooks; "
        + HOOK.replace("{path}", "evil.git/hooks/pre-receive")
        + "mkdir -p .git/remotes; printf 'URL: %s\\nPush: refs/heads/main\\n' $PWD/evil.git > .git/remotes/origin",
        "git push -q origin main",
    ),
    "a branch that is a folder of the project": Plant(
        "command git init -q --bare evil.git; mkdir -p evil.git/hooks; "
        + HOOK.replace("{path}", "evil.git/hooks/pre-receive")
        + "mkdir -p .git/branches; echo $PWD/evil.git > .git/branches/origin",
        "git push -q origin main",
    ),
    "settings that worktrees have": Plant(
        "printf '[core]\\n\\tfsmonitor = touch {mark};\\n' > .git/config.worktree", host="git config extensions.worktreeConfig true"
    ),
    "a log that leads to a file that runs": Plant(
        "rm .git/logs/HEAD; ln -s ../../run.sh .git/logs/HEAD",
        "printf '#' > run.sh; git commit -q --allow-empty -m \"$(printf 'x\\n')\"; grep -q commit run.sh && touch {mark}",
    ),
    "a message that leads to a file": Plant(
        "rm -f .git/COMMIT_EDITMSG; echo > notes; ln -s ../notes .git/COMMIT_EDITMSG",
        "git commit -q --allow-empty -m evil; grep -q evil notes && touch {mark}",
    ),
    "a repository without a worktree": Plant(
        "command git init -q --bare sub; rm -rf sub/hooks; "
        "printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = touch {mark};\\n' >> sub/config",
        "cd sub && git status",
    ),
    "a repository in a subfolder": Plant(NESTED, "cd lib && git status"),
    "a repository deep below": Plant(f"mkdir -p a/b/c/d/e; cd a/b/c/d/e; {NESTED}", "cd a/b/c/d/e/lib && git status"),
    "a repository moved into place": Plant(f"x=$(mktemp -d); cd $x; {NESTED} cd - && mv $x/lib lib", "cd lib && git status"),
    "a repository by a file": Plant(
        f"{NESTED} mv lib/.git lib/data; mkdir sub; echo gitdir: ../lib/data > sub/.git", "cd sub && git status"
    ),
    "a repository with hooks": Plant(
        "command git init -q lib; mkdir -p lib/.git/hooks; " + HOOK.replace("{path}", "lib/.git/hooks/post-checkout"),
        "cd lib && git commit -q --allow-empty -m x; git checkout -q -b x",
    ),
}


def shell(folder, code, mark="/nonexistent/mark"):
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "GIT_ALLOW_PROTOCOL": "file"}
    code = GIT + code.replace("{mark}", str(mark))
    return subprocess.run(["/bin/bash", "-c", code], cwd=folder, env=environment, check=False, capture_output=True, text=True)


def prepare(folder, plant):
    folder.mkdir(exist_ok=True)
    made = shell(
        folder,
        f"set -e; command git init -q -b main .; rm -rf .git/hooks; echo 1 > file; git add file; git commit -qm one; {plant.host}",
    )
    assert (made.returncode, "fatal" in made.stderr) == (0, False), made.stderr


@pytest.mark.parametrize("mode", ["ro", "rw"])
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_git_on_the_host_runs_nothing_of_a_scripts(make_inside, tmp_path, plant, mode):
    outside, mark = tmp_path / "project", tmp_path / "outside-mark"
    prepare(outside, plant)
    shell(outside, plant.script, mark)
    shell(outside, plant.then, mark)
    assert mark.exists()  # the plant works where nothing stops it

    own, mark = make_inside(git=mode), tmp_path / "inside-mark"
    prepare(own.workspace, plant)
    own.run(GIT + plant.script.replace("{mark}", str(mark)), "shell")
    shell(own.workspace, plant.then, mark)
    assert not mark.exists()
    assert shell(own.workspace, "git log --format=%s | tail -1").stdout == "one\n"  # what the user had is there


HELD = """
import fcntl, os, subprocess, threading, time
fd = os.open(".git/index", os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
print("held", flush=True)
"""


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_an_index_that_a_script_holds_hides_nothing(make_inside, tmp_path, mode):
    own, mark = make_inside(git=mode), tmp_path / "mark"
    prepare(own.workspace, Plant(""))
    own.run(GIT + LINK.replace("{mark}", str(mark)) + f"python3 -c '{HELD}' & sleep 0.3", "shell")
    shell(own.workspace, "git status")
    assert not mark.exists()


def test_an_index_beyond_any_look_hides_nothing(make_inside, tmp_path):
    own, mark = make_inside(git="rw"), tmp_path / "mark"
    prepare(own.workspace, Plant(""))
    grown = "python3 - <<'EOF'\nimport os\nos.truncate('.git/index', 300 << 20)\nEOF\n"
    own.run(GIT + LINK.replace("{mark}", str(mark)) + "cp .git/index keep; " + grown + "cp keep .git/index", "shell")
    shell(own.workspace, "git status")
    assert not mark.exists()


def test_reading_commands_work_as_outside(make_inside):
    own = make_inside()
    prepare(own.workspace, Plant(""))
    shell(own.workspace, "echo 2 >> file; git commit -qam two; echo 3 > new")
    reading = ("status", "log --stat --format=%s%n%ae", "diff HEAD~1", "diff-files", "blame -s file", "grep 2", "stash list")
    commands = "; ".join(f"git {command}" for command in reading)
    outside, inside = shell(own.workspace, commands), own.run(GIT + commands, "shell")
    assert (inside.text, inside.stderr.decode(), said(inside.outcome.reasons)) == (outside.stdout, outside.stderr, "")


WRITES = (
    "git add file",
    "git commit -qam x",
    "git stash",
    "git branch b",
    "git worktree add -q ../w",
    "git tag t",
    "git fetch -q . main",
)


@pytest.mark.parametrize("command", WRITES)
def test_writing_commands_fail_with_the_setting_that_allows_them(make_inside, command):
    own = make_inside()
    prepare(own.workspace, Plant(""))
    ran = own.run(f"{GIT} echo 2 > file; {command}", "shell")
    assert (ran.outcome.status, 'git = "rw"' in said(ran.outcome.reasons)) == ("failed", True)
    assert shell(own.workspace, "git log --format=%s; git stash list; git branch; git tag").stdout == "one\n* main\n"


def test_where_it_is_allowed_scripts_commit_under_the_users_name(make_inside):
    own = make_inside(git="rw")
    prepare(own.workspace, Plant(""))
    shell(own.workspace, "command git config user.name Ada; command git config user.email ada@example.invalid")
    ran = own.run("echo 2 > file; git stash -q; git stash pop -q; git commit -qam two; git checkout -qb b; git tag t", "shell")
    assert (ran.outcome.status, said(ran.outcome.reasons), ran.stderr) == ("ok", "", b"")
    assert shell(own.workspace, "git log --format='%s %an' -1; git branch --show-current").stdout == "two Ada\nb\n"


def test_a_linked_worktree_is_read_and_its_repository_is_not_written(make_inside):
    own = make_inside()
    shutil.rmtree(own.workspace)
    main = own.workspace.parent / f"{own.workspace.name}-main"
    prepare(main, Plant(""))
    assert shell(main, f"git worktree add -q -b linked {own.workspace}").returncode == 0
    ran = own.run(
        f"{GIT} git status --short --branch; git log --format=%s; touch {main}/.git/hooks {main}/.git/x; ls {main}", "shell"
    )
    assert (ran.text, "Read-only" in ran.stderr.decode()) == ("## linked\none\n", True)
    assert not (main / ".git/x").exists()


def test_a_planted_file_shows_no_folder_of_the_host(make_inside, tmp_path):
    own, host = make_inside(), tmp_path / "host"
    prepare(host, Plant(""))
    (own.workspace / ".git").write_text(f"gitdir: {host}/.git\n")
    ran = own.run(f"git log; ls {host}", "shell")
    assert (ran.text, ran.stderr.count(b"not a git repository"), ran.stderr.count(b"No such file")) == ("", 1, 1)


TOKEN = "ghp_" + "a1B2c3D4" * 5


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_token_in_the_settings_is_not_shown_and_git_reads_them_all_the_same(make_inside, mode):
    own = make_inside(git=mode)
    prepare(own.workspace, Plant(""))
    shell(own.workspace, f"command git remote add origin https://user:{TOKEN}@example.invalid/a.git")
    shell(
        own.workspace,
        "command git config http.https://example.invalid/.extraheader 'AUTHORIZATION: basic dXNlcjpzZWNyZXQtb2YtbWluZQ=='",
    )
    ran = own.run("cat .git/config; git remote -v; git config --get-regexp . ; git status --short", "shell")
    assert ("origin" in ran.text, TOKEN in ran.text, "dXNlcjpzZWNyZXQ" in ran.text, ran.stderr) == (True, False, False, b"")
    assert TOKEN in (own.workspace / ".git/config").read_text()


def test_nor_are_those_of_a_linked_worktree(make_inside):
    own = make_inside()
    shutil.rmtree(own.workspace)
    main = own.workspace.parent / f"{own.workspace.name}-secret"
    prepare(main, Plant(""))
    shell(main, f"command git remote add origin https://user:{TOKEN}@example.invalid/a.git; git worktree add -q {own.workspace}")
    ran = own.run(f"git remote -v; cat {main}/.git/config; git status --short", "shell")
    assert ("origin" in ran.text, TOKEN in ran.text, ran.stderr) == (True, False, b"")


FOUND_LATER = {
    "a submodule of the name that quarantine gives": Plant(
        NESTED + "mkdir -p .git/modules; mv lib/.git .git/modules/q.quarantined-1; rmdir lib; mkdir sub2; "
        "printf '\\tworktree = ../../../sub2\\n' >> .git/modules/q.quarantined-1/config; "
        "printf '[submodule \"q.quarantined-1\"]\\n\\tpath = sub2\\n\\turl = ./x\\n' > .gitmodules; "
        "git update-index --add --cacheinfo 160000,$(git --git-dir .git/modules/q.quarantined-1 --work-tree . rev-parse HEAD),sub2",
        "git submodule init; git submodule update; cd sub2; git status",
    ),
    "a log of a branch of such a name": Plant(
        "git checkout -q -b main.quarantined-1; rm .git/logs/refs/heads/main.quarantined-1; touch run.sh; "
        "ln -s ../../../../run.sh .git/logs/refs/heads/main.quarantined-1",
        "git commit -q --allow-empty -m x; grep -q commit run.sh && touch {mark}",
    ),
    "a graph that is a link": Plant(
        "mkdir -p .git/objects/info/commit-graphs; echo keep > notes; "
        "ln -s ../../../../notes .git/objects/info/commit-graphs/commit-graph-chain",
        "git commit-graph write --split --reachable; grep -q keep notes || touch {mark}",
    ),
    "packs that are a link": Plant(
        "mkdir packs; echo keep > packs/tmp_pack_x; rmdir .git/objects/pack; ln -s ../../packs .git/objects/pack",
        "git gc -q --prune=now; test -e packs/tmp_pack_x || touch {mark}",
    ),
    "packs of a nested repository that are a link": Plant(
        "command git init -q sub; git -C sub commit -q --allow-empty -m x; mkdir packs; echo keep > packs/tmp_pack_x; "
        "rm -r sub/.git/objects/pack; ln -s ../../../packs sub/.git/objects/pack",
        "cd sub; git gc -q --prune=now; test -e ../packs/tmp_pack_x || touch {mark}",
    ),
}


@pytest.mark.parametrize("mode", ["ro", "rw"])
@pytest.mark.parametrize("plant", FOUND_LATER.values(), ids=FOUND_LATER.keys())
def test_git_on_the_host_follows_nothing_of_a_scripts(make_inside, tmp_path, plant, mode):
    test_git_on_the_host_runs_nothing_of_a_scripts(make_inside, tmp_path, plant, mode)


DEEP = (
    "p=$(printf 'd/%.0s' $(seq 110)); mkdir -p $p; cd $p; " + NESTED + "cd - > /dev/null; "
    "git update-index --add --cacheinfo 160000,$(git -C $p/lib rev-parse HEAD),${p}lib; chmod 111 $p/lib $p"
)


def test_a_repository_in_deep_folders_that_a_script_has_shut_is_found(make_inside, tmp_path):
    own, mark = make_inside(git="rw"), tmp_path / "mark"
    prepare(own.workspace, Plant(""))
    ran = own.run(GIT + DEEP.replace("{mark}", str(mark)), "shell")
    shell(own.workspace, "git status")
    assert (mark.exists(), "it could run programs on the host" in said(ran.outcome.reasons)) == (False, True)


COPIED = (
    "git config rerere.enabled true 2> /dev/null; H=$(printf %040d 7); mkdir -p .git/rr-cache/$H; "
    "printf '<<<<<<<\\na\\n=======\\nb\\n>>>>>>>\\n' > .git/rr-cache/$H/preimage; printf \"$H\\t{secret}\\0\" > .git/MERGE_RR"
)


@pytest.mark.parametrize("mode", ["ro", "rw"])
@pytest.mark.parametrize("folder", [".", "sub"])
def test_git_copies_no_file_of_the_host_for_a_script(make_inside, tmp_path, mode, folder):
    own, secret = make_inside(git=mode), tmp_path / "secret"
    secret.write_text("TOPSECRET\n")
    prepare(own.workspace, Plant(""))
    made = "command git init -q sub; cd sub; " if folder == "sub" else ""
    own.run(GIT + made + COPIED.replace("{secret}", str(secret)), "shell")
    shell(own.workspace, f"cd {folder}; git -c rerere.enabled=true commit -q --allow-empty -m x")
    assert not [one for one in own.workspace.rglob("*image*") if b"TOPSECRET" in one.read_bytes()]


BETWEEN = {
    "a worktree": "git worktree add -q -b w $PWD-between",
    "a rebase that runs a command": "echo 2 > file; git commit -qam two; git rebase -q -x false HEAD~1",
    "a bisection": "git commit -q --allow-empty -m b; git bisect start HEAD HEAD~1",
    "recorded resolutions": "mkdir .git/rr-cache; echo > .git/rr-cache/x",
    "a hook": "mkdir .git/hooks; printf '#!/bin/sh\\n' > .git/hooks/pre-commit",
}


@pytest.mark.parametrize("code", BETWEEN.values(), ids=BETWEEN.keys())
def test_what_the_user_does_to_the_repository_between_scripts_stays(make_inside, code):
    own = make_inside(git="rw")
    prepare(own.workspace, Plant(""))
    own.run("true", "shell")
    shell(own.workspace, code)
    before = sorted(str(one) for one in (own.workspace / ".git").rglob("*"))
    ran = own.run("git status > /dev/null", "shell")
    assert (said(ran.outcome.reasons), sorted(str(one) for one in (own.workspace / ".git").rglob("*"))) == ("", before)
