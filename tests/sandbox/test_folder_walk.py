"""A walk that reads only what has changed finds what a walk that reads everything finds."""

from __future__ import annotations

import os
import random
import shutil

import pytest

from sandboxmcp.sandbox import folder_watch
from sandboxmcp.sandbox.folder_walk import FolderWalk, Wanted

WANTED = Wanted(frozenset({".git", ".hg"}))


def found(walk, folder):
    root = os.open(folder, os.O_PATH)
    try:
        return sorted(one.path for one in walk.walk(root).found)
    finally:
        os.close(root)


@pytest.fixture(params=["watched", "not watched"])
def walk(request, monkeypatch):
    if request.param == "not watched":
        monkeypatch.setattr(folder_watch, "_most_watches", lambda: 0)
    return FolderWalk(WANTED)


def test_a_folder_in_the_place_of_one_that_was_moved_away_is_read(tmp_path, walk):
    (tmp_path / "a/b/c").mkdir(parents=True)
    assert found(walk, tmp_path) == []
    (tmp_path / "a").rename(tmp_path / "moved")
    (tmp_path / "a/b/c/.git").mkdir(parents=True)
    assert found(walk, tmp_path) == ["a/b/c/.git"]


def test_another_workspace_of_the_same_shape_is_read(tmp_path, walk):
    for name in ("one", "two"):
        (tmp_path / name / "a/b").mkdir(parents=True)
    (tmp_path / "two/a/b/.git").mkdir()
    assert (found(walk, tmp_path / "one"), found(walk, tmp_path / "two")) == ([], ["a/b/.git"])


def test_more_changes_than_the_system_remembers_hide_nothing(tmp_path, walk):
    folder = tmp_path / "busy"
    folder.mkdir()
    assert found(walk, tmp_path) == []
    for number in range(20_000):
        (folder / str(number % 10)).touch()
        (folder / str(number % 10)).unlink()
    (tmp_path / "busy/.git").mkdir()
    assert found(walk, tmp_path) == ["busy/.git"]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_between_two_walks_is_seen(tmp_path, walk, seed):
    draw = random.Random(seed)
    folders = [tmp_path]
    for _ in range(60):
        for _ in range(draw.randrange(4)):
            change(draw, folders, tmp_path)
        assert found(walk, tmp_path) == found(FolderWalk(WANTED), tmp_path)
        folders = [tmp_path, *(one for one in tmp_path.rglob("*") if one.is_dir())]


def change(draw, folders, top):
    folder = draw.choice(folders)
    name = draw.choice(["a", "b", "c", ".git", ".hg"])
    if not folder.exists():
        return
    if folder != top and draw.random() < 0.3:
        target = draw.choice(folders)
        if target.exists() and not target.is_relative_to(folder) and not (target / name).exists():
            folder.rename(target / name)
    elif folder != top and draw.random() < 0.2:
        shutil.rmtree(folder)
    else:
        (folder / name).mkdir(exist_ok=True)
