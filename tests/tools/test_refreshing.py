"""Files that change, vanish and come back after they were indexed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.session import Session
from sandboxmcp.tools import refreshing
from sandboxmcp.tools.indexing import index
from sandboxmcp.tools.knowledge import search, sources
from sandboxmcp.tools.reading import read


def asked(session: Session, query: str) -> str:
    return search(session, [query], budget_tokens=500).text


def test_a_changed_file_is_read_again_at_the_next_search(session: Session) -> None:
    file = Path(session.project) / "notes.txt"
    file.write_text("the zebra runs\n")
    old = index(session, path="notes.txt", budget_tokens=200).structured["handle"]
    file.write_text("the giraffe sleeps\n")
    assert ("| the giraffe sleeps" in asked(session, "giraffe"), asked(session, "zebra")) == (True, 'No results for "zebra"')
    assert "| the zebra runs" in read(session, handle=old, budget_tokens=200).text


def test_changed_files_that_one_search_has_no_time_for_are_counted(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshing, "_READ_AGAIN", 2)
    files = [Path(session.project) / f"n{number}.txt" for number in range(3)]
    for text in ("the zebra runs\n", "the giraffe sleeps\n"):
        for file in files:
            file.write_text(text)
        if text.startswith("the zebra"):
            index(session, path=".", budget_tokens=200)
    first = search(session, ["giraffe"], budget_tokens=500)
    assert first.text.endswith("\n1 changed file not read again yet: search again for the rest")
    assert (first.structured["waiting_files"], "not read again" in asked(session, "giraffe")) == (1, False)


def test_a_file_that_is_gone_is_marked_until_it_comes_back(session: Session) -> None:
    file = Path(session.project) / "notes.txt"
    file.write_text("the zebra runs\n")
    index(session, path="notes.txt", budget_tokens=200)
    file.rename(file.with_suffix(".away"))
    assert "file:notes.txt (its file is gone)\n| the zebra" in asked(session, "zebra")
    assert sources(session, budget_tokens=200).text.endswith("its file is gone")
    file.with_suffix(".away").rename(file)
    assert "gone" not in asked(session, "zebra")


def test_of_a_file_that_was_moved_the_new_place_is_cited(session: Session) -> None:
    file = Path(session.project) / "notes.txt"
    file.write_text("the zebra runs\n")
    index(session, path="notes.txt", budget_tokens=200)
    file.rename(file.with_name("moved.txt"))
    index(session, path="moved.txt", budget_tokens=200)
    assert [line.partition(" ")[2] for line in asked(session, "zebra").split("\n")] == ["file:moved.txt", "the zebra runs"]


def test_a_file_that_became_a_link_out_of_the_project_is_not_followed(session: Session, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the password is zebra\n")
    file = Path(session.project) / "notes.txt"
    file.write_text("nothing here\n")
    index(session, path="notes.txt", budget_tokens=200)
    file.unlink()
    file.symlink_to(tmp_path / "secret.txt")
    assert asked(session, "password zebra").startswith("No results")
