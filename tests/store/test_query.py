"""Queries become words: nothing raises, nothing is syntax."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.words import folded
from sandboxmcp.store.search.query import Word, match_any, query_words

syntax = st.sampled_from(
    [
        '"',
        "'",
        "*",
        "^",
        "(",
        ")",
        "{",
        "}",
        ":",
        "-",
        "+",
        "NEAR",
        "AND",
        "OR",
        "NOT",
        " ",
        "\0",
        "é",
        "日本語",
        "getUserName",
        "a_b",
    ]
)
queries = st.one_of(st.text(max_size=60), st.lists(syntax, max_size=20).map("".join), st.lists(syntax, max_size=20).map(" ".join))


@pytest.fixture(scope="module")
def table():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5(title, body, tokenize='porter unicode61 remove_diacritics 2')")
    connection.execute("INSERT INTO t VALUES ('a title', 'some body text near and or not')")
    return connection


@given(queries)
def test_no_query_is_an_error_to_the_index(table, query):
    words = [word.text for word in query_words(query)] or ["nothing"]
    found = table.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank", (match_any([*words, "body"]),)).fetchall()
    assert found == [(1,)]


@given(queries)
def test_every_word_is_letters_and_digits_once(query):
    words = [word.text for word in query_words(query)]
    assert all(word.isalnum() or folded(word) == word for word in words)
    assert not set("\"*^(){}:-'\0 _") & set("".join(words))
    assert len(words) == len(set(words))


@given(st.text(alphabet="!?.,;:-_()[]{}<>|/\\'\"@#$%^&*+=~` \t\n\0", max_size=50))
def test_a_query_of_only_punctuation_has_no_words(query):
    assert query_words(query) == ()


def test_stop_words_go_unless_there_is_nothing_else():
    assert [word.text for word in query_words("what is the answer") if word.role == "word"] == ["answer"]
    assert [word.text for word in query_words("to be or not") if word.role == "word"] == ["to", "be", "or", "not"]


def test_identifiers_are_looked_for_whole_and_in_pieces():
    assert query_words("HTTPServerError") == (
        Word("httpservererror"),
        Word("http", 0.8, "piece", "httpservererror"),
        Word("server", 0.8, "piece", "httpservererror"),
        Word("error", 0.8, "piece", "httpservererror"),
    )


def test_neighbours_are_also_looked_for_glued():
    assert [word.text for word in query_words("zebra crossing") if word.role == "glued"] == ["zebracrossing"]


def test_near_synonyms_weigh_less_than_half_of_the_word_itself():
    words = {word.text: word for word in query_words("folder")}
    assert (words["folder"].weight, words["directory"].role, words["directory"].weight < 0.5) == (1.0, "kin", True)


def test_a_very_long_query_is_bounded():
    assert len([word for word in query_words(" ".join(f"word{n}" for n in range(5_000))) if word.role == "word"]) == 64


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("serialise", "serialize"),
        ("normalization", "normalisation"),
        ("analysed", "analyzed"),
        ("behaviour", "behavior"),
        ("cancelled", "canceled"),
        ("labeling", "labelling"),
        ("centre", "center"),
        ("catalog", "catalogue"),
        ("licence", "license"),
    ],
)
def test_both_spellings_of_english_are_looked_for(word, other):
    assert Word(other, 0.9, "piece", word) in query_words(word)


def test_words_that_are_spelt_alike_everywhere_stay_alone():
    assert [word.text for word in query_words("error vector pointer hour parse counter") if word.role == "piece"] == []


def test_what_a_long_question_says_again_counts_more() -> None:
    weights = {
        word.text: word.weight for word in query_words("Is information stored? How is information found, what is information?")
    }
    assert [weights["information"], weights["stored"]] == pytest.approx([2.1, 1.0], abs=0.01)
