"""ctx_read on a real store: page by page, around a citation, by a text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import NewSource
from sandboxmcp.core.tokens import estimate_tokens
from sandboxmcp.session import Session
from sandboxmcp.tools.reading import read

LINES = [f"line {number} of the text{' with zebra' if number % 50 == 0 else ''}" for number in range(1, 301)]


@pytest.fixture
def handle(session: Session) -> str:
    return session.store.add(NewSource("notes", "text", session.project, session.id), "\n".join(LINES)).handle


def test_pages_joined_are_the_text(session: Session, handle: str) -> None:
    shown: list[str] = []
    cursor = None
    while True:
        answer = read(session, handle=handle, cursor=cursor, budget_tokens=400)
        assert estimate_tokens(answer.text) <= 400
        shown += [line[2:] for line in answer.text.split("\n") if line.startswith("| ")]
        if (cursor := answer.structured["cursor"]) is None:
            break
    assert shown == LINES


def test_a_citation_as_handle_gives_its_lines(session: Session, handle: str) -> None:
    text = read(session, handle=f"{handle}:7-8", budget_tokens=400).text
    assert text == f"{handle}:7-8 of 300 notes\n| {LINES[6]}\n| {LINES[7]}"


def test_around_shows_a_citation_with_its_surroundings(session: Session, handle: str) -> None:
    answer = read(session, around=f"{handle}:100", budget_tokens=150)
    assert answer.structured["from_line"] < 100 < answer.structured["to_line"] and estimate_tokens(answer.text) <= 150


def test_every_page_makes_progress_however_small_the_budget_and_long_the_label(session: Session) -> None:
    text = "\n".join([*(f"zebra {number} 日本語" for number in range(40)), "日" * 300])
    one = session.store.add(NewSource("標題" * 40, "text", session.project, session.id), text).handle
    for grep in (None, "zebra"):
        places, cursor = [], None
        while True:
            page = read(session, handle=one, cursor=cursor, grep=grep, budget_tokens=50)
            assert estimate_tokens(page.text) <= 50 and "\n" in page.text
            if (cursor := page.structured["cursor"]) is None:
                break
            places.append(tuple(map(int, cursor.split("."))))
        assert places == sorted(set(places)) and len(places) > 3


def test_a_cursor_goes_on_although_a_citation_is_given_again(session: Session, handle: str) -> None:
    first = read(session, around=f"{handle}:100", budget_tokens=400)
    assert (
        read(session, around=f"{handle}:100", cursor=first.structured["cursor"], budget_tokens=400).structured["from_line"] == 111
    )


def test_a_line_around_which_to_read_needs_a_handle(session: Session, handle: str) -> None:
    assert read(session, handle=handle, around="100", budget_tokens=2_000).structured["from_line"] == 90
    with pytest.raises(UsageError, match="'100' names no source"):
        read(session, around="100", budget_tokens=100)


def test_grep_gives_numbered_lines_and_a_cursor_to_the_next(session: Session, handle: str) -> None:
    first = read(session, handle=handle, grep="zebra", budget_tokens=60)
    rest = read(session, handle=handle, grep="zebra", cursor=first.structured["cursor"], budget_tokens=400)
    assert first.structured["lines"] + rest.structured["lines"] == [50, 100, 150, 200, 250, 300]
    assert re.search(r"^50\| line 50 of the text with zebra$", first.text, re.MULTILINE)


def test_a_text_of_one_line_has_one_line(session: Session) -> None:
    one = session.store.add(NewSource("one", "text", session.project, session.id), "only\n").handle
    with pytest.raises(UsageError, match="has 1 line, so none numbered 2"):
        read(session, handle=one, from_line=2, budget_tokens=100)


def test_a_text_that_is_not_there_is_said(session: Session, handle: str) -> None:
    assert read(session, handle=handle, grep="giraffe", budget_tokens=60).text.endswith('lines with "giraffe": none')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "wants a `handle` or `around`"),
        ({"handle": "nope"}, "no source 'nope'"),
        ({"from_line": 999}, "has 300 lines"),
        ({"from_line": 9, "to_line": 3}, "lines 9 to 3 are none"),
        ({"cursor": "x"}, "is not a cursor"),
        ({"around": "x:y"}, "is not a citation"),
    ],
    ids=["none", "unknown", "beyond", "backwards", "cursor", "citation"],
)
def test_what_does_not_exist_is_an_error(session: Session, handle: str, arguments: dict[str, str], message: str) -> None:
    given: dict[str, Any] = {"handle": handle} | arguments if arguments else {}
    with pytest.raises(UsageError, match=message):
        read(session, **given, budget_tokens=400)


def test_another_projects_source_is_read_only_when_all_are_asked_for(session: Session) -> None:
    other = session.store.add(NewSource("theirs", "text", "/elsewhere", "s"), "their secret\n").handle
    ways: list[dict[str, Any]] = [
        {"handle": other},
        {"handle": f"{other}:1-1"},
        {"around": f"{other}:1"},
        {"handle": other, "grep": "secret"},
    ]
    for arguments in ways:
        with pytest.raises(UsageError, match="There is no source"):
            read(session, **arguments, budget_tokens=400)
    assert "| their secret" in read(session, handle=other, scope="all", budget_tokens=400).text
