"""Pages whose structure is made to be slow to read: their text comes in a time that grows with their size."""

from __future__ import annotations

from sandboxmcp.store.readers.page_text import page_text
from tests.measuring import MOST, growth, thread_seconds


def _text(body: str) -> tuple[str, str]:
    return page_text(f"<html><body>{body}</body></html>".encode(), "text/html", "utf-8", "http://example.com/")


def test_numbered_lists_take_twice_as_long_for_twice_as_many_items() -> None:
    def seconds(items: int) -> float:
        return thread_seconds(lambda: _text("<ol>" + "<li>a</li>" * items + "</ol>"))

    seconds(10)  # the readers are imported
    assert growth(seconds, smallest=1_000, largest=4_000) <= MOST


def test_items_keep_their_numbers() -> None:
    text, _ = _text('<ol start="7"><li>a</li><li>b<ol><li>c</li></ol></li></ol><ul><li>d</li></ul><ol><li>e</li></ol>')
    assert [line.strip() for line in text.split("\n") if line.strip()] == ["7. a", "8. b", "1. c", "- d", "1. e"]


def test_a_page_of_very_many_tags_is_its_words() -> None:
    text, mime = _text("<p>a</p>" * 50_001)
    assert mime == "text/plain" and text.count("a") == 50_001
