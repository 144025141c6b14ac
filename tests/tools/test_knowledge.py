"""ctx_search and ctx_sources on a real store."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.core.tokens import estimate_tokens
from sandboxmcp.session import Session
from sandboxmcp.tools.knowledge import search, sources


def store(own: Session, label: str, text: str, **more: Any) -> Source:
    facts = {"project": own.project, "session": own.id} | more
    return own.store.add(NewSource(label, "text", **facts), text)


def test_a_passage_is_cited_by_handle_and_lines(session: Session) -> None:
    one = store(session, "notes", "alpha\nthe zebra runs\nomega\n")
    answer = search(session, ["zebra"], budget_tokens=500)
    assert answer.text.startswith(f"{one.handle}:") and "| the zebra runs" in answer.text
    assert [hit.split(":")[0] for hit in answer.structured["queries"][0]["hits"]] == [one.handle]


def test_structured_content_repeats_no_text(session: Session) -> None:
    store(session, "notes", "the zebra runs\n")
    assert "runs" not in str(search(session, ["zebra"], budget_tokens=500).structured)


def test_every_query_has_its_part_and_a_miss_says_so(session: Session) -> None:
    store(session, "notes", "the zebra runs\n")
    text = search(session, ["zebra", "qqqqzzzz"], budget_tokens=500).text
    assert (text.startswith("? zebra\n"), text.endswith('? qqqqzzzz\nNo results for "qqqqzzzz"')) == (True, True)


def test_punctuation_alone_finds_nothing_and_breaks_nothing(session: Session) -> None:
    store(session, "notes", "the zebra runs\n")
    assert search(session, ["???"], budget_tokens=500).text == 'No results for "???": it holds no word'


def test_the_limit_is_a_maximum_per_query(session: Session) -> None:
    for number in range(6):
        store(session, f"n{number}", f"zebra number {number} {'x' * number}\n")
    (facts,) = search(session, ["zebra"], limit=2, budget_tokens=2_000).structured["queries"]
    assert (len(facts["hits"]), facts["more"]) == (2, 4)


def test_the_budget_holds_whatever_is_found(session: Session) -> None:
    store(session, "notes", "\n\n".join(f"zebra {number} " + "word " * 40 for number in range(60)))
    answer = search(session, ["zebra", "word"], budget_tokens=120)
    assert estimate_tokens(answer.text) <= 120 and " more" in answer.text


def test_one_content_that_was_stored_twice_is_cited_once(session: Session) -> None:
    handles = [store(session, label, "alpha\nthe zebra runs\n").handle for label in ("one", "two", "three")]
    (title, *lines) = search(session, ["zebra"], budget_tokens=500).text.split("\n")
    assert (title.split(":")[0] in handles, title.endswith(" (3 copies)"), lines) == (True, True, ["| alpha", "| the zebra runs"])


def test_a_passage_that_only_its_heading_answers_shows_the_heading(session: Session) -> None:
    body = "\n\n".join(f"Paragraph {number} says a lot about stripes and grass. " + "More of it. " * 30 for number in range(6))
    store(session, "notes", f"# Animals\n\n## Zebra\n\n{body}\n\n## Okapi\n\n{body.replace('Paragraph', 'Section')}\n")
    text = search(session, ["okapi"], budget_tokens=2_000).text
    assert '(under "Animals › Okapi")\n| Section 1 says' in text and "Paragraph" not in text


def test_more_queries_than_the_budget_can_answer_are_counted(session: Session) -> None:
    store(session, "notes", "the zebra runs\n")
    answer = search(session, [f"zebra {number}" for number in range(500)], budget_tokens=300)
    assert answer.text.endswith("+493 queries without room: ask fewer or raise budget_tokens")
    assert (estimate_tokens(answer.text) <= 300, len(answer.structured["queries"])) == (True, 7)


@pytest.mark.parametrize(("scope", "found"), [("project", 2), ("session", 1), ("all", 3)])
def test_a_scope_limits_what_is_looked_at(session: Session, scope: str, found: int) -> None:
    store(session, "mine", "zebra one\n")
    store(session, "older", "zebra two\n", session="before")
    store(session, "other", "zebra three\n", project="/elsewhere")
    assert len(search(session, ["zebra"], scope=scope, budget_tokens=500).structured["queries"][0]["hits"]) == found


def test_the_source_filter_is_a_part_of_the_label(session: Session) -> None:
    store(session, "batch:100%", "zebra one\n")
    store(session, "batch:1000", "zebra two\n")
    assert "zebra one" in (text := search(session, ["zebra"], source="100%", budget_tokens=500).text) and "two" not in text


def test_no_query_is_an_error(session: Session) -> None:
    with pytest.raises(UsageError, match="queries is empty"):
        search(session, ["", "  "], budget_tokens=500)


def test_sources_are_listed_newest_first_and_counted_when_they_do_not_fit(session: Session) -> None:
    handles = [store(session, f"source number {number}", f"text {number}\n").handle for number in range(30)]
    answer = sources(session, budget_tokens=200)
    assert (
        answer.text.startswith(handles[-1])
        and f"+{answer.structured['more']} more sources: narrow with source, or raise budget_tokens" in answer.text
    )
    assert estimate_tokens(answer.text) <= 200


def test_what_is_forgotten_is_found_no_more(session: Session) -> None:
    one = store(session, "notes", "the zebra runs\n")
    assert sources(session, action="forget", handle=one.handle, budget_tokens=200).structured == {"forgotten": 1}
    assert search(session, ["zebra"], budget_tokens=200).text.startswith("No results")


@pytest.mark.parametrize("action", ["list", "forget"])
def test_a_handle_of_another_project_does_not_exist_here(session: Session, action: str) -> None:
    other = store(session, "theirs", "their secret\n", project="/elsewhere")
    with pytest.raises(UsageError, match="There is no source"):
        sources(session, action=action, handle=other.handle, budget_tokens=200)
    assert session.store.get(other.handle).label == "theirs"


def test_a_part_of_several_labels_forgets_none_of_them_and_lists_them(session: Session) -> None:
    handles = {store(session, label, f"{label}\n").handle for label in ("notes one", "notes two")}
    said = sources(session, action="forget", source="notes", budget_tokens=200)
    assert (said.is_error, {row["handle"] for row in said.structured["sources"]}) == (True, handles)
    assert said.text.startswith("2 sources have 'notes' in their label, none was forgotten") and '"notes two": ' in said.text
    assert sources(session, action="forget", handle=", ".join(handles), budget_tokens=200).structured == {"forgotten": 2}


@pytest.mark.parametrize(("named", "left"), [("notes", ["notes two"]), ("two", ["notes", "notes"])])
def test_an_exact_label_or_a_part_that_one_source_has_is_forgotten(session: Session, named: str, left: list[str]) -> None:
    for number, label in enumerate(("notes", "notes", "notes two")):
        store(session, label, f"text {number}\n")
    sources(session, action="forget", source=named, budget_tokens=200)
    assert [row["label"] for row in sources(session, budget_tokens=200).structured["sources"]] == left


def test_forgetting_needs_a_name(session: Session) -> None:
    with pytest.raises(UsageError, match="nothing is named"):
        sources(session, action="forget", budget_tokens=200)


def test_an_empty_store_says_so(session: Session) -> None:
    assert sources(session, budget_tokens=200).text == "nothing stored"


def test_a_source_that_nothing_has_is_told_apart_from_a_miss(session: Session) -> None:
    session.store.add(NewSource("notes", "text", session.project, "s"), "zebra\n")
    found = [search(session, ["okapi"], source=source, budget_tokens=500).text for source in ("notes", "nots")]
    assert found == ['No results for "okapi"', "no source has 'nots' in its label; ctx_sources lists them"]


def test_lines_alike_with_the_common_word_of_a_query_do_not_use_up_the_budget(session: Session) -> None:
    store(session, "rows", "\n".join(f"row {n}" + " zebra" * (n == 1_500) for n in range(3_000)))
    text = search(session, ["zebra row"], budget_tokens=2_000).text
    assert ("| row 1500 zebra" in text, estimate_tokens(text) < 600) == (True, True)


_OTHER_PROCESS = """
import sys
from pathlib import Path
from sandboxmcp.core.model import NewSource
from sandboxmcp.store.store import Store
with Store(Path(sys.argv[1])) as store:
    store.forget([sys.argv[2]])
    store.repair()
    store.add(NewSource("notes", "text", sys.argv[3], "other"), "alpha\\nthe zebra sleeps\\nomega\\n")
"""


def test_what_another_process_forgot_indexed_anew_and_added_is_seen_at_once(session: Session) -> None:
    one = store(session, "notes", "alpha\nthe zebra runs\nomega\n")
    before = search(session, ["zebra", "zebar"], budget_tokens=500).text
    arguments = [str(session.settings.data_dir), one.handle, session.project]
    subprocess.run([sys.executable, "-c", _OTHER_PROCESS, *arguments], check=True)
    after = search(session, ["zebra", "zebar"], budget_tokens=500).text
    assert ("| the zebra runs" in before, "runs" in after, "| the zebra sleeps" in after) == (True, False, True)
