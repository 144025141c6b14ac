"""Searches that must come out as a person expects them, on a store with plenty of other things in it."""

from __future__ import annotations

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store

PLACES = {
    "cached": "The response was cached for an hour.",
    "hook": "Call useEffect after the first render.",
    "cluster": "The kubernetes cluster has three nodes.",
    "migration": "One migration is pending on the database.",
    "camel": "function getUserName() returns the login.",
    "snake": "def get_order_total(cart): sums the cart.",
    "acronym": "raise HTTPServerError when the upstream is gone.",
    "accent": "Le café est fermé aujourd'hui.",
    "cyrillic": "Сервер не отвечает на запросы.",
    "chinese": "数据库连接失败，请检查配置文件。",
    "japanese": "設定ファイルが見つかりませんでした。",
    "korean": "서버 연결이 끊어졌습니다 다시 시도하세요.",
    "code": "error E1042 stands for a full queue.",
}
FILLER = "\n\n".join(f"Paragraph {n} talks about gardens, rivers, mountains and the weather of day {n}." for n in range(200))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("golden")) as store:
        for label, text in {**PLACES, "filler": FILLER}.items():
            store.add(NewSource(label, "text", "p", "s"), text)
        yield store


QUERIES = [
    ("caching", "cached"),
    ("useEff", "hook"),
    ("Effect", "hook"),
    ("kuberntes", "cluster"),
    ("kuberentes", "cluster"),
    ("kubernets cluster", "cluster"),
    ("bernete", "cluster"),
    ("migrations", "migration"),
    ("getUserName", "camel"),
    ("get_user_name", "camel"),
    ("user name", "camel"),
    ("username", "camel"),
    ("get_order_total", "snake"),
    ("getOrderTotal", "snake"),
    ("order total", "snake"),
    ("HTTPServerError", "acronym"),
    ("http server error", "acronym"),
    ("ServerError", "acronym"),
    ("cafe fermé", "accent"),
    ("CAFÉ", "accent"),
    ("сервер", "cyrillic"),
    ("数据库连接", "chinese"),
    ("配置文件", "chinese"),
    ("設定ファイル", "japanese"),
    ("연결이", "korean"),
    ("E1042", "code"),
]


@pytest.mark.parametrize(("query", "label"), QUERIES, ids=[query for query, _ in QUERIES])
def test_a_query_finds_the_place_first(store, query, label):
    assert [hit.label for hit in store.search(query, Scope("p"))][:1] == [label]


def test_nothing_is_made_up_for_a_word_like_no_other(store):
    assert store.search("qqqqzzzz", Scope("p")) == []


def test_a_short_word_is_repaired_only_where_else_nothing_would_be_found(store):
    found = [{hit.label for hit in store.search(query, Scope("p"))} for query in ("caxt", "caxt fermé", "cxt")]
    assert found == [{"snake"}, {"accent"}, set()]


def test_words_that_stand_together_come_before_the_same_words_apart(store, tmp_path):
    apart = "The session was opened late in the day. " + "Some other words come here. " * 6 + "Then continuity was lost."
    together = "Some other words come here. " * 6 + "We keep session continuity for all. " + "The day was late then, opened."
    with Store(tmp_path) as own:
        for label, text in (("apart", apart), ("together", together), ("apart again", apart + " ")):
            own.add(NewSource(label, "text", "p", "s"), text)
        assert own.search("session continuity", Scope("p"))[0].label == "together"


def test_an_exact_heading_ranks_its_section_first(tmp_path):
    sections = [
        ("Installing from source", "Fetch the archive and run make."),
        ("Retention policy", "Old pages go after two weeks."),
        (
            "Notes",
            "The retention of notes and the policy of notes: retention policy, policy, retention, explained with more words.",
        ),
    ]
    text = "# Manual\n\n" + "\n\n".join(f"## {title}\n\n{body}" for title, body in sections)
    with Store(tmp_path) as own:
        own.add(NewSource("manual", "text", "p", "s"), text)
        assert own.search("retention policy", Scope("p"))[0].title == "Manual › Retention policy"


def test_repeats_of_one_line_come_after_everything_else(tmp_path):
    noise = "".join(f"12:00:{n:02d} worker-{n} connection refused by 10.0.0.{n}\n" for n in range(60))
    with Store(tmp_path) as own:
        own.add(NewSource("log", "execute", "p", "s"), noise + "12:01:00 giving up: connection refused for good\n" + noise)
        texts = [hit.text for hit in own.search("connection refused", Scope("p"))]
    assert "giving up" in texts[0] + texts[1]


def test_a_synonym_finds_but_does_not_outrank_the_word_itself(tmp_path):
    with Store(tmp_path) as own:
        for text in ("the directory is gone", "the folder is gone", "nothing of the kind"):
            own.add(NewSource(text, "text", "p", "s"), text)
        assert [hit.label for hit in own.search("folder", Scope("p"))] == ["the folder is gone", "the directory is gone"]
