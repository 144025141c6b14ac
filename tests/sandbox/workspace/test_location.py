"""Which folders may be writable inside, and what is said of the others."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.sandbox.workspace.location import checked_workspace

HOME = Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
FIX = "Start in the project's folder, or name it with SANDBOXMCP_WORKSPACE."
SYSTEM = ("/", "/etc", "/usr", "/usr/share", "/var", "/tmp", "/home", "/opt", "/dev", "/dev/shm", "/proc", "/boot", "/bin")


def said(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        checked_workspace(folder)
    return str(caught.value)


@pytest.mark.parametrize("folder", SYSTEM)
def test_folders_of_the_system_are_refused(folder):
    if Path(folder).exists():
        assert said(Path(folder)) == f"the workspace {Path(folder).resolve()} belongs to the system. {FIX}"


def test_the_home_is_refused_wherever_the_environment_says_it_is(monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")
    expected = (f"the workspace {HOME} is or holds a home folder, where secrets lie", f"the workspace {HOME} belongs to the system")
    assert said(HOME) in [f"{one}. {FIX}" for one in expected]


def test_what_the_environment_calls_home_is_refused_too(monkeypatch, tmp_path):
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, home.parent, tmp_path):
        assert said(folder) == f"the workspace {folder} is or holds a home folder, where secrets lie. {FIX}"
    (home / "project").mkdir()
    assert checked_workspace(home / "project") == home / "project"


def test_the_homes_of_other_users_are_refused(monkeypatch, tmp_path):
    """The password database decides; here it knows one more user, as no test may make one."""
    entry = pwd.struct_passwd(("other", "x", 1234, 1234, "", str(tmp_path), "/bin/sh"))
    everyone = [*pwd.getpwall(), entry]
    monkeypatch.setattr(pwd, "getpwall", lambda: everyone)
    assert said(tmp_path) == f"the workspace {tmp_path} is or holds a home folder, where secrets lie. {FIX}"


@pytest.mark.parametrize("name", [".ssh", ".ssh/deep", ".config", ".local", ".aws"])
def test_folders_of_settings_and_secrets_are_refused(monkeypatch, tmp_path, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / name).mkdir(parents=True)
    assert said(tmp_path / name) == f"the workspace {tmp_path / name} holds settings or secrets of a user. {FIX}"


def test_a_project_below_the_folder_of_settings_is_one(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config/nvim").mkdir(parents=True)
    assert checked_workspace(tmp_path / ".config/nvim") == tmp_path / ".config/nvim"


def test_what_is_no_usable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "a\nb").mkdir()
    assert said(tmp_path / "missing") == f"the workspace {tmp_path}/missing cannot be used: No such file or directory. {FIX}"
    assert said(tmp_path / "file") == f"the workspace {tmp_path}/file is no folder. {FIX}"
    assert said(tmp_path / "loop").startswith(f"the workspace {tmp_path}/loop cannot be used: ")
    assert said(tmp_path / "a\nb") == f"the workspace '{tmp_path}/a\\nb' has control characters in its name. {FIX}"


def test_a_link_is_judged_by_where_it_leads(tmp_path):
    for name, target in (("etc", "/etc"), ("home", HOME), ("root", "/")):
        (tmp_path / name).symlink_to(target)
        assert f"the workspace {Path(target).resolve()} " in said(tmp_path / name)
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    assert checked_workspace(tmp_path / "link") == tmp_path / "project"
