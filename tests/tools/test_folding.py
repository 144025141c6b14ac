"""Lines of a log that differ in their numbers only are told once, with how many there are."""

from __future__ import annotations

import re

from sandboxmcp.core.model import Hit, NewSource
from sandboxmcp.session import Session
from sandboxmcp.tools.folding import folded, phrase_of
from sandboxmcp.tools.knowledge import search


def hit(first: int, text: str, handle: str = "h") -> Hit:
    return Hit(handle, handle, first, first + text.count("\n"), text, 1.0)


def test_repeats_but_for_numbers_stand_behind_the_first() -> None:
    hits = [
        hit(9, "timeout after 30ms"),
        hit(1, "disk is full"),
        hit(5, "Timeout after 7ms"),
        hit(7, "timeout after 8ms\ndisk is full"),
    ]
    assert folded(hits, {"h"}) == (hits[:2], {("h", 9): hits[2:]})


def test_other_texts_other_logs_and_rows_of_numbers_are_not_folded() -> None:
    hits = [hit(1, "read a file"), hit(2, "read a folder"), hit(3, "12 30 ok"), hit(4, "13 31 ok"), hit(1, "read a file", "g")]
    assert folded(hits, {"h", "g"}) == (hits, {})
    assert folded([hits[0], hit(9, "read a file")], {"g"})[1] == {}


def test_the_phrase_is_what_stands_between_numbers() -> None:
    assert phrase_of(hit(1, "10:00:01 ERROR timeout after 30ms on h7")) == "ERROR timeout after"


def test_the_answer_counts_them_all_and_has_room_for_others(session: Session) -> None:
    lines = [f"ERROR timeout after {n * 37 % 101}ms\n" + "INFO request served\n" * (n % 2) for n in range(3_000)]
    session.store.add(NewSource("log", "execute", session.project, session.id), "".join(lines) + "ERROR no timeout is set\n")
    text = search(session, ["timeout set"], budget_tokens=300).text
    (count,) = re.findall(r"(\d+) more passages like it but for numbers", text)
    assert (int(count) > 1_000, text.count("ERROR timeout after") <= 3, "ERROR no timeout is set" in text) == (True, True, True)


def test_what_says_most_in_another_line_is_told_and_counted_by_itself(session: Session) -> None:
    lines = [f"INFO worker {n} started fine" + f"\nERROR worker {n} crashed badly" * (n % 20 == 0) for n in range(800)]
    session.store.add(NewSource("log", "execute", session.project, session.id), "\n".join(lines))
    text = search(session, ["worker crashed"], limit=2, budget_tokens=2_000).text
    assert re.findall(r"(\d+) more passages like it", text)[0] == "39" and text.count("like it") == 2
