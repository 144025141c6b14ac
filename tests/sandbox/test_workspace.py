"""Which folders may be writable inside, and what is said of the others."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.sandbox.workspace import checked_workspace

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
    expected = (
        f"the workspace {HOME} is or holds your home folder, where secrets lie",
        f"the workspace {HOME} belongs to the system",
    )
    assert said(HOME) in [f"{one}. {FIX}" for one in expected]


def test_a_folder_above_the_home_is_refused(monkeypatch, tmp_path):
    """The password database decides; here it is told another home, as no test may need one that is deep enough."""
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    entry = pwd.getpwuid(os.getuid())
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd((*entry[:5], str(home), entry[6])))
    for folder in (home, home.parent, tmp_path):
        assert said(folder) == f"the workspace {folder} is or holds your home folder, where secrets lie. {FIX}"
    (home / "project").mkdir()
    assert checked_workspace(home / "project") == home / "project"


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
