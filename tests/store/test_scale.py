"""Words that very many passages hold: counted by samples, never ranked all together. The bounds are lowered for small stores."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sandboxmcp.core.model import Scope
from sandboxmcp.store.search import scope as scope_module
from sandboxmcp.store.search import search as search_module
from sandboxmcp.store.search.scope import field_of
from sandboxmcp.store.store import Store

P = Scope("p")


@pytest.fixture
def filled(store: Store, add: Any, monkeypatch: pytest.MonkeyPatch) -> Store:
    """3,000 passages: `alpha` in every third, `beta` in every fifth, `gamma` in one, in five sources."""
    monkeypatch.setattr(scope_module, "_COUNTED", 100)
    monkeypatch.setattr(scope_module, "_SMALL", 500)
    monkeypatch.setattr(scope_module, "_SAMPLED", 800)
    monkeypatch.setattr(search_module, "_POSTINGS", 50)
    draw = random.Random(1)
    for source in range(5):
        lines = []
        for n in range(600):
            words = ["alpha"] * (draw.random() < 1 / 3) + ["beta"] * (draw.random() < 1 / 5) + ["gamma"] * (source == n == 3)
            lines.append(f"# Part {n}\n\n{' '.join(words)} {''.join(draw.choices('hijklm', k=9))}\n")
        add("\n".join(lines), label=f"s{source}")
    return store


def test_a_common_word_is_counted_by_samples_and_a_rare_one_exactly(filled: Store) -> None:
    with filled._database.reading() as connection:
        field = field_of(connection, P)
        counts = [field.holding(connection, word) for word in ("alpha", "beta", "gamma", "nowhere")]
    assert (field.passages, counts[2:]) == (3_000, [1, 0])
    assert 800 < counts[0] < 1_200 and 450 < counts[1] < 750


def test_of_common_words_those_passages_come_first_that_hold_all(filled: Store) -> None:
    best = [hit.text for hit in filled.search("alpha beta", P)[:10]]
    assert [text for text in best if not ("alpha" in text and "beta" in text)] == []


def test_one_common_word_is_answered_by_passages_that_hold_it(filled: Store) -> None:
    hits = filled.search("alpha", P)
    assert hits and all("alpha" in hit.text for hit in hits)


def test_a_rare_word_among_common_ones_is_found(filled: Store) -> None:
    assert "gamma" in filled.search("alpha beta gamma", P)[0].text


def test_a_narrow_scope_is_kept_to(filled: Store) -> None:
    handles = tuple(source.handle for source in filled.sources(P) if source.label in ("s1", "s3"))
    hits = filled.search("alpha beta", Scope("p", handles=handles))
    assert hits and {hit.label for hit in hits} <= {"s1", "s3"}


@pytest.mark.parametrize("words", [["alpha"], ["alpha", "beta"], ["gamma", "beta"]])
def test_the_best_are_those_of_the_index_itself(filled: Store, words: list[str]) -> None:
    sql = "SELECT rowid FROM passages_fts WHERE passages_fts MATCH ? ORDER BY rank LIMIT 200"
    with filled._database.reading() as connection:
        best = field_of(connection, P).best(connection, words, 200)
        wanted = [number for (number,) in connection.execute(sql, (" OR ".join(words),))]
    assert (best, len(best)) == (wanted, 200)
