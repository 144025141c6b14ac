"""Chunks and passages: every line exactly once, caps on every path, structure where there is some."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.store.chunking.forms import chunked
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.chunking.markup import SPELLING
from sandboxmcp.store.chunking.parts import CHUNK_BYTES, PASSAGE_BYTES, PASSAGE_LINES, PASSAGE_PARTS, passages_of
from sandboxmcp.store.lines import LINE_BYTES, numbered_lines

MARKDOWN = """# Guide

intro

## Install

```sh
# not a heading
pip install x

make
```

Setext
------
body

# Other
end
"""

plain = ["", "word", "a few words in a row", "    code", "x" * 700, "long " * 400, "é" * 500, "日本語" * 300]
markdown = ["# One", "## Two", "```", "~~~", "===", "---"]
markup = ["<p>text</p>", "<h2>Head</h2>", "<!--", "-->", "<script>", "</script>"]
history = ["commit 1234567", "    a subject", "diff --git a/x b/x", "--- x", "+++ x", "@@ -1 +1 @@ f()"]
output = [
    "==== FAILURES ====",
    "____ test ____",
    "--- FAIL: T",
    "Traceback (most recent call last):",
    '  File "x"',
    "E: y",
    "\tat a.B(C)",
]
manual = ["NAME", "       -a, --all", "              every one", "       -b     text", "A  B  C", "1  x  y"]
nodes = ['- heading "T" [level=1]', "- list:", '  - link "x"', "[", "  {", '    "name": "n",', "  }", '  "k": {', "]"]
code = ["def f(x):", "class A:", "    return 1", "# why", "func G() {", "}", "import os", "package main"]
reports = ['<testsuite name="s">', '<testcase name="t">', "</testcase>", '<testcase name="u"/>', "<a/>" * 100]
elements = [
    "<a>",
    '<b name="x">',
    "</a>",
    "</b>",
    "<c",
    '  id="y"',
    "/>",
    "<!-- <a>",
    "-->",
    "<![CDATA[ <b> ]]>",
    "<key>k</key>",
    "x < y",
]
records = ["Name: x", "Size : 7", "Name: y", "---"]
json_lines = ['{"a": 1}', '{"key": "' + "v" * 900 + '"}']
fragments = st.sampled_from(
    plain + markdown + markup + history + output + manual + nodes + code + reports + elements + records + json_lines
)
texts = st.lists(fragments, max_size=60).map("\n".join)
forms = st.sampled_from(get_args(Form))
as_they_stand = st.sampled_from([form for form in get_args(Form) if form not in SPELLING])


def _chunks(text: str, form: Form):
    return list(chunked(numbered_lines([text.encode()], 1, SPELLING.get(form)), form))


@given(texts, forms)
def test_every_line_is_in_the_chunks_exactly_once_and_in_order(text, form):
    whole = [line.number for chunk in _chunks(text, form) for line in chunk.lines if line.whole]
    numbers = [line.number for chunk in _chunks(text, form) for line in chunk.lines]
    assert numbers == sorted(numbers)
    assert len(whole) == len(set(whole))
    assert sorted(set(numbers)) == list(range(1, 1 + text.count("\n") + (text != "" and not text.endswith("\n"))))


@given(texts, st.sampled_from(get_args(Form)))
def test_the_parts_of_a_line_join_to_the_line(text, form):
    joined: dict[int, str] = {}
    for chunk in chunked(numbered_lines([text.encode()]), form):
        for line in chunk.lines:
            joined[line.number] = joined.get(line.number, "") + line.text
    assert joined == dict(enumerate(text.split("\n")[: -1 if text.endswith("\n") or not text else None], 1))


@given(texts, forms)
def test_no_chunk_and_no_passage_is_larger_than_its_cap(text, form):
    for chunk in _chunks(text, form):
        assert sum(len(line.text.encode()) + 1 for line in chunk.lines) <= CHUNK_BYTES
        for passage in passages_of(chunk):
            assert len(passage.text.encode()) <= max(PASSAGE_BYTES, LINE_BYTES)
            assert passage.text.count("\n") < (PASSAGE_PARTS if passage.partial else PASSAGE_LINES)


@given(texts, forms)
def test_passages_hold_every_line_with_text_exactly_once(text, form):
    for chunk in _chunks(text, form):
        held = [line for passage in passages_of(chunk) for line in passage.text.split("\n") if line.strip()]
        assert held == [line.text for line in chunk.lines if line.text.strip()]


@given(texts, as_they_stand)
def test_the_line_range_of_a_passage_is_exact(text, form):
    lines = text.split("\n")
    for chunk in _chunks(text, form):
        for passage in passages_of(chunk):
            cited = "\n".join(lines[passage.first - 1 : passage.last])
            assert passage.text in cited if passage.partial else passage.text == cited


@pytest.mark.parametrize(
    "text",
    ["x" * 1_000_000, "word " * 200_000, "a line of a log without blank lines\n" * 30_000, "日" * 400_000],
    ids=["one line", "one paragraph", "log", "no blanks, three bytes a letter"],
)
def test_a_megabyte_of_anything_is_cut(text):
    sizes = [sum(line.size + 1 for line in chunk.lines) for chunk in _chunks(text, "lines")]
    assert max(sizes) <= CHUNK_BYTES
    assert min(sizes[:-1]) > CHUNK_BYTES // 4


def test_markdown_follows_its_headings():
    assert [(c.title, c.lines[0].number, c.lines[-1].number) for c in _chunks(MARKDOWN, "markdown")] == [
        ("Guide", 1, 4),
        ("Guide › Install", 5, 13),
        ("Guide › Setext", 14, 17),
        ("Other", 18, 19),
    ]


def test_a_fence_that_fits_stays_whole():
    fence = ["```", *(f"statement number {n}, of some length" for n in range(60)), "```"]
    text = "\n".join(["# T", *("filler line of text" for _ in range(120)), *fence])
    holding = [chunk for chunk in _chunks(text, "markdown") if any(line.text == "```" for line in chunk.lines)]
    assert [line.text for line in holding[0].lines][: len(fence)] == fence


def test_chunks_prefer_to_end_at_blank_lines():
    text = "\n\n".join("\n".join(f"paragraph {n} line {m} with some words" for m in range(12)) for n in range(20))
    assert all(not chunk.lines[-1].text for chunk in _chunks(text, "lines")[:-1])


def test_html_headings_are_titles_and_lines_stay_those_of_the_source():
    text = "<html><h1>Top</h1>\n<p>first</p>\n<h2>Sub &amp; more</h2>\n<td>a</td><td>b</td>\n"
    chunks = _chunks(text, "html")
    assert [(c.title, [(line.number, line.text) for line in c.lines]) for c in chunks] == [
        ("Top", [(1, "Top"), (2, "first")]),
        ("Top › Sub & more", [(3, "Sub & more"), (4, "a\tb\t")]),
    ]


def test_json_on_one_line_is_spelt_a_key_a_part():
    text = '{"name": "x", "items": [' + ", ".join(f'{{"id": {n}, "title": "item {n}"}}' for n in range(40)) + "]}"
    (first, *_) = passages_of(_chunks(text, "json")[0])
    assert (first.first, first.last, first.partial) == (1, 1, True)
    assert first.text.split("\n")[:2] == ["{", ' "name": "x",']
