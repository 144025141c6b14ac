"""What an agent reads after an execution, as golden files; and the one promise: never more than the budget."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandboxmcp.core.model import Hit
from sandboxmcp.core.tokens import estimate_tokens
from sandboxmcp.render.extract import Numbered
from sandboxmcp.render.items import Found, Item, Stream
from sandboxmcp.render.layout import all_whole, lay_out, must_condense

BIG = "".join(f"line {number} status={'ERROR' if number % 97 == 0 else 'ok'} filler text\n" for number in range(1, 1501))
TRACEBACK = 'Traceback (most recent call last):\n  File "<script>", line 1, in <module>\nValueError: x\n'


def hits_in(item: Item, *lines: int) -> tuple[Hit, ...]:
    assert item.stdout is not None
    source = item.stdout.source
    return tuple(Hit(source.handle, source.label, n, n + 1, f"line {n} status=ERROR filler text\nnext", 1.0) for n in lines)


def text_of(*arguments: Any, **more: Any) -> str:
    return "\n".join(lay_out(*arguments, **more).lines)


def test_a_tiny_execution_costs_a_handful_of_tokens(make: Any, golden: Callable[[str, str], None]) -> None:
    text = text_of([make.item("", "1\n")], [], [], 2_000)
    golden("tiny", text)
    assert estimate_tokens(text) <= 14


def test_a_failure_shows_its_exit_code_and_stderr(make: Any, golden: Callable[[str, str], None]) -> None:
    golden("failed", text_of([make.item("", "a\nb\n", TRACEBACK, "failed", exit_code=1)], [], [], 2_000))


def test_stderr_is_shown_although_all_went_well(make: Any) -> None:
    assert text_of([make.item("", "", "a warning\n")], [], [], 2_000) == "ok, 12ms\nstderr h1\n| a warning"


def test_no_output_is_said_when_there_is_none_at_all(make: Any) -> None:
    assert text_of([make.item("")], [], [], 2_000) == "ok, 12ms, no output"


def test_an_output_that_took_longer_to_index_than_to_print_says_so(make: Any) -> None:
    slow, quick = replace(make.item("slow", "1\n"), stored_s=4.2), replace(make.item("quick", "1\n"), stored_s=0.9)
    lines = text_of([slow, quick], [], [], 2_000).splitlines()
    assert lines == ["slow: ok, 12ms + 4.2s indexing, h1", "| 1", "quick: ok, 12ms, h2", "| 1"]


def test_a_failed_item_shows_its_errors_and_its_end_although_a_query_hits_elsewhere(
    make: Any, golden: Callable[[str, str], None]
) -> None:
    tests, notes = make.item("tests", BIG, status="failed", exit_code=1), make.item("notes", BIG)
    golden("failed_beside_hits", text_of([tests, notes], [Found("line 97", hits_in(notes, 97))], [], 240))


def test_a_failed_item_with_a_long_stderr_shows_its_first_its_error_and_its_last_lines(make: Any) -> None:
    noise = "".join(f"note number {number}\n" for number in range(1, 400))
    stderr = f"{noise}main.c:7: error: unknown type name\n{noise}compilation ended\n"
    item = make.item("build", "", stderr, "failed", exit_code=1)
    stream = replace(item.stderr, errors=((400, "main.c:7: error: unknown type name"),))
    lines = text_of([replace(item, stderr=stream)], [], [], 300).splitlines()
    wanted = ("1| note number 1", "400| main.c:7: error: unknown type name", "800| compilation ended")
    assert (lines[1], [line in lines for line in wanted]) == ("stderr h1", [True, True, True])


def test_a_failed_item_with_one_long_line_on_stderr_shows_its_start(make: Any) -> None:
    stream = Stream(make.source("x" * 9_000), None, ((1, "x" * 2_000),))
    for budget in (20, 200, 2_000):
        lines = text_of([replace(make.item("", "", "e", "failed", exit_code=1), stderr=stream)], [], [], budget).splitlines()
        assert lines[0].startswith("exit 1")


def test_the_last_words_of_stderr_survive_the_smallest_budget(make: Any) -> None:
    text = text_of([make.item("", BIG, TRACEBACK * 9, "failed", exit_code=1)], [], ["filler"], 60)
    assert text.splitlines()[-1] == "| ValueError: x"


def test_a_denied_item_says_why_and_what_to_do_instead(make: Any, golden: Callable[[str, str], None]) -> None:
    golden("denied", text_of([make.denied("fetch"), make.item("list", "a\n")], [], [], 2_000))


def test_a_reason_that_was_told_is_not_told_again(make: Any) -> None:
    lines = text_of([make.denied("one"), make.denied("two")], [], [], 2_000).splitlines()
    assert lines[2:] == ["two: denied", "(as above)"] and lines[1].startswith("What it fetches")


def test_the_code_is_never_echoed(make: Any) -> None:
    items = [make.item("a", "x\n"), make.denied("b"), make.item("c", BIG, TRACEBACK, "failed", exit_code=2)]
    assert "secret code" not in text_of(items, [], ["filler"], 2_000)


def test_a_batch_of_small_outputs_comes_back_whole(make: Any, golden: Callable[[str, str], None]) -> None:
    items = [make.item(f"c{number}", f"hello number {number}\n") for number in range(4)]
    golden("small_batch", text_of(items, [], [], 2_000))


def test_a_large_output_shows_head_errors_tail_and_terms(make: Any, golden: Callable[[str, str], None]) -> None:
    golden("large", text_of([make.item("", BIG)], [], ["filler", "status", "text"], 300))


def test_a_query_replaces_the_excerpt_of_a_large_output(make: Any, golden: Callable[[str, str], None]) -> None:
    item = make.item("", BIG)
    golden("large_with_intent", text_of([item], [Found("ERROR", hits_in(item, 97, 194, 291, 388))], ["filler", "status"], 120))


def test_queries_share_what_the_small_outputs_leave(make: Any, golden: Callable[[str, str], None]) -> None:
    big, small = make.item("big", BIG), make.item("small", "x\ny\n")
    found = [Found("status ERROR", hits_in(big, *range(97, 1455, 97))), Found("nothing like it", ())]
    golden("batch_with_queries", text_of([big, small], found, ["filler", "status", "text"], 200))


def test_why_something_failed_comes_before_queries_and_queries_without_room_are_counted(
    make: Any, golden: Callable[[str, str], None]
) -> None:
    log, broken = make.item("log", BIG), make.item("build", "", f"{TRACEBACK * 60}", "failed", exit_code=1)
    errors = make.stream(TRACEBACK * 60)
    broken = replace(broken, stderr=replace(errors, errors=((3, "ValueError: x"),)))
    items = [log, broken, make.item("tiny", "hello\n"), make.denied("fetch")]
    found = [Found(f"ERROR {number}", hits_in(log, *range(number, 1400, 97))) for number in (97, 98, 99)]
    golden("small_budget", text_of(items, found, ["filler", "status", "text"], 190))


@pytest.mark.parametrize("budget", range(80, 420, 20))
def test_every_query_is_answered_or_counted(make: Any, budget: int) -> None:
    log = make.item("log", BIG)
    found = [Found(f"ERROR {number}", hits_in(log, *range(97, 1400, 97))) for number in range(4)]
    text = text_of([log, make.item("build", "", TRACEBACK, "failed", exit_code=1)], found, [], budget)
    counted = re.search(r"\+(\d) quer", text)
    assert len(re.findall(r"^\? ", text, re.M)) + int(counted[1] if counted else 0) == 4


def test_a_query_without_a_match_brings_the_excerpt_back(make: Any) -> None:
    text = text_of([make.item("", BIG)], [Found("zebra", ())], [], 300)
    assert text.splitlines()[1] == "1| line 1 status=ok filler text" and 'No results for "zebra"' in text


def test_hits_in_an_output_that_is_shown_whole_are_not_repeated_but_told_by_their_place(make: Any) -> None:
    item = make.item("", "line 1 status=ERROR filler text\nnext\n")
    text = text_of([item], [Found("ERROR", hits_in(item, 1))], [], 2_000)
    assert (text.count("status=ERROR"), text.splitlines()[-1]) == (1, "above: h1:1-2")


def test_an_output_below_the_threshold_that_does_not_fit_is_treated_as_a_large_one(make: Any) -> None:
    text = text_of([make.item("", BIG[:4_500])], [], [], 200)
    assert text.splitlines()[0].startswith("ok, 12ms, h1 4500 B") and estimate_tokens(text) <= 200


def test_many_items_of_which_one_failed_are_counted_first(make: Any) -> None:
    items = [make.item(f"c{n}", "x\n", status="failed" if n == 5 else "ok", exit_code=int(n == 5)) for n in range(8)]
    fine = [make.item(f"c{n}", "x\n") for n in range(8)]
    assert text_of(items, [], [], 2_000).splitlines()[0] == "8 items: 7 ok, 1 failed"
    assert text_of(fine, [], [], 2_000).startswith("c0: ok")


def test_two_hundred_items_at_a_small_budget_are_counted_and_the_full_list_has_a_handle(
    make: Any, golden: Callable[[str, str], None]
) -> None:
    items = [
        make.item(f"c{n}", f"hello {n}\n", status="ok" if n % 60 else "failed", exit_code=int(n % 60 == 0)) for n in range(200)
    ]
    assert must_condense(items, 200)
    golden("condensed", text_of(items, [], [], 200, full_list=make.source("receipts")))


def test_a_cut_capture_says_what_was_not_kept(make: Any) -> None:
    item = Item("", make.item("").outcome, make.stream(BIG, total_bytes=10**9, indexed_bytes=1_000))
    assert "B beyond the cap not kept, indexed 1000 B of head and tail" in text_of([item], [], [], 300)


labels = st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80)
outputs = st.one_of(
    st.just(""), st.text(max_size=400), st.just(BIG), st.just(BIG[:4_000]), st.just("x" * 4_900), st.just("日本語" * 500)
)
statuses = st.sampled_from(["ok", "failed", "timeout", "killed", "denied", "skipped"])
batches = st.lists(st.tuples(labels, outputs, outputs, statuses), min_size=1, max_size=12)


@pytest.mark.parametrize("single", [True, False])
@given(batch=batches, queries=st.lists(st.text(min_size=1, max_size=60), max_size=3), budget=st.integers(50, 3_000))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_outcome_and_no_budget_make_an_answer_exceed_it(
    make: Any, real_tokens: Callable[[str], int], batch: list[Any], queries: list[str], budget: int, single: bool
) -> None:
    items = [make.item("" if single else label, out, err, status) for label, out, err, status in batch[: 1 if single else None]]
    found = [Found(query, tuple(hit for item in items if item.stdout for hit in hits_in(item, 97, 194))) for query in queries]
    full_list = make.source("receipts") if must_condense(items, budget) else None
    text = text_of(items, found, ["filler", "status", "text"], budget, full_list)
    assert (estimate_tokens(text) <= budget, real_tokens(text) <= budget * 1.15) == (True, True)


@given(batch=batches, budget=st.integers(50, 20_000))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_everything_that_fits_is_shown_whole(make: Any, batch: list[Any], budget: int) -> None:
    items = [make.item(f"#{number}", out, err, status) for number, (_, out, err, status) in enumerate(batch)]
    if all_whole(items, budget) and not must_condense(items, budget):
        whole = sum(len(item.stdout.whole or ()) for item in items if item.stdout)
        shown = [line for line in lay_out(items, [], [], budget).lines if line.startswith("|")]
        assert len(shown) >= whole


def test_the_numbers_of_an_extract_are_the_lines_of_the_capture(make: Any, long_lines: list[Numbered]) -> None:
    item = make.item("", "\n".join(text for _, text in long_lines))
    shown = [line.split("| ", 1) for line in lay_out([item], [], [], 400).lines if line[0].isdigit()]
    assert all(dict(long_lines)[int(number)] == text for number, text in shown)
