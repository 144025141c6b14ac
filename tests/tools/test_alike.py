"""Passages that say the same are told once."""

from __future__ import annotations

from typing import Any

from sandboxmcp.core.model import Hit
from sandboxmcp.render.items import Others
from sandboxmcp.tools.alike import told_once, without_blank_edges

DIGESTS = {"h1": "same", "h2": "same", "h3": "other"}


def hit(handle: str, first: int, text: str, **more: Any) -> Hit:
    return Hit(handle, handle, first, first + text.count("\n"), text, 1.0, **more)


def test_the_same_lines_of_equal_contents_are_copies() -> None:
    hits, others = told_once([hit("h1", 7, "zebra"), hit("h2", 7, "zebra")], DIGESTS)
    assert ([one.citation for one in hits], others) == (["h1:7-7"], {("h1", 7): Others(copies=1)})


def test_an_equal_text_elsewhere_is_told_by_its_citation() -> None:
    hits, others = told_once([hit("h1", 7, "zebra"), hit("h3", 7, "zebra"), hit("h1", 9, "zebra")], DIGESTS)
    assert ([one.citation for one in hits], others) == (["h1:7-7"], {("h1", 7): Others(citations=("h3:7-7", "h1:9-9"))})


def test_a_part_of_what_a_copy_shows_is_that_copy_and_equals_of_copies_are_told_once() -> None:
    given = [hit("h1", 5, "a\nb\nc"), hit("h2", 6, "b\nc"), hit("h1", 9, "x"), hit("h1", 20, "x"), hit("h2", 20, "x")]
    hits, others = told_once(given, DIGESTS)
    assert [one.citation for one in hits] == ["h1:5-7", "h1:9-9"]
    assert others == {("h1", 5): Others(copies=1), ("h1", 9): Others(citations=("h1:20-20",))}


def test_different_texts_stay_in_their_order() -> None:
    given = [hit("h1", 1, "b"), hit("h1", 2, "a"), hit("h1", 3, "a", partial=True)]
    assert told_once(given, DIGESTS) == (given, {})


def test_blank_lines_at_the_edges_are_left_out_and_the_citation_moves() -> None:
    bare = without_blank_edges(hit("h1", 10, "\n  \nzebra\n\nokapi\n"))
    assert (bare.citation, bare.text) == ("h1:12-14", "zebra\n\nokapi")
