"""Where a control group can be made, and what is written into it. Most folders here only look like the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandboxmcp.core.settings import load_settings
from sandboxmcp.sandbox.cgroup import ControlGroup, make_control_group
from sandboxmcp.sandbox.plan import plan_sandbox
from sandboxmcp.sandbox.process import start_sandbox


def hierarchy(root, own="user.slice/app.slice/agent.scope", given="cpu memory pids"):
    folder = root / own
    folder.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu memory pids")
    (folder.parent / "cgroup.subtree_control").write_text(given)
    (folder / "cgroup.subtree_control").write_text("")
    return folder.parent


def test_a_delegated_parent_gets_a_group_with_both_limits(tmp_path):
    parent = hierarchy(tmp_path)
    group = make_control_group(1 << 30, 256, tmp_path, "/user.slice/app.slice/agent.scope")
    assert group.folder.parent == parent
    assert {file.name: file.read_text() for file in group.folder.iterdir()} == {
        "memory.max": str((1 << 30) + (64 << 20)),
        "pids.max": "256",
        "memory.swap.max": "0",
    }


@pytest.mark.parametrize("given", ["", "cpu", "memory"])
def test_a_parent_that_does_not_hand_on_both_controllers_gets_none(tmp_path, given):
    hierarchy(tmp_path, given=given)
    assert make_control_group(1, 1, tmp_path, "/user.slice/app.slice/agent.scope") is None


def test_version_one_and_no_group_at_all_get_none(tmp_path):
    assert make_control_group(1, 1, tmp_path, "/") is None
    hierarchy(tmp_path)
    assert make_control_group(1, 1, tmp_path, "") is None


def test_kills_for_memory_are_read_from_the_groups_events(tmp_path):
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\n")
    assert ControlGroup(tmp_path).out_of_memory_kills() == 3
    assert ControlGroup(tmp_path / "absent").out_of_memory_kills() == 0


def test_a_sandbox_is_in_its_group_from_the_first_moment(sandbox, tmp_path):
    mount = next(
        (path for path in map(Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")) if (path / "cgroup.procs").is_file()), None
    )
    if mount is None or not os.access(mount, os.W_OK):
        pytest.skip("no version 2 tree that we may extend")
    group = ControlGroup(mount / f"sandboxmcp-test-{os.getpid()}")
    group.folder.mkdir()
    plan = plan_sandbox(load_settings(flags={"workspace": str(tmp_path)}))
    process = start_sandbox(plan.profile, ["/bin/sleep", "30"], group=group)
    assert str(process.init_pid) in Path(group.procs).read_text().split()
    process.end()
    assert not group.folder.exists()
