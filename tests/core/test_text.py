"""Captured bytes as harmless text, and the rule that everything depends on: line by line is the same as all at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.text import clean_label, neutral, shown

CASES = {
    "plain": (b"a\tb\n", "a\tb\n"),
    "colour": (b"\x1b[1;31mred\x1b[0m", "red"),
    "hyperlink": (b"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"),
    "title": (b"\x1b]0;title\x07text", "text"),
    "unterminated title": (b"\x1b]0;text", "0;text"),
    "windows line ends": (b"a\r\nb\r\n", "a\nb\n"),
    "progress": (b"Get:  1%\rGet: 50%\rGet: 100%\ndone\n", "Get: 100%\ndone\n"),
    "progress and then a word": (b" 10%\r 20%\rDone\n", "Done\n"),
    "spinner": (b"|\r/\r-\r\\\rdone", "done"),
    "classic Mac lines": (b"one,1\rone,2\rtwo,3\r", "one,1␍one,2␍two,3"),
    "overstruck": (b"N\x08NA\x08AM\x08M _\x08x", "NAM x"),
    "nul": (b"a\0b", "a␀b"),
    "bell and delete": (b"\x07\x7f", "␇␡"),
    "invalid": (b"\xff\xc3\x28", "\ufffd\ufffd("),
    "right to left override": ("a\u202eb".encode(), "a<U+202E>b"),
    "zero width": ("pass\u200bword\ufeff".encode(), "password"),
    "hidden tags": ("x\U000e0041\U000e0042".encode(), "x"),
    "joiner between letters": ("क्\u200dष".encode(), "क्\u200dष"),
    "joiner in ASCII": ("ad\u200dmin".encode(), "admin"),
    "line separator": ("a\u2028b".encode(), "a b"),
    "C1 control": ("a\x85b".encode(), "a\ufffdb"),
}


@pytest.mark.parametrize(("data", "text"), CASES.values(), ids=CASES)
def test_bytes_are_shown_without_harm(data, text):
    assert shown(data) == text


pieces = st.sampled_from(
    [
        b"a",
        b"word ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\x1b",
        b"[1m",
        b"\x1b]0;",
        b"\x07",
        b"\x08",
        b"\0",
        b"\xff",
        b"\xe2\x82",
        b"\x9b",
        b" ",
        b"50%",
    ]
)


@given(st.lists(pieces, max_size=30).map(b"".join))
def test_line_by_line_is_the_same_as_all_at_once(data):
    assert shown(data).split("\n") == [shown(line) for line in data.split(b"\n")]


@given(st.binary(max_size=200))
def test_line_numbers_never_shift(data):
    assert shown(data).count("\n") == data.count(b"\n")


@given(st.text(max_size=200))
def test_no_control_character_is_left(text):
    assert not [c for c in neutral(text) if (c < " " and c not in "\t\n") or "\x7f" <= c < "\xa0" or "\u202a" <= c <= "\u202e"]


def test_a_label_is_one_line_of_at_most_two_hundred_characters():
    assert clean_label(" a\n\tb\0 ") == "a b␀"
    assert clean_label("x" * 201) == "x" * 199 + "…"
    assert clean_label("x" * 200) == "x" * 200
