"""Head, tail and the lines that look like errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.render.budget import total_cost
from sandboxmcp.render.extract import Extract, Numbered, error_lines, extract, extract_cost, looks_like_error

ERRORS = [
    "ValueError: bad",
    "E   assert 1 == 2",
    "error[E0308]: mismatched types",
    "FATAL: password authentication failed",
    "make: *** [all] Error 2",
    "ls: cannot access 'x': No such file or directory",
    "panicked at 'index out of bounds'",
]
FINE = ["0 errors, 3 warnings", "all tests passed", "no failures", "terrorism", "mirror ready"]


@pytest.mark.parametrize("line", ERRORS)
def test_lines_that_tell_of_a_failure_are_recognised(line: str) -> None:
    assert looks_like_error(line)


@pytest.mark.parametrize("line", FINE)
def test_harmless_lines_are_not(line: str) -> None:
    assert not looks_like_error(line)


def test_of_many_error_lines_the_first_and_the_last_are_kept(long_lines: list[Numbered]) -> None:
    assert [number for number, _ in error_lines(long_lines, 4)] == [97, 194, 1358, 1455]


def test_an_extract_keeps_the_order_of_the_text_and_its_room(long_lines: list[Numbered]) -> None:
    shown = extract(Extract("h1", 1500, long_lines[:20], error_lines(long_lines), long_lines[-20:]), 140).lines
    numbers = [int(line.split("|")[0]) for line in shown if "|" in line]
    assert (numbers == sorted(numbers), numbers[0], numbers[-1], 97 in numbers) == (True, 1, 1500, True)
    assert total_cost(shown) <= 140


def test_the_largest_gap_is_marked_by_a_line_that_says_how_to_read_it(long_lines: list[Numbered]) -> None:
    shown = extract(Extract("h1", 1500, long_lines[:2], [], long_lines[-1:]), 1_000).lines
    assert shown[1:] == ["2| line 2 status=ok filler", "... 1497 lines: ctx_read h1:3-1499", "1500| line 1500 status=ok filler"]


def test_every_gap_between_two_shown_lines_is_marked(long_lines: list[Numbered]) -> None:
    long = Extract("h1", 1500, long_lines[:2], [long_lines[96], long_lines[97], long_lines[193]], long_lines[-1:])
    shown = extract(long, 1_000).lines
    numbers = [line.partition("|")[0].partition(" ")[0] for line in shown]
    assert numbers == ["1", "2", "...", "97", "98", "...", "194", "...", "1500"]


def test_a_run_of_equal_lines_is_one_line_and_a_number() -> None:
    rows = [(number, "retrying" if number < 401 else "done") for number in range(1, 402)]
    assert extract(Extract("h1", 401, rows[:20], (), rows[-20:]), 1_000).lines == [
        "1| retrying",
        "... 380 lines: ctx_read h1:2-381",
        "382| retrying",
        "... 18 more lines like it",
        "401| done",
    ]


def test_what_comes_before_the_first_shown_line_is_a_gap_too(long_lines: list[Numbered]) -> None:
    assert extract(Extract("h1", 1500, [], [], long_lines[-1:]), 1_000).lines[0] == "... 1499 lines: ctx_read h1:1-1499"


def test_an_extract_without_a_gap_marks_none(long_lines: list[Numbered]) -> None:
    text = Extract("h1", 30, long_lines[:20], [], long_lines[10:30])
    assert [line.split("|")[0] for line in extract(text, 1_000).lines] == [str(number) for number in range(1, 31)]
    assert any(line.startswith("...") for line in extract(text, 100).lines)


@given(st.sets(st.integers(1, 60)), st.integers(0, 400))
def test_with_its_mark_an_extract_keeps_to_its_room(chosen: set[int], room: int) -> None:
    rows = [(number, f"line {number}") for number in sorted(chosen)]
    assert total_cost(extract(Extract("h1", 60, rows[:5], rows[5:9], rows[9:]), room).lines) <= room


def test_an_extract_with_enough_room_shows_everything_once(long_lines: list[Numbered]) -> None:
    text = Extract("h1", 1500, long_lines[:20], long_lines[5:10], long_lines[-20:])
    shown = extract(text, 10_000).lines
    assert len(shown) == 41 and total_cost(shown) <= extract_cost(text)


def test_a_single_long_line_is_shown_as_far_as_the_room_goes() -> None:
    line = [(1, "word " * 5_000)]
    text = Extract("h1", 1, line, [], line)
    assert [total_cost(extract(text, room).lines) > room - 5 for room in (30, 300)] == [True, True]
    assert total_cost(extract(text, 5_000).lines) <= 800
