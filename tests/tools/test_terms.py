"""Terms to search next: new words only, no numbered ones."""

from __future__ import annotations

from sandboxmcp.render.extract import worth_searching


def test_numbered_words_and_words_of_the_queries_are_dropped() -> None:
    terms = ["row12", "packages", "kernel", "a1b2c3", "Café", "timeout", "time"]
    assert worth_searching(terms, ["which package", "cafe time"]) == ["kernel", "timeout"]
