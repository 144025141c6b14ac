"""Pages: nothing skipped, nothing twice, never over the budget."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.errors import UsageError
from sandboxmcp.render.budget import total_cost
from sandboxmcp.render.paging import Cursor, Fetch, page_around, page_from, parse_citation, parse_cursor

texts = st.lists(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=120), min_size=1, max_size=40)


def fetch_of(lines: Sequence[str]) -> Fetch:
    return lambda first, last: lines[first - 1 : last]


@given(texts, st.integers(20, 200))
def test_page_after_page_gives_every_character_once(lines: list[str], room: int) -> None:
    cursor: Cursor | None = Cursor(1)
    read: dict[int, str] = {}
    while cursor is not None:
        page = page_from(fetch_of(lines), cursor, len(lines), room)
        assert total_cost(page.lines) <= room
        for number, line in enumerate(page.lines, page.first):
            read[number] = read.get(number, "") + re.sub(r"^\| ?", "", line, count=1)
        cursor = page.following
    assert [read[number] for number in sorted(read)] == lines


def test_a_line_longer_than_a_page_goes_on_where_the_cursor_says() -> None:
    page = page_from(fetch_of(["x" * 10_000]), Cursor(1), 1, 50)
    assert page.following == Cursor(1, len(page.lines[0]) - 2)
    assert parse_cursor(str(page.following)) == page.following


def test_surroundings_grow_evenly_until_the_room_is_used() -> None:
    page = page_around(fetch_of([f"line {number}" for number in range(1, 101)]), 50, 51, 100, 60)
    assert page.last - page.first < 21
    assert (50 - page.first - (page.last - 51) in (0, 1), page.following) == (True, Cursor(page.last + 1))
    assert page.lines[50 - page.first] == "| line 50"


def test_surroundings_are_ten_lines_on_each_side_however_much_would_fit() -> None:
    page = page_around(fetch_of([f"line {number}" for number in range(1, 101)]), 50, 51, 100, 10_000)
    assert (page.first, page.last, page.following) == (40, 61, Cursor(62))


def test_surroundings_stop_at_both_ends() -> None:
    page = page_around(fetch_of(["a", "b", "c"]), 2, 2, 3, 1_000)
    assert (page.lines, page.first, page.last, page.following) == (("| a", "| b", "| c"), 1, 3, None)


@pytest.mark.parametrize(
    ("text", "parts"), [("h1:98-102", ("h1", 98, 102)), ("h1:7", ("h1", 7, 7)), ("5-9", ("", 5, 9)), (" 5 ", ("", 5, 5))]
)
def test_citations_are_read(text: str, parts: tuple[str, int, int]) -> None:
    assert parse_citation(text) == parts


@pytest.mark.parametrize("text", ["", "h1", "h1:", "h1:a-b", "h1:1-2-3", "1" * 99])
def test_what_is_no_citation_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a citation"):
        parse_citation(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.x", "x"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a cursor"):
        parse_cursor(text)
