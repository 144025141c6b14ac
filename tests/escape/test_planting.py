"""What a script leaves in the project so that git runs it on the host later, by ways that the project's own settings open."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
EVIL = "printf '#!/bin/sh\\ntouch {mark}\\n' > {path} && chmod +x {path}"
"""`{mark}` is absolute: what runs may have any working folder."""
REPOSITORY = "git init -q . && rm -r .git/hooks && "
SETTINGS = "printf '[core]\\nrepositoryformatversion=0\\nfsmonitor=./evil\\n' > {path}"


@dataclass(frozen=True)
class Plant:
    """What the host has, what the script does, and what the host does then."""

    host: str
    script: str
    then: str = "git status"


COMMIT = f"git {' '.join(AUTHOR)} commit -q --allow-empty -m x"
PLANTS = {
    "a folder of hooks that the settings name": Plant(
        f"{REPOSITORY} git config core.hooksPath tools/hooks",
        "mkdir -p tools/hooks && " + EVIL.format(path="tools/hooks/pre-commit", mark="{mark}"),
        COMMIT,
    ),
    "what a hook is a link to": Plant(
        f"{REPOSITORY} mkdir .git/hooks scripts && install /dev/null scripts/run && ln -s ../../scripts/run .git/hooks/pre-commit",
        EVIL.format(path="scripts/run", mark="{mark}"),
        COMMIT,
    ),
    "what the link of a hook is a link to": Plant(
        f"{REPOSITORY} mkdir .git/hooks && install /dev/null check && ln -s check link && ln -s ../../link .git/hooks/pre-commit",
        "rm link; ln -s evil link; " + EVIL.format(path="evil", mark="{mark}"),
        COMMIT,
    ),
    "hooks that are a link": Plant(
        f"{REPOSITORY} mkdir githooks && ln -s ../githooks .git/hooks",
        EVIL.format(path="githooks/pre-commit", mark="{mark}"),
        COMMIT,
    ),
    "settings that the settings include": Plant(
        f"{REPOSITORY} git config include.path ../.gitconfig",
        SETTINGS.format(path=".gitconfig") + " && " + EVIL.format(path="evil", mark="{mark}"),
    ),
    "a program that the settings name": Plant(
        f"{REPOSITORY} mkdir tools && echo > tools/monitor && git config core.fsmonitor tools/monitor",
        EVIL.format(path="tools/monitor", mark="{mark}"),
    ),
    "a program that the settings name and nobody has written": Plant(
        f"{REPOSITORY} git config core.fsmonitor ./monitor", EVIL.format(path="monitor", mark="{mark}")
    ),
    "a worktree elsewhere": Plant(
        f'{REPOSITORY} {COMMIT} && git worktree add -q "$PWD-linked"',
        "cp -r .git evil.git; for one in .git/worktrees/*; do echo ../../../evil.git > $one/commondir; done; "
        + "printf '[core]\\nfsmonitor=touch {mark};\\n' >> evil.git/config",
        'cd "$PWD-linked" && git status',
    ),
    "a repository without a worktree": Plant(
        "true",
        "git init -q --bare . && "
        + SETTINGS.format(path="config")
        + " && printf 'worktree=.\\nbare=false\\n' >> config && "
        + EVIL.format(path="evil", mark="{mark}"),
    ),
    "settings in a folder that may not be written": Plant(
        "true",
        "git init -q . && "
        + SETTINGS.format(path=".git/config")
        + " && "
        + EVIL.format(path="evil", mark="{mark}")
        + " && chmod 555 .git",
    ),
    "settings beside all names that they could be moved to": Plant(
        "true",
        "git init -q . && "
        + SETTINGS.format(path=".git/config")
        + " && "
        + EVIL.format(path="evil", mark="{mark}")
        + " && for n in $(seq 1 1000); do : > .git/config.quarantined-$n; done",
    ),
}


def shell(folder, code):
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return subprocess.run(["/bin/bash", "-c", code], cwd=folder, env=environment, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_git_on_the_host_runs_nothing_that_a_script_planted(make_inside, tmp_path, plant):
    outside, mark = tmp_path / "project", tmp_path / "outside-mark"
    outside.mkdir()
    for code in (plant.host, plant.script.replace("{mark}", str(mark)), plant.then):
        shell(outside, code)
    assert mark.exists()  # the plant works where nothing stops it

    own, mark = make_inside(), tmp_path / "inside-mark"
    assert shell(own.workspace, plant.host).stderr == ""
    own.run(plant.script.replace("{mark}", str(mark)), "shell")
    shell(own.workspace, plant.then)
    assert not mark.exists()


UNTIL_KILLED = """
import threading

def plant():
    while True:
        with open(".envrc", "w") as file:
            file.write("touch /tmp/planted")

threading.Thread(target=plant, daemon=True).start()
"""


def test_a_thread_that_plants_until_it_is_killed_leaves_nothing(make_inside):
    own = make_inside()

    async def planted_and_gone() -> None:
        await own.run_here(UNTIL_KILLED)
        session = own.runner.running
        while session._tidying:
            await asyncio.wait(session._tidying)

    for _ in range(5):
        own.wait(planted_and_gone())
        assert not (own.workspace / ".envrc").exists()
    assert list(own.workspace.glob(".envrc.quarantined-*"))  # it had been there
