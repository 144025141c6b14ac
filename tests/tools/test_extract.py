"""Head, tail and the lines that look like errors."""

from __future__ import annotations

import pytest

from sandboxmcp.tools.budget import total_cost
from sandboxmcp.tools.extract import Numbered, error_lines, extract, extract_cost, looks_like_error

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
    shown = extract(long_lines[:20], error_lines(long_lines), long_lines[-20:], 120)
    numbers = [int(line.split("|")[0]) for line in shown]
    assert (numbers == sorted(numbers), numbers[0], numbers[-1], 97 in numbers) == (True, 1, 1500, True)
    assert total_cost(shown) <= 120


def test_an_extract_with_enough_room_shows_everything_once(long_lines: list[Numbered]) -> None:
    head, errors, tail = long_lines[:20], long_lines[5:10], long_lines[-20:]
    shown = extract(head, errors, tail, 10_000)
    assert (len(shown), total_cost(shown)) == (40, extract_cost(head, errors, tail))


def test_a_single_long_line_is_shown_as_far_as_the_room_goes() -> None:
    line = [(1, "word " * 5_000)]
    assert [total_cost(extract(line, [], line, room)) > room - 5 for room in (30, 300)] == [True, True]
    assert total_cost(extract(line, [], line, 5_000)) <= 800
