"""Repositories that scripts leave in the project so that a tool on the host runs their code: moved aside before the answer."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandboxmcp.render.reasons import said

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
TABLE = tomllib.loads((Path(__file__).parent.parent / "sandbox/repositories/repositories.toml").read_text())
AUTHOR = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
STATUS = "cd sub && git status"
EVIL = "git init -q {0} && git -C {0} config core.fsmonitor 'touch {{mark}};'"


@dataclass(frozen=True)
class Plant:
    """What a script leaves, and what the host does then."""

    script: str
    then: str = STATUS


PLANTS = {one["name"]: Plant(one["script"], one.get("then", STATUS)) for one in TABLE["plant"]} | {
    "below folders that nobody may enter": Plant(
        f"mkdir -p a/b && cd a/b && {EVIL.format('sub')} && chmod 0 sub sub/.git . ..",
        "chmod 700 a a/b a/b/sub a/b/sub/.git; cd a/b/sub && git status",
    ),
    "in a project that nobody may enter": Plant(f"{EVIL.format('sub')} && chmod 0 .", "chmod 700 .; cd sub && git status"),
    "in a folder that may not be written": Plant(f"{EVIL.format('sub')} && chmod 500 sub sub/.git"),
    "beside all names that it could be moved to": Plant(
        f"{EVIL.format('sub')} && cd sub && for n in $(seq 1 1000); do : > .git.quarantined-$n; done"
    ),
    "with configuration that is a pipe for the reader": Plant(
        f"{EVIL.format('sub')} && cd sub/.git && mv config c && mkfifo config",
        "rm sub/.git/config; mv sub/.git/c sub/.git/config; " + STATUS,
    ),
    "in a folder of a name with control characters": Plant(
        "d=$(printf 'a\\033[2Jb\\nc') && mkdir \"$d\" && " + EVIL.format('"$d"/sub'), "cd a*/sub && git status"
    ),
    "in the objects of an ordinary repository without a worktree": Plant(
        f"git init -q --bare x && cd x/objects && {EVIL.format('sub')}", "cd x/objects/sub && git status"
    ),
    "in a repository's own folder": Plant(
        f"git init -q x && cd x/.git/objects && {EVIL.format('ab')}", "cd x/.git/objects/ab && git status"
    ),
    "called a submodule by the project's tree": Plant(
        f"git init -q x && cd x && {EVIL.format('sub')} && "
        "git -C sub -c core.fsmonitor=false commit -q --allow-empty -m x && git add sub && git commit -qm x",
        "cd x && git status",
    ),
}  # fmt: skip


def shell(folder, code, mark):
    Path(folder).chmod(0o700)
    environment = {**os.environ, **AUTHOR, "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["/bin/bash", "-c", code.replace("{mark}", str(mark))], cwd=folder, env=environment, capture_output=True, timeout=60
    )


def inside_shell(code, mark):
    exports = "; ".join(f"export {name}={value}" for name, value in AUTHOR.items())
    return f"{exports}; {code.replace('{mark}', str(mark))}"


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_no_tool_of_the_host_runs_what_a_script_planted(inside, tmp_path, plant):
    if plant.script.startswith("hg") and shutil.which("hg") is None:
        pytest.skip("Mercurial is not installed")
    outside, mark = tmp_path / "project", tmp_path / "outside-mark"
    outside.mkdir()
    shell(outside, plant.script, mark)
    shell(outside, plant.then, mark)
    assert mark.exists()  # the plant works where nothing stops it

    own = inside.workspace
    ran = inside.run(inside_shell(plant.script, tmp_path / "mark"), "shell", 60)
    shell(own, plant.then, tmp_path / "mark")
    assert not (tmp_path / "mark").exists()
    assert "could run programs on the host" in said(ran.outcome.reasons)
    assert said(ran.outcome.reasons).isprintable()
    shell(own, "chmod -R u+rwX . ; rm -rf ./* ./.[!.]*", "")


ORDINARY = [
    one for one in TABLE["ordinary"] if one["name"] in ("git init", "a clone", "as cargo new", "a submodule", "a worktree", "hg")
]


@pytest.mark.parametrize("script", [one["script"] for one in ORDINARY], ids=[one["name"] for one in ORDINARY])
def test_an_ordinary_repository_of_a_script_stays_and_is_written_again(make_inside, script):
    if script.startswith("hg") and shutil.which("hg") is None:
        pytest.skip("Mercurial is not installed")
    own = make_inside()
    ran = own.run(inside_shell(script, ""), "shell", 60)
    assert (ran.outcome.status, said(ran.outcome.reasons)) == ("ok", "")
    code = "cd sub && if test -d .hg; then hg status; else echo x > file && git add file && git commit -qm more; fi"
    again = own.run(inside_shell(code, ""), "shell", 60)
    assert (again.outcome.status, said(again.outcome.reasons)) == ("ok", "")


def test_configuration_that_a_script_adds_to_a_known_repository_is_found(make_inside, tmp_path):
    own, mark = make_inside(), tmp_path / "mark"
    shell(own.workspace, "git init -q sub", "")
    assert said(own.run("true", "shell").outcome.reasons) == ""
    ran = own.run(f"git -C sub config core.fsmonitor 'touch {mark};'", "shell")
    shell(own.workspace, STATUS, mark)
    assert (mark.exists(), "config sets core.fsmonitor" in said(ran.outcome.reasons)) == (False, True)


def test_a_repository_that_was_unusual_at_the_start_can_be_read_and_not_written(make_inside, tmp_path):
    own, mark = make_inside(), tmp_path / "mark"
    shell(own.workspace, f"{EVIL.format('sub')} && cd sub && git commit -q --allow-empty -m one", mark)
    mark.unlink(missing_ok=True)
    ran = own.run("cd sub && git log --format=%s; echo x >> .git/config; mv .git g; mv ../sub ../other; rm .git/hooks/*", "shell")
    assert (ran.text, said(ran.outcome.reasons)) == ("one\n", "")
    assert (own.workspace / "sub/.git/HEAD").exists()
    assert "x" not in (own.workspace / "sub/.git/config").read_text().splitlines()


def test_what_the_host_clones_between_scripts_stays_and_is_bound(make_inside):
    own = make_inside()
    own.run("true", "shell")
    shell(own.workspace, EVIL.format("sub"), "/nonexistent/x")
    ran = own.run("echo x >> sub/.git/config", "shell")
    assert (ran.outcome.exit_code, "Read-only" in ran.stderr.decode()) == (1, True)
    assert (own.workspace / "sub/.git/config").exists()


def test_more_folders_than_are_looked_at_are_told(make_inside):
    own = make_inside()
    made = "import os\nfor n in range(20_001): os.mkdir(f'd{n}')\nos.makedirs('d1/a/b/sub/.git')"
    ran = own.run(made, timeout_s=60)
    assert "were not looked at for repositories" in said(ran.outcome.reasons)
    assert "were not looked at for repositories" in said(
        own.run("pass").outcome.reasons
    )  # anything may have been planted there now


def test_rules_that_agents_obey_are_told_and_stay(make_inside):
    own = make_inside()
    (own.workspace / "AGENTS.md").write_text("Be kind.\n")
    ran = own.run(
        "echo evil >> AGENTS.md; mkdir -p a/b; echo evil > a/b/CLAUDE.md; mkdir .clinerules; touch .clinerules/x.md", "shell"
    )
    assert (own.workspace / "AGENTS.md").read_text() == "Be kind.\nevil\n"
    for note in (
        "changed AGENTS.md, which agents obey",
        "made a/b/CLAUDE.md, which agents obey",
        "made .clinerules/x.md, which agents",
    ):
        assert note in said(ran.outcome.reasons)
    assert said(own.run("true", "shell").outcome.reasons) == ""
    (own.workspace / "AGENTS.md").write_text("the user's own change")
    assert said(own.run("true", "shell").outcome.reasons) == ""


THREAD = """
import os, subprocess, threading
def plant():
    while True:
        subprocess.run("git init -q sub && git -C sub config core.fsmonitor 'touch {mark};'", shell=True)
threading.Thread(target=plant, daemon=True).start()
while b"fsmonitor" not in subprocess.run("cat sub/.git/config", shell=True, capture_output=True).stdout: pass
"""


def test_a_thread_that_plants_until_it_is_killed_leaves_nothing(make_inside, tmp_path):
    own = make_inside()

    async def planted_and_gone() -> None:
        await own.run_here(THREAD.replace("{mark}", str(tmp_path / "mark")))
        session = own.runner.running
        while session._tidying:
            await asyncio.wait(session._tidying)

    for _ in range(3):
        own.wait(planted_and_gone())
        shell(own.workspace, STATUS, "")
        assert not (tmp_path / "mark").exists()
    assert list(own.workspace.glob("sub/.git.quarantined-*"))  # it had been there


LOOK = """
import os, signal, sys
from pathlib import Path
from sandboxmcp.sandbox.repositories.watch import Repositories

repositories, last = Repositories(Path(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
steps = first = 0

def count(event, _):
    global steps, first
    steps += 1
    first = first or (steps if event == "os.rename" else 0)
    if steps == last:
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)  # called before each open, rename, listing and other things that reach the system
repositories.look()
print(first, steps, flush=True)
"""
KILLS, PLANTED = 50, 8


def looked(template: Path, workspace: Path, last: int) -> str:
    """What a look says at its end over a copy of the template; `last`: the step before which it is killed, 0 for none."""
    workspace.mkdir()
    command = [sys.executable, "-c", LOOK, str(workspace), str(last)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        shutil.copytree(template, workspace, dirs_exist_ok=True)
        return server.communicate("go\n")[0]


def test_a_server_that_is_killed_in_a_look_leaves_nothing_half_moved(tmp_path):
    """Killed with -9 before 50 of its steps, drawn at random; most of them between the first move and the last."""
    template, mark = tmp_path / "template", tmp_path / "mark"
    template.mkdir()
    shell(template, " && ".join(EVIL.format(f"d{n}/sub") for n in range(PLANTED)), mark)
    first, steps = map(int, looked(template, tmp_path / "whole", 0).split())
    seed = random.randrange(1 << 32)
    draw, ends = random.Random(seed), set[int]()
    for turn in range(KILLS):
        last = draw.randint(1, first) if turn < KILLS // 5 else draw.randint(first, steps)
        workspace = tmp_path / f"w{turn}"
        assert looked(template, workspace, last) == ""
        moved = [*workspace.glob("*/sub/.git.quarantined-*")]
        ends.add(len(moved))
        for folder in [*moved, *(one for one in workspace.glob("*/sub/.git") if not (one / "HEAD").exists())]:
            shell(folder, "git status; cd .. && git status", mark)
        assert not mark.exists(), (seed, last)
        assert len(moved) + len([*workspace.glob("*/sub/.git")]) == PLANTED, (seed, last)  # one without HEAD is none to git
        shutil.rmtree(workspace)
    assert len(ends) > 2, (seed, ends)  # it was killed at different points


"""Each `.git` is either as it was, which the next start takes for the host's, or nothing obeys it any more."""


@pytest.mark.parametrize("calls", [1, 3])
def test_a_folder_that_was_looked_at_before_is_looked_at_again(make_inside, tmp_path, calls):
    own, mark = make_inside(), tmp_path / "mark"
    (own.workspace / "a/b").mkdir(parents=True)
    for _ in range(calls):
        assert said(own.run("true", "shell").outcome.reasons) == ""
    ran = own.run(f"cd a/b && {EVIL.format('.')}".replace("{mark}", str(mark)), "shell")
    shell(own.workspace, "cd a/b && git status", mark)
    assert (mark.exists(), "moved a/b/.git to a/b/.git.quarantined-1" in said(ran.outcome.reasons)) == (False, True)


NAMED = {
    "a folder of hooks": (
        "core.hooksPath .husky/_",
        "mkdir -p sub/.husky/_",
        ".husky/_/pre-commit",
        "git commit -q --allow-empty -m x",
    ),
    "a folder of hooks that is not there": (
        "core.hooksPath .husky/_",
        "true",
        ".husky/_/pre-commit",
        "git commit -q --allow-empty -m x",
    ),
    "a program": ("core.fsmonitor ./tools/monitor", "mkdir sub/tools && echo > sub/tools/monitor", "tools/monitor", "git status"),
    "a program of an alias": ("alias.x '!sh tools/x a'", "mkdir sub/tools && echo > sub/tools/x", "tools/x", "git x"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_a_repository_of_the_hosts_names_is_not_written_by_scripts(make_inside, tmp_path, name):
    setting, host, path, then = NAMED[name]
    write = f"cd sub && mkdir -p {os.path.dirname(path)} && printf '#!/bin/sh\\ntouch {{mark}}\\n' > {path}; chmod +x {path}"
    own, outside, mark = make_inside(), tmp_path / "outside", tmp_path / "mark"
    outside.mkdir()
    for folder in (outside, own.workspace):
        shell(folder, f"git init -q sub && {host} && git -C sub config {setting}", mark)
    shell(outside, write, mark)
    shell(outside, f"cd sub && {then}", mark)
    assert mark.exists()  # it works where nothing stops it
    mark.unlink()
    own.run(inside_shell(write, mark), "shell")
    shell(own.workspace, f"cd sub && {then}", mark)
    assert not mark.exists()
