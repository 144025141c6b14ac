"""Ordering by meaning: a passage that says it in other words comes before one that only shares a word."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.store.store import Store
from sandboxmcp.tools.knowledge import search

P = Scope("p")
TEXT = """# Notes

A river is in a song of the band.

# More

The river rose after rain and destroyed many houses.
"""
installed = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="the extra [semantic] is not installed")


def _first(folder: Path, query: str, semantic: bool) -> str:
    with Store(folder, semantic=semantic) as store:
        store.add(NewSource("x", "text", "p", "s"), TEXT)
        return store.search(query, P)[0].text


@installed
def test_what_means_the_same_comes_before_what_shares_a_word(tmp_path: Path) -> None:
    query = "river flood damage"
    assert "houses" in _first(tmp_path / "with", query, True)
    assert "houses" not in _first(tmp_path / "without", query, False)


@installed
def test_no_hit_is_lost_or_made_by_it(tmp_path: Path) -> None:
    with Store(tmp_path, semantic=True) as one, Store(tmp_path) as other:
        one.add(NewSource("x", "text", "p", "s"), "".join(f"# Part {n}\n\nzebra word{n} of many\n\n" for n in range(120)))
        found = [sorted(hit.citation for hit in store.search("zebra many", P)) for store in (one, other)]
        scores = [hit.score for hit in one.search("zebra many", P)]
    assert (found[0] == found[1], len(found[0]) > 1, all(score > 0 for score in scores)) == (True, True, True)


def test_without_the_extra_the_search_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    flags = {"data_dir": str(tmp_path / "data"), "workspace": str(tmp_path), "search.semantic": "true"}
    session = Session(load_settings(flags, environ={}, project=tmp_path))
    session.store.add(NewSource("x", "text", session.project, "s"), TEXT)
    with pytest.raises(UsageError, match=r"pip install 'sandboxmcp\[semantic\]', or unset search\.semantic"):
        search(session, ["river"], budget_tokens=500)
    session.store.close()
