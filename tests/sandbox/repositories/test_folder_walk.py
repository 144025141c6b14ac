"""The walk finds what appears in any folder, whether folders can be watched or must be compared."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import threading
import time

import pytest

from sandboxmcp.sandbox.repositories import folder_events
from sandboxmcp.sandbox.repositories.folder_events import FolderEvents
from sandboxmcp.sandbox.repositories.folder_walk import FolderWalk, Wanted, make_passable, open_below
from sandboxmcp.sandbox.repositories.watch import Repositories

WANTED = Wanted(frozenset({".git", "claude.md"}), (".mdc",), frozenset({".clinerules"}))


@pytest.fixture(params=["watched", "compared"])
def walk(request):
    """One whose folders are watched, or for which the account has no watches left."""
    if request.param == "watched":
        return FolderWalk(WANTED)
    libc, taken = ctypes.CDLL(None, use_errno=True), []
    while (fd := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
        taken.append(fd)
    without = FolderWalk(WANTED)
    for fd in taken:
        os.close(fd)
    return without


@pytest.fixture
def root(tmp_path):
    fd = os.open(tmp_path, os.O_PATH)
    yield fd
    os.close(fd)


def found(walked):
    return sorted(one.path for one in walked.found)


APPEAR = {
    "a new one": lambda top: (top / "a/b/c/.git").mkdir(),
    "renamed into its place": lambda top: (top / "x").rename(top / "a/b/c/.git"),
    "with the folder above it": lambda top: (top / "y").rename(top / "a/b/c/y"),
    "in a folder that took another's name": lambda top: ((top / "a/b").rename(top / "old"), (top / "y").rename(top / "a/b")),
    "a link": lambda top: (top / "a/b/c/.git").symlink_to("/"),
    "in capitals": lambda top: (top / "a/b/c/.GIT").touch(),
}


@pytest.mark.parametrize("appear", APPEAR.values(), ids=APPEAR.keys())
def test_what_appears_is_found_the_next_time(walk, root, tmp_path, appear):
    for name in ("a/b/c", "x", "y/.git", "y/z"):
        (tmp_path / name).mkdir(parents=True)
    before = found(walk.walk(root))
    appear(tmp_path)
    after = found(walk.walk(root))
    by_hand = [
        os.path.relpath(os.path.join(place, name), tmp_path) for place, *both in os.walk(tmp_path) for name in both[0] + both[1]
    ]
    expected = sorted(path for path in by_hand if path.lower().endswith(".git"))
    assert (before, after) == (["y/.git"], expected)
    assert before != after
    assert found(walk.walk(root)) == after


def test_a_folder_that_changed_within_the_tick_in_which_it_was_read_is_read_again(walk, root, tmp_path):
    """What cannot be watched is compared by its change time, which does not move within a tick."""
    for number in range(200):
        folder = tmp_path / f"d{number}"
        folder.mkdir()
        walk.walk(root)
        (folder / ".git").touch()
        assert f"d{number}/.git" in found(walk.walk(root))


_TRIES = 5
"""A test beside this one may have taken all inotify instances of the account for a moment."""


def test_unchanged_folders_cost_next_to_nothing(tmp_path):
    for number in range(2_000):
        (tmp_path / f"d{number % 20}/e{number}").mkdir(parents=True)
    for _ in range(_TRIES):
        start = time.process_time()
        repositories = Repositories(tmp_path)
        once = time.process_time() - start
        start = time.process_time()
        for _ in range(20):
            assert repositories.look() == []
        looks = time.process_time() - start
        if looks < once / 4:  # some hundredth each; comparing change times would cost a tenth each
            return
    raise AssertionError((once, looks))


def test_the_folders_nearest_to_the_top_are_looked_at_first_and_the_rest_is_counted(root, tmp_path):
    for number in range(30):
        (tmp_path / f"d{number}/deep/.git").mkdir(parents=True)
    (tmp_path / "d29/.git").touch()
    walked = FolderWalk(WANTED, most_folders=31).walk(root)
    assert (found(walked), walked.left_out) == (["d29/.git"], 30)


def test_a_folder_of_more_entries_than_are_read_counts_as_left_out(root, tmp_path):
    for number in range(50):
        (tmp_path / f"f{number}").touch()
    walk = FolderWalk(WANTED, most_entries=20)
    assert [walk.walk(root).left_out for _ in range(2)] == [1, 1]


def test_a_folder_too_deep_for_its_path_counts_as_left_out(root, tmp_path):
    home = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(22):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        os.mkdir(".git")
    finally:
        os.chdir(home)
    assert FolderWalk(WANTED).walk(root).left_out == 1
    os.system(f"rm -rf {tmp_path}/d*")  # noqa: S605 - a path that Python cannot remove


def test_a_link_is_never_followed(root, tmp_path):
    (tmp_path / "elsewhere/.git").mkdir(parents=True)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/link").symlink_to("../elsewhere")
    with pytest.raises(OSError, match=r"ink|directory"):
        open_below(root, "inside/link/.git")


def test_a_folder_that_a_script_shut_is_opened_and_one_that_the_host_shut_is_not(root, tmp_path):
    (tmp_path / "shut/.git").mkdir(parents=True)
    (tmp_path / "shut").chmod(0)
    walk = FolderWalk(WANTED)
    if os.geteuid():
        assert (found(walk.walk(root)), (tmp_path / "shut").stat().st_mode & 0o777) == ([], 0)
        assert found(walk.walk(root, opens=make_passable)) == []  # it stands as the host left it
        (tmp_path / "shut").chmod(0o100)
    assert found(walk.walk(root, opens=make_passable)) == ["shut/.git"]


def test_events_that_were_lost_make_every_folder_suspect(root, tmp_path):
    (tmp_path / "busy").mkdir()
    (tmp_path / "quiet").mkdir()
    walk = FolderWalk(WANTED)
    walk.walk(root)
    for number in range(40_000):
        path = tmp_path / f"busy/{number % 2}"
        path.mkdir() if number % 4 < 2 else path.rmdir()
    (tmp_path / "quiet/.git").touch()
    assert found(walk.walk(root)) == ["quiet/.git"]


def test_a_folder_beyond_the_share_of_the_accounts_watches_is_not_watched(root, tmp_path):
    events, end = FolderEvents(most=1), time.monotonic() + 60
    while events.changed() is None and time.monotonic() < end:  # other tests may have taken all instances of this account
        threading.Event().wait(0.05)
        events = FolderEvents(most=1)
    assert [events.watch(fd, str(fd)) for fd in (os.open(tmp_path, os.O_RDONLY), os.open("/tmp", os.O_RDONLY))] == [True, False]
    (tmp_path / "new").touch()
    changed = events.changed()
    assert (len(changed), events.changed()) == (1, set())


GITS = Wanted(frozenset({".git"}))


def found_in(walk, folder):
    top = os.open(folder, os.O_PATH)
    try:
        return sorted(one.path for one in walk.walk(top).found)
    finally:
        os.close(top)


@pytest.fixture(params=["watched", "not watched"])
def fresh(request, tmp_path_factory, monkeypatch):
    """A walk, and whether its folders are watched."""
    if request.param == "not watched":
        limit = tmp_path_factory.mktemp("limit") / "watches"
        limit.write_text("0")
        monkeypatch.setattr(folder_events, "_LIMIT", limit)
    return FolderWalk(GITS)


def test_a_folder_in_the_place_of_one_that_was_moved_away_is_read(tmp_path, fresh):
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert found_in(fresh, tmp_path) == []
    (tmp_path / "a").rename(tmp_path / "moved")
    (tmp_path / "a/b/c/.git").mkdir(parents=True)
    assert found_in(fresh, tmp_path) == ["a/b/c/.git"]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_between_two_walks_is_seen(tmp_path, fresh, seed):
    draw = random.Random(seed)
    for _ in range(50):
        folders = [tmp_path, *(one for one in tmp_path.rglob("*") if one.is_dir())]
        for _ in range(draw.randrange(4)):
            change(draw, folders, tmp_path)
        assert found_in(fresh, tmp_path) == found_in(FolderWalk(GITS), tmp_path)


def change(draw, folders, top):
    """Make, move or remove a folder."""
    folder, name, what = draw.choice(folders), draw.choice(["a", "b", "c", ".git"]), draw.random()
    target = draw.choice(folders)
    if not folder.exists() or not target.exists():
        return
    if folder == top or what > 0.5:
        (folder / name).mkdir(exist_ok=True)
    elif what > 0.3:
        shutil.rmtree(folder)
    elif not target.is_relative_to(folder) and not (target / name).exists():
        folder.rename(target / name)
