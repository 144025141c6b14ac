"""Workspace modes: nothing is written, or it is written aside and then applied or discarded by a person."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading

import pytest

from sandboxmcp.core.errors import SandboxUnavailable, UsageError
from sandboxmcp.core.settings import load_settings
from sandboxmcp.sandbox import locate
from sandboxmcp.sandbox.overlay import apply as apply_module
from sandboxmcp.sandbox.overlay.apply import apply
from sandboxmcp.sandbox.overlay.changes import Change, changes, patch
from sandboxmcp.sandbox.overlay.layer import discard, layer_of, prepare, release, settle

FILES = {"a.txt": "a\n", "b.txt": "b\n", "sub/c.txt": "c\n", ".git/config": "[core]\n"}
CHANGE_ALL = "echo new > a.txt; rm b.txt; rm -r sub; mkdir sub; echo d > sub/d.txt; ln -s /etc/passwd link; cat a.txt; ls sub"


def fill(workspace):
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(exist_ok=True, parents=True)
        (workspace / name).write_text(text)


def content(workspace):
    return {str(p.relative_to(workspace)): p.read_text() for p in workspace.rglob("*") if p.is_file() and not p.is_symlink()}


@pytest.fixture
def aside(make_inside, tmp_path):
    """A sandbox whose workspace is overlaid; and its layer."""
    try:
        locate.overlaying_bubblewrap()
    except SandboxUnavailable as missing:
        pytest.skip(str(missing))
    own = make_inside(workspace_mode="overlay", data_dir=str(tmp_path / "data"))
    fill(own.workspace)
    layer = layer_of(tmp_path / "data", own.workspace)
    yield own, layer
    release(layer)


def test_nothing_can_be_written_to_a_workspace_that_is_read_only(make_inside):
    own = make_inside(workspace_mode="ro")
    fill(own.workspace)
    ran = own.run("cat a.txt; echo x > a.txt; mv .git g2; mkdir new; echo fine > /tmp/t && cat /tmp/t", "shell")
    assert (ran.text, ran.stderr.decode().count("Read-only file system"), content(own.workspace)) == ("a\nfine\n", 3, FILES)


def test_an_overlay_keeps_every_change_aside(aside):
    own, layer = aside
    ran = own.run(CHANGE_ALL, "shell")
    assert (ran.text, ran.stderr, content(own.workspace)) == ("new\nd.txt\n", b"", FILES)
    assert list(changes(layer, own.workspace)) == [
        Change("changed", "a.txt"),
        Change("deleted", "b.txt"),
        Change("added", "link"),
        Change("deleted", "sub/c.txt"),
        Change("added", "sub/d.txt"),
    ]


def test_what_is_kept_aside_is_seen_by_the_next_sandbox(aside):
    own, _ = aside
    own.run("echo kept > k", "shell")
    own.wait(own.runner.close())
    assert own.run("cat k", "shell").stdout == b"kept\n"


def test_applied_changes_are_in_the_workspace_and_links_are_not_followed(aside, tmp_path):
    own, layer = aside
    own.run(CHANGE_ALL, "shell")
    own.wait(own.runner.close())
    done, skipped = apply(layer, own.workspace)
    discard(layer)
    assert (len(done), skipped, list(changes(layer, own.workspace))) == (5, [], [])
    assert content(own.workspace) == {"a.txt": "new\n", "sub/d.txt": "d\n", ".git/config": "[core]\n"}
    assert os.readlink(own.workspace / "link") == "/etc/passwd"


def test_discarded_changes_are_gone(aside):
    own, layer = aside
    own.run(CHANGE_ALL, "shell")
    own.wait(own.runner.close())
    discard(layer)
    assert (list(changes(layer, own.workspace)), content(own.workspace)) == ([], FILES)


@pytest.fixture
def served(aside, tmp_path):
    """A process that has a sandbox on the layer, run by lines on its standard input, one script each; and its workspace."""
    own, layer = aside
    release(layer)
    code = SERVE.format(data=str(tmp_path / "data"), workspace=str(own.workspace), captures=str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(script):
        process.stdin.write(script + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield run, own.workspace, layer
    process.stdin.close()
    process.wait(20)


SERVE = """
import asyncio, json, sys
from pathlib import Path
from sandboxmcp.core.model import Script
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.runner import Runner

async def main():
    settings = load_settings({{"workspace_mode": "overlay", "data_dir": "{data}", "workspace": "{workspace}"}})
    runner = Runner(settings, Path("{captures}"))
    for line in iter(sys.stdin.readline, ""):
        async with runner.session() as session:
            ended = await session.run(Script("x", "shell", line, 20.0))
        print(json.dumps(ended.stdout.path.read_text() if ended.stdout else ""), flush=True)
    await runner.close()

asyncio.run(main())
"""


def test_changes_are_applied_while_a_server_runs_and_its_scripts_go_on(served):
    run, workspace, layer = served
    run(CHANGE_ALL)
    done, skipped = apply(layer, workspace)
    settle(layer)
    applied = {"a.txt": "new\n", "sub/d.txt": "d\n", ".git/config": "[core]\n"}
    assert (len(done), skipped, content(workspace), list(changes(layer, workspace))) == (5, [], applied, [])
    run("echo more >> a.txt; rm sub/d.txt")
    assert list(changes(layer, workspace)) == [Change("changed", "a.txt"), Change("deleted", "sub/d.txt")]
    assert run("cat a.txt; ls sub") == "new\nmore\n"


def test_changes_are_discarded_while_a_server_runs_and_its_next_script_does_not_see_them(served):
    run, workspace, layer = served
    run(CHANGE_ALL)
    discard(layer)
    assert (list(changes(layer, workspace)), content(workspace)) == ([], FILES)
    assert run("cat a.txt b.txt; ls sub; echo again > a.txt") == "a\nb\nc.txt\n"
    assert list(changes(layer, workspace)) == [Change("changed", "a.txt")]


def test_what_was_moved_aside_under_a_server_is_removed_when_nobody_has_it_any_more(tmp_path):
    workspace, layer = layered(tmp_path)
    release(layer)
    (layer / "aside-1/upper").mkdir(parents=True)
    prepare(layer, workspace)
    assert sorted(path.name for path in layer.iterdir()) == ["changing", "lock", "upper", "work"]
    release(layer)


def layered(tmp_path):
    """A workspace and a layer made by hand."""
    workspace, layer = tmp_path / "workspace", tmp_path / "data" / "layer"
    fill(workspace)
    prepare(layer, workspace)
    return workspace, layer


PROTECTED = {
    "a hook": ".git/hooks/pre-commit",
    "settings": ".claude/settings.json",
    "a file for a folder": ".git",
    "a repository below": "sub/lib/.git/config",
    "a file that leads to one": "sub/.git",
    "a submodule's settings": ".git/modules/lib/config",
    "another worktree's": ".git/worktrees/other/commondir",
    "what makes a folder a repository": "sub/lib/HEAD",
    "a repository of Mercurial": ".hg/hgrc",
    "settings of yarn": "sub/.yarnrc.yml",
}


@pytest.mark.parametrize("path", PROTECTED.values(), ids=PROTECTED.keys())
def test_protected_paths_are_left_out(tmp_path, path):
    workspace, layer = layered(tmp_path)
    (layer / "upper" / path).parent.mkdir(parents=True, exist_ok=True)
    (layer / "upper" / path).write_text("evil")
    done, skipped = apply(layer, workspace)
    assert ([one.path for one in skipped][-1], content(workspace)) == (path, FILES)
    assert not any(one.kind != "folder" for one in done)


def test_what_the_settings_of_git_lead_to_is_left_out(tmp_path):
    workspace, layer = layered(tmp_path)
    (workspace / ".git").mkdir(exist_ok=True)
    (workspace / ".git/config").write_text("[core]\n\thooksPath = tools/hooks\n")
    (layer / "upper/tools/hooks").mkdir(parents=True)
    (layer / "upper/tools/hooks/pre-commit").write_text("evil")
    apply(layer, workspace)
    assert not (workspace / "tools/hooks/pre-commit").exists()


def test_a_link_of_the_hosts_in_the_place_of_a_folder_is_not_followed(tmp_path):
    workspace, layer = layered(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    (layer / "upper/out").mkdir()
    (layer / "upper/out/file").write_text("x")
    apply(layer, workspace)
    assert (list((tmp_path / "elsewhere").iterdir()), (workspace / "out/file").read_text()) == ([], "x")


def test_a_set_id_bit_is_not_applied(tmp_path):
    workspace, layer = layered(tmp_path)
    (layer / "upper/tool").write_text("#!/bin/sh\n")
    (layer / "upper/tool").chmod(0o4755)
    apply(layer, workspace)
    assert oct((workspace / "tool").stat().st_mode) == "0o100755"


def test_a_change_is_shown_as_lines(tmp_path):
    workspace, layer = layered(tmp_path)
    (layer / "upper/a.txt").write_text("A\n")
    (layer / "upper/raw").write_bytes(b"\0")
    found = {change.path: patch(layer, workspace, change) for change in changes(layer, workspace)}
    assert found == {"a.txt": ["--- a/a.txt", "+++ b/a.txt", "@@ -1 +1 @@", "-a", "+A"], "raw": []}


def hidden(file):
    """Root reads it all the same: then it is in nobody's way."""
    file.write_text("")
    file.chmod(0)
    if os.geteuid() == 0:
        file.unlink()


SWAPS = {
    "a folder for a link": lambda upper, away: ((upper / "d").rename(upper / "x"), (upper / "d").symlink_to(away)),
    "a file for a link": lambda upper, away: ((upper / "d/f").unlink(), (upper / "d/f").symlink_to(away / "f")),
    "a file for one that nobody may read": lambda upper, away: hidden(upper / "d/f"),
    "a file for a pipe": lambda upper, away: ((upper / "d/f").unlink(), os.mkfifo(upper / "d/f")),
}


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_what_is_swapped_between_the_look_and_the_copy_leads_nowhere(tmp_path, swap):
    workspace, layer = layered(tmp_path)
    (tmp_path / "host").mkdir()
    (tmp_path / "host/f").write_text("secret")
    (layer / "upper/d").mkdir()
    (layer / "upper/d/f").write_text("mine")
    seen = list(changes(layer, workspace))
    assert seen == [Change("folder", "d"), Change("added", "d/f")]
    swap(layer / "upper", tmp_path / "host")
    root, upper = os.open(workspace, os.O_RDONLY), os.open(layer / "upper", os.O_RDONLY)
    carried = [apply_module._carried(root, upper, change) for change in seen]
    os.close(root)
    os.close(upper)
    texts = [path.read_text() for path in workspace.rglob("*") if path.is_file() and not path.is_symlink()]
    assert ("secret" in texts, carried[0], carried[1] and not (workspace / "d/f").is_symlink()) == (False, True, False)


def test_scripts_that_swap_folders_for_links_while_changes_are_applied_gain_nothing(served, tmp_path):
    run, workspace, layer = served
    secret = tmp_path / "host"
    secret.mkdir()
    (secret / "f").write_text("secret")
    turns = "while :; do mv d x; mv -T l d; mv -T d l; mv x d; done"
    script = f"mkdir d; echo mine > d/f; ln -s {secret} l; timeout 3 sh -c '{turns}'"
    running = threading.Thread(target=run, args=(script,))
    running.start()
    while running.is_alive():
        with contextlib.suppress(FileNotFoundError):
            apply(layer, workspace)
        for name in ("d", "x"):
            kept = workspace / name / "f"
            assert (workspace / name).is_symlink() or not kept.is_file() or kept.read_text() in ("", "mine\n")


def test_a_layer_that_is_gone_leaves_nothing_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        apply(tmp_path / "nothing", tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_folders_without_end_are_an_error_and_not_a_crash(tmp_path):
    workspace, layer = layered(tmp_path)
    deep = layer / "upper"
    for _ in range(260):
        deep /= "d"
    deep.mkdir(parents=True)
    with pytest.raises(OSError, match="nested too deeply"):
        apply(layer, workspace)


def test_an_overlay_inside_its_own_workspace_is_refused(tmp_path):
    with pytest.raises(UsageError, match="lies in the workspace"):
        prepare(layer_of(tmp_path / "data", tmp_path), tmp_path)


def test_without_a_bubblewrap_that_can_it_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(locate, "bubblewraps", lambda: ("/usr/bin/true",))
    with pytest.raises(SandboxUnavailable, match=r"needs bubblewrap 0.11 or newer.*pip install 'sandboxmcp\[bwrap\]'"):
        locate.overlaying_bubblewrap()


def test_a_project_may_tighten_the_mode_and_not_loosen_it(tmp_path):
    (tmp_path / "sandboxmcp.toml").write_text("workspace_mode = 'ro'\n")
    assert load_settings(environ={"HOME": str(tmp_path)}, project=tmp_path).workspace_mode == "ro"
    user = tmp_path / ".config" / "sandboxmcp"
    user.mkdir(parents=True)
    (user / "sandboxmcp.toml").write_text("workspace_mode = 'ro'\n")
    (tmp_path / "sandboxmcp.toml").write_text("workspace_mode = 'rw'\n")
    with pytest.raises(UsageError, match="loosens 'workspace_mode'"):
        load_settings(environ={"HOME": str(tmp_path)}, project=tmp_path)
