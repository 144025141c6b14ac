"""Masked copies of files of secrets as the host makes them, and when they are out of date."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.folders import PrivateFolder
from sandboxmcp.policy.secrets.credential_files import masked_copy
from sandboxmcp.sandbox.workspace.masked_copies import LARGEST, MaskedCopies, blank
from sandboxmcp.sandbox.workspace.masked_paths import covered

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def made(project: Path, place: Path) -> MaskedCopies:
    return MaskedCopies.make(project, covered(project).secrets, masked_copy, [place])


def test_a_copy_has_the_length_the_times_and_the_permissions_of_its_file(project: Path, place: Path) -> None:
    file = project / ".env"
    file.write_text("KEY=secret-1\n")
    file.chmod(0o640)
    os.utime(file, ns=(HOUR_NS, 2 * HOUR_NS + 123))
    copies = made(project, place)
    (bind,) = copies.binds
    shown = os.stat(bind.source)
    assert (Path(bind.source).read_text(), bind.target, bind.writable) == ("KEY=********\n", str(file), False)
    assert (shown.st_size, shown.st_mtime_ns, stat.S_IMODE(shown.st_mode) & 0o640) == (13, 2 * HOUR_NS + 123, 0o640)
    copies.remove()
    copies.remove()
    assert list(place.iterdir()) == []


def test_nothing_is_made_where_there_is_no_secret(project: Path, place: Path) -> None:
    (project / ".env.example").write_text("KEY=yours\n")
    (project / ".npmrc").write_text("save-exact=true\n")
    copies = made(project, place)
    assert (copies.binds, copies.names, list(place.iterdir())) == ((), (), [])


def test_what_is_too_large_or_cannot_be_read_is_shown_as_zeros_of_its_length(project: Path, place: Path) -> None:
    (project / ".env").write_bytes(b"A=secret\n" * (LARGEST // 9 + 1))
    copies = made(project, place)
    content = Path(copies.binds[0].source).read_bytes()
    assert (len(content), content.count(0)) == ((project / ".env").stat().st_size,) * 2
    copies.remove()


def test_a_masker_that_changes_the_length_shows_nothing(project: Path, place: Path) -> None:
    (project / ".env").write_text("A=secret\nB=1\n")
    copies = MaskedCopies.make(project, covered(project).secrets, lambda name, data: data + b"x", [place])
    assert Path(copies.binds[0].source).read_bytes() == blank("", b"A=secret\nB=1\n") == b"********\n***\n"
    copies.remove()


def test_a_folder_that_was_swapped_for_a_link_leads_to_no_file_of_the_host(project: Path, place: Path, tmp_path: Path) -> None:
    (project / "conf").mkdir()
    (project / "conf/.env").write_text("A=1\n")
    secrets = covered(project).secrets
    (tmp_path / "host").mkdir()
    (tmp_path / "host/.env").write_text("HOSTNAME=of-the-host\n")
    (project / "conf").rename(project / "old")
    (project / "conf").symlink_to(tmp_path / "host")
    copies = MaskedCopies.make(project, secrets, masked_copy, [place])
    assert copies.binds == ()


def test_copies_lie_where_scripts_cannot_write_them(project: Path, place: Path) -> None:
    (project / ".env").write_text("A=1\n")
    (project / "tmp").mkdir()
    copies = MaskedCopies.make(project, covered(project).secrets, masked_copy, [project / "tmp", project, place])
    assert Path(copies.binds[0].source).is_relative_to(place)
    copies.remove()
    with pytest.raises(UsageError, match="no folder outside the project can be written"):
        MaskedCopies.make(project, covered(project).secrets, masked_copy, [project])


def test_what_a_killed_server_left_goes_with_the_next_folder(project: Path, place: Path) -> None:
    (project / ".env").write_text("A=1\n")
    if (child := os.fork()) == 0:
        made(project, place)
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    (left,) = place.iterdir()
    PrivateFolder(place).remove()
    assert not left.exists()


CHANGES = {
    "written in place": lambda file: file.write_text("KEY=secret-2\n"),
    "replaced": lambda file: (file.with_name("new").write_text("KEY=secret-1\n"), file.with_name("new").rename(file)),
    "touched": lambda file: os.utime(file, ns=(0, 0)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_on_the_host_makes_the_copies_outdated(project: Path, place: Path, change) -> None:
    file = project / ".env"
    file.write_text("KEY=secret-1\n")
    os.utime(file, ns=(HOUR_NS, HOUR_NS))
    copies = made(project, place)
    before = copies.outdated(0)
    change(file)
    assert (before, copies.outdated(0)) == (False, True)
    copies.remove()


def test_a_file_of_settings_is_out_of_date_once_it_holds_a_credential(project: Path, place: Path) -> None:
    file = project / ".npmrc"
    file.write_text("save-exact=true\n")
    copies = made(project, place)
    file.write_text("save-exact=true\nfund=false\n")
    before = copies.outdated(0)
    file.write_text("//npm.example.org/:_authToken=abcdef\n")
    assert (before, copies.outdated(0)) == (False, True)


def test_what_is_opened_after_a_mark_is_told_and_what_an_output_names(project: Path, place: Path, tmp_path: Path) -> None:
    for name in (".env", ".netrc", "credentials"):
        (project / name).write_text("machine a login b password c\n")
    copies = made(project, place)
    first = copies.mark()
    assert copies.touched(first, []) == []
    Path(copies.binds[0].source).read_bytes()
    second = copies.mark()
    (tmp_path / "out").write_text("total 8\n-rw-r--r-- 1 a a 9 Dec  1 02:45 \x1b[0m.netrc\x1b[0m\nthe credentials are wrong\n")
    hidden = "shown masked in the sandbox: credentials are hidden, and writing is refused"
    assert copies.touched(first, []) == [f".env is {hidden}"]
    assert copies.touched(second, [tmp_path / "out", tmp_path / "none"]) == [f".netrc is {hidden}"]
    copies.remove()


NO_INOTIFY = """
import os, sys
from pathlib import Path
Path("/proc/sys/user/max_inotify_instances").write_text("0")
from sandboxmcp.sandbox.workspace.masked_paths import covered
from sandboxmcp.sandbox.workspace.masked_copies import MaskedCopies, blank
project, place = map(Path, sys.argv[1:])
copies = MaskedCopies.make(project, covered(project).secrets, blank, [place])
for _ in range(3):
    print(copies.touched(copies.mark(), []))
copies.remove()
"""


def test_where_opening_cannot_be_seen_all_are_named_once(project: Path, place: Path) -> None:
    (project / ".env").write_text("A=1\n")
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", NO_INOTIFY, str(project), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip("no user namespace can be made")
    assert (done.stderr, [".env" in line for line in done.stdout.splitlines()]) == ("", [True, False, False])
