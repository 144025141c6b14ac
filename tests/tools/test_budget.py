"""Shares and cuts: nothing gets more than it needs, nothing costs more than it may."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.tokens import estimate_tokens
from sandboxmcp.render.budget import Page, checked_budget, cost, cut, fair_shares, first_fitting, last_fitting, total_cost

lines = st.lists(st.text(alphabet=st.characters(exclude_characters="\n")), max_size=30)


@pytest.mark.parametrize("budget", [49, 0, -1])
def test_a_budget_below_fifty_is_refused(budget: int) -> None:
    with pytest.raises(UsageError, match="minimum is 50"):
        checked_budget(budget)


def test_what_one_claimant_does_not_need_goes_to_the_others() -> None:
    assert fair_shares([10, 500, 300], 410) == [10, 200, 200]


@given(st.lists(st.integers(0, 10_000), max_size=30), st.integers(-5, 20_000))
def test_shares_stay_within_need_and_total_and_waste_nothing(needs: list[int], total: int) -> None:
    shares = fair_shares(needs, total)
    assert all(share <= need for share, need in zip(shares, needs, strict=True))
    assert sum(shares) <= max(total, 0)
    assert sum(needs) > total or shares == needs


@given(lines)
@example([" \r"])
def test_lines_together_never_cost_more_than_their_sum(texts: list[str]) -> None:
    assert estimate_tokens("\n".join(texts)) <= total_cost(texts)


def test_short_lines_are_added_up_before_they_are_rounded() -> None:
    manual = ["       -a, --all", "              list all of it"] * 50
    page = Page(total_cost(manual))

    assert page.add_all(manual)
    assert estimate_tokens("\n".join(manual)) <= total_cost(manual) < 0.96 * sum(map(cost, manual))


@given(st.text(max_size=500), st.integers(0, 60))
def test_a_cut_line_fits_and_is_a_beginning(line: str, room: int) -> None:
    short = cut(line, room)
    assert not short or total_cost([short]) <= room
    assert line.startswith(short.removesuffix("…"))


def test_a_line_of_a_megabyte_is_cut_without_reading_all_of_it() -> None:
    assert len(cut("abc " * 250_000, 20)) < 20 * 33


@given(lines, st.integers(0, 100))
def test_a_page_never_exceeds_its_room(texts: list[str], room: int) -> None:
    page = Page(room)
    for text in texts:
        page.add(text)
    assert not page.lines or estimate_tokens(page.text) <= room


def test_fitting_takes_from_its_own_end() -> None:
    assert first_fitting(["a", "b", "c"], 6) + last_fitting(["a", "b", "c"], 6) == ["a", "b", "b", "c"]
