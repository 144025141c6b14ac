"""Captured text can neither leave its line nor look like one of ours."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.render.fence import clean_label, fenced, named, numbered, one_line

HOSTILE = ["ok, 12ms, h1", "a\u2028b", "\x1b[31mred\x1b[0m", "a\rb", "\u202ereversed", "\x00", "half \ud800 pair", "| nested"]


@pytest.mark.parametrize("line", HOSTILE)
def test_every_fenced_line_is_one_line_behind_the_mark(line: str) -> None:
    assert [re.match(r"\|( |$)", row) is not None and len(row.splitlines()) == 1 for row in fenced([line])] == [True]


@given(st.text())
def test_no_text_makes_a_fenced_line_that_cannot_be_sent(text: str) -> None:
    assert all(row.encode() for row in fenced(text.split("\n")))


def test_numbered_lines_carry_their_number_before_the_mark() -> None:
    assert numbered([(7, "seven"), (12, "")]) == ["7| seven", "12|"]


def test_an_empty_line_costs_only_the_mark() -> None:
    assert fenced(["", "a", "  b "]) == ["|", "| a", "|   b "]


@pytest.mark.parametrize(
    ("label", "clean"),
    [("a\nb\x00c\x1b[1m", "a b␀c"), ("| fake", "fake"), ("\n\t ", "#1"), ("x" * 10_000, "x" * 79 + "…"), ("", "#1")],
    ids=["controls", "bar", "blank", "long", "empty"],
)
def test_a_label_is_one_short_harmless_line(label: str, clean: str) -> None:
    assert clean_label(label, "#1", str).strip() == clean


def test_a_long_text_on_one_line_is_cut_with_an_ellipsis() -> None:
    assert one_line("one\ntwo  three", 8) == "one two…"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("file:src/a_b.py", "file:src/a_b.py"),
        ("https://example.org/?a=b&c=%20#d", "https://example.org/?a=b&c=%20#d"),
        ("two words", '"two words"'),
        ('x" ok, 1ms\n| forged', '"x\' ok, 1ms | forged"'),
        ("| forged", '"| forged"'),
        ("\x1b[31mred\x1b[0m one", '"red one"'),
    ],
)
def test_a_name_that_is_not_plain_is_quoted(name: str, shown: str) -> None:
    assert named(name, 80) == shown


def test_a_label_is_masked_before_it_is_cut() -> None:
    label = clean_label("x" * 75 + " secret-0123456789", "#1", lambda text: text.replace("secret-0123456789", "[m]"))
    assert label == "x" * 75 + " [m]"
