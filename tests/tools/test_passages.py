"""What a query's part of an answer says beside the passages: what was left out and why, what stands above, what was meant."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sandboxmcp.core.model import Hit
from sandboxmcp.render.budget import total_cost
from sandboxmcp.render.items import Found, Others
from sandboxmcp.render.passages import Seen, section


def hit(first: int, text: str, score: float = 1.0, handle: str = "h1", **more: Any) -> Hit:
    return Hit(handle, "notes", first, first + text.count("\n"), text, score, **more)


def told(found: Found, room: int = 1_000, seen: Seen | None = None, **more: Any) -> list[str]:
    return list(section(found, room, seen or Seen(["h1"]), titled=False, **more).lines)


ZEBRAS = tuple(hit(number, f"zebra {number}") for number in range(1, 30))


def test_what_found_no_room_is_counted_with_what_would_show_it() -> None:
    part = section(Found("zebra", ZEBRAS), 60, Seen(["h1"]), titled=False)
    assert part.lines[-1] == f"+{29 - len(part.cited)} more passages: raise budget_tokens" and total_cost(part.lines) <= 60
    assert (part.more, part.weaker) == (29 - len(part.cited), 0)


def test_where_not_all_was_looked_at_the_number_is_a_least_one() -> None:
    assert re.fullmatch(r"\+\d+ or more passages: raise budget_tokens", told(Found("zebra", ZEBRAS, capped=True), 60)[-1])


def test_what_lies_beyond_a_limit_is_counted_with_the_limit() -> None:
    assert told(Found("zebra", ZEBRAS), limit=2)[-1] == "+27 more passages: raise limit"


def test_another_tool_is_named_where_that_shows_the_rest() -> None:
    assert told(Found("zebra", ZEBRAS), 60, elsewhere="ctx_search")[-1].endswith(" more passages: ctx_search")


def test_far_weaker_passages_are_left_out_and_a_limit_brings_them_back() -> None:
    found = Found("zebra", tuple(hit(number, f"zebra {number}", 9.0 if number < 6 else 0.5) for number in range(1, 9)))
    assert told(found)[-2:] == ["| zebra 5", "3 weaker passages: set limit"]
    assert told(found, limit=8)[-2:] == ["h1:8-8", "| zebra 8"]


def test_a_few_passages_are_shown_however_weak() -> None:
    found = Found("zebra", tuple(hit(number, f"zebra {number}", 0.1**number) for number in range(1, 9)))
    assert [line for line in told(found) if "|" not in line] == [
        *(f"h1:{n}-{n}" for n in range(1, 6)),
        "3 weaker passages: set limit",
    ]


LONG = "\n".join(f"the herd goes where the rain has been {number} times, and nothing is said of it" for number in range(30))


def test_long_passages_leave_room_for_those_after_them() -> None:
    hits = tuple(hit(100 * number, f"{LONG}\nzebra {number}\n{LONG}", best_line=30) for number in range(1, 9))
    shown = told(Found("zebra", hits), 400)
    assert [line for line in shown if "zebra" in line] == [f"| zebra {number}" for number in range(1, 6)]


def test_one_passage_has_all_the_room_and_its_best_line_is_kept() -> None:
    only = hit(1, f"{LONG}\nstripes\n{LONG}", best_line=30)
    assert len(told(Found("zebra", (only,)), 2_000)) == 62
    assert "| stripes" in told(Found("zebra", (only,)), 100)


def test_comparable_passages_fill_the_budget() -> None:
    assert len(section(Found("zebra", ZEBRAS), 1_000, Seen(["h1"]), titled=False).cited) == 29


def test_what_was_shown_before_is_told_by_its_place() -> None:
    seen = Seen(["h1"], whole=["h2"])
    seen.add(hit(1, "zebra"))
    assert told(Found("zebra", (hit(1, "zebra"), hit(4, "zebra", handle="h2"), hit(8, "a zebra"))), seen=seen) == [
        "above: h1:1-1 h2:4-4",
        "h1:8-8",
        "| a zebra",
    ]


def test_many_places_above_are_counted() -> None:
    assert told(Found("zebra", ZEBRAS), seen=Seen(whole=["h1"])) == ["above: h1:1-1 h1:2-2 h1:3-3 +26"]


def test_copies_and_equal_texts_stand_beside_the_citation() -> None:
    others = {("h1", 1): Others(2, ("h1:9-9", "h3:2-2", "h4:1-1", "h5:6-6"))}
    assert told(Found("zebra", (hit(1, "zebra"),), others))[0] == "h1:1-1 (3 copies, same text: h1:9-9 h3:2-2 h4:1-1 +1)"


@pytest.mark.parametrize(
    ("query", "text", "head"),
    [
        ("zebras", "They run.", 'h1:3-3 (under "Animals › Zebra")'),
        ("zebra", "The zebra runs.", "h1:3-3"),
        ("run", "They run.", 'h1:3-3 (under "Zebra")'),
        ("ZebraFinder", "They run.", 'h1:3-3 (under "Animals › Zebra")'),
        ("the zebra", "The horse runs.", 'h1:3-3 (under "Animals › Zebra")'),
    ],
)
def test_a_passage_shows_the_heading_that_its_text_lacks(query: str, text: str, head: str) -> None:
    assert told(Found(query, (hit(3, text, title="Animals › Zebra"),)))[0] == head


def test_a_heading_is_told_once() -> None:
    hits = tuple(hit(number, f"They run {number}.", title="Zebra") for number in (3, 9))
    assert told(Found("zebra", hits))[::2] == ['h1:3-3 (under "Zebra")', "h1:9-9"]


def test_a_run_of_equal_lines_is_one_line_and_a_number() -> None:
    assert told(Found("zebra", (hit(1, "zebra\n" * 9 + "end"),))) == ["h1:1-10", "| zebra", "... 8 more lines like it", "| end"]
    assert len(told(Found("zebra", (hit(1, "zebra\n" * 2 + "zebra"),)))) == 4


@pytest.mark.parametrize("room", [0, 5, 12, 20, 40, 80])
def test_no_room_is_exceeded(room: int) -> None:
    others = {("h1", 1): Others(2, ("h1:9-9", "h3:2-2"))}
    part = section(Found("zebra", ZEBRAS, others), room, Seen(["h1"]), titled=True)
    assert total_cost(part.lines) <= room


@pytest.mark.parametrize("room", [40, 70, 100])
def test_rows_of_one_long_line_are_all_cited_by_its_number(room: int) -> None:
    minified = Hit("h1", "notes", 7, 7, LONG, 1.0, partial=True)
    assert told(Found("rain 20 times", (minified,)), room)[0] == "h1:7-7 (part)"


def test_the_best_passage_is_trimmed_to_its_best_line_though_that_spells_the_words_otherwise() -> None:
    found = Found("lions in parsers", (hit(1, LONG.replace("herd", "lion", 1), best_line=0),))
    assert told(found, 50)[:2] == ["h1:1-1", "| the lion goes where the rain has been 0 times, and nothing is said of it"]


def test_lines_at_the_edges_that_were_shown_are_not_shown_again() -> None:
    found = Found(
        "zebra",
        (hit(3, "zebra 3\nb", best_line=0), hit(1, "a\nzebra 2\nzebra 3", best_line=1), hit(4, "b\nc\nzebra 6", best_line=2)),
    )
    assert told(found) == ["h1:3-4", "| zebra 3", "| b", "h1:1-2", "| a", "| zebra 2", "h1:5-6", "| c", "| zebra 6"]
