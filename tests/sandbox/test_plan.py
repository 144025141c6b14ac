"""Which folders a sandbox sees, and which of them stay read-only though they lie in the workspace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import load_settings
from sandboxmcp.sandbox.bwrap import GUEST, Bind
from sandboxmcp.sandbox.installations import running_interpreter
from sandboxmcp.sandbox.plan import plan_sandbox
from sandboxmcp.sandbox.workspace.location import checked_workspace

REPOSITORY = Path(__file__).resolve().parents[2]


def planned(workspace: Path, tmp_path: Path):
    return plan_sandbox(load_settings(flags={"workspace": str(workspace)}, environ={"HOME": str(tmp_path)}, project=tmp_path))


def test_a_workspace_apart_is_the_only_writable_folder(tmp_path):
    profile = planned(tmp_path, tmp_path).profile
    assert [bind for bind in profile.binds if bind.writable] == [Bind(str(tmp_path), str(tmp_path), writable=True)]
    assert profile.binds[-1] == Bind(str(REPOSITORY / "kernels" / "guest"), GUEST)


def test_our_own_code_in_the_workspace_is_read_only_and_its_folders_cannot_be_moved(tmp_path):
    binds = planned(REPOSITORY, tmp_path).profile.binds
    targets = {bind.target: bind.writable for bind in binds}
    own = {str(REPOSITORY / name): False for name in ("sandboxmcp", "kernels", "policies")}
    assert {path: targets.get(path) for path in own} == own
    assert targets[str(REPOSITORY)] is True


def test_every_folder_above_a_protected_one_is_a_mountpoint_mounted_before_it(tmp_path):
    workspace = widest_workspace()
    binds = planned(workspace, tmp_path).profile.binds
    order = [bind.target for bind in binds if bind.source == bind.target]  # what covers a secret moves along with its folder
    for target in order[order.index(str(workspace)) + 1 :]:
        parent = os.path.dirname(target)
        while parent.startswith(f"{workspace}/"):
            assert order.index(parent) < order.index(target)
            parent = os.path.dirname(parent)


def widest_workspace() -> Path:
    """The folder above the checkout, so that protected ones lie deeper, where it may be a workspace, as it may hold a home."""
    try:
        return checked_workspace(REPOSITORY.parent)
    except UsageError:
        return REPOSITORY


def test_the_interpreter_comes_with_its_installation_outside_usr(tmp_path):
    found = running_interpreter(tmp_path)
    prefixes = {prefix for prefix in (sys.prefix, sys.base_prefix) if not prefix.startswith("/usr/") and prefix != "/usr"}
    assert (found.executable, found.scripts) == (sys.executable, os.path.dirname(sys.executable))
    assert all(any(prefix == folder or prefix.startswith(folder + "/") for folder in found.folders) for prefix in prefixes)


@pytest.mark.parametrize("below", ["", "project"])
def test_an_installation_that_is_or_holds_the_workspace_is_narrowed(monkeypatch, tmp_path, below):
    """Then only its own folders are bound, and what else lies there is not dragged in."""
    for name in ("bin", "lib", "project", "private"):
        (tmp_path / name).mkdir()
    for name in ("prefix", "exec_prefix", "base_prefix", "base_exec_prefix"):
        monkeypatch.setattr(sys, name, str(tmp_path))
    assert running_interpreter(tmp_path / below).folders == (str(tmp_path / "bin"), str(tmp_path / "lib"))


def test_links_on_the_way_to_the_interpreter_are_remade(monkeypatch, tmp_path):
    (tmp_path / "shims").mkdir()
    (tmp_path / "shims" / "python").symlink_to("../real-python")
    (tmp_path / "real-python").symlink_to("/usr/bin/python3")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "shims" / "python"))
    expected = {str(tmp_path / "shims" / "python"): "../real-python", str(tmp_path / "real-python"): "/usr/bin/python3"}
    assert running_interpreter(tmp_path / "elsewhere").links.items() >= expected.items()


def test_our_store_in_the_workspace_is_hidden_and_cannot_be_moved(tmp_path):
    data = tmp_path / "deep/data"
    data.mkdir(parents=True)
    profile = plan_sandbox(load_settings(flags={"workspace": str(tmp_path), "data_dir": str(data)})).profile
    assert profile.hidden == (str(data),)
    assert Bind(str(tmp_path / "deep"), str(tmp_path / "deep"), writable=True) in profile.binds


def test_a_workspace_inside_the_store_is_refused(tmp_path):
    (tmp_path / "inside").mkdir()
    with pytest.raises(UsageError, match="lies in the data folder"):
        plan_sandbox(load_settings(flags={"workspace": str(tmp_path / "inside"), "data_dir": str(tmp_path)}))


def test_more_secrets_than_can_be_covered_are_told(tmp_path):
    for number in range(2_600):
        (tmp_path / f".env{number}").touch()
    with pytest.raises(UsageError, match=r"paths of the workspace are to be covered or protected, such as \.env0"):
        plan_sandbox(load_settings(flags={"workspace": str(tmp_path)}, environ={}))


def test_packs_and_certificates_of_the_users_are_read_only_in_the_workspace(tmp_path):
    (tmp_path / "own.toml").write_text("")
    (tmp_path / "ca.crt").write_text("")
    named = {"policy_packs": str(tmp_path / "own.toml"), "network.authorities": str(tmp_path / "ca.crt")}
    plan = plan_sandbox(load_settings(flags={"workspace": str(tmp_path), **named}, environ={}))
    for name in ("own.toml", "ca.crt"):
        assert Bind(f"{tmp_path}/{name}", f"{tmp_path}/{name}") in plan.profile.binds
