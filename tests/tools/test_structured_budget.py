"""Facts within a budget: the first rows stay, what is missing is counted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.render.structured_budget import condensed, facts_cost

ITEMS = [{"label": f"#{number}", "status": "ok", "bytes": 12, "handle": f"abc{number}"} for number in range(200)]


def test_facts_that_fit_are_left_as_they_are() -> None:
    assert condensed({"items": ITEMS}, 100_000) == {"items": ITEMS}


def test_a_long_list_keeps_its_first_rows_and_says_how_many_are_missing() -> None:
    short = condensed({"counts": {"ok": 200}, "items": ITEMS, "receipts": "h1"}, 500)
    kept = len(short["items"])
    assert short == {"counts": {"ok": 200}, "items": ITEMS[:kept], "receipts": "h1", "left_out": {"items": 200 - kept}}
    assert 10 < kept < 30


def test_lists_inside_rows_are_cut_too() -> None:
    queries = [{"query": "x", "hits": [f"h1:{number}-{number}" for number in range(500)], "more": 0}]
    short = condensed({"queries": queries}, 200)
    assert short["left_out"] == {"hits": 500 - len(short["queries"][0]["hits"])}


def test_long_texts_are_cut_when_the_facts_do_not_fit() -> None:
    assert condensed({"queries": [{"query": "word " * 5_000, "hits": []}]}, 400)["queries"][0]["query"].endswith("…")


def test_rows_by_name_count_as_rows() -> None:
    short = condensed({"tools": {f"tool_{number}": {"calls": number} for number in range(300)}, "kept_out_bytes": 7}, 100)
    assert (short["left_out"], short["kept_out_bytes"]) == ({"tools": 300 - len(short["tools"])}, 7)


values = st.recursive(
    st.none() | st.integers(0, 10**9) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=10), inner, max_size=20),
    max_leaves=60,
)


@given(st.dictionaries(st.text(max_size=10), values, max_size=8), st.integers(50, 2_000))
def test_no_facts_exceed_the_budget(facts: dict[str, Any], budget: int) -> None:
    assert facts_cost(condensed(facts, budget)) <= budget
