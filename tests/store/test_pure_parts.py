"""Words, stems, ranking, snippets, kinds and repairs: what only thinks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.model import Hit
from sandboxmcp.core.words import Kept, Pieces, folded, pieces_of, words_in, words_of_each
from sandboxmcp.store.chunking.kinds import recognise_form, recognise_kind
from sandboxmcp.store.search.rank import Candidate, Term, ranked
from sandboxmcp.store.search.snippets import neighbours_joined, repeats_last, template_of, window
from sandboxmcp.store.search.stems import Stemmer
from sandboxmcp.store.search.vocabulary import edit_distance

SAMPLES = {
    "prose": "The store keeps what was captured. Every line can be read back later.\nA second sentence follows the first.\n",
    "markdown": "# Title\n\nSome words about it.\n",
    "html": "<!doctype html><html><body><p>Hello</p></body></html>",
    "python": "import os\n\ndef main():\n    for x in range(3):\n        print(x)\n    return 1\n",
    "c": '#include <stdio.h>\nint main(void) {\n  printf("x");\n  return 0;\n}\n',
    "log": "2024-05-01 10:00:00 INFO started\n2024-05-01 10:00:01 ERROR failed\n",
    "syslog": "Jun  1 10:00:00 host sshd[1]: Accepted\nJun  1 10:00:01 host sshd[1]: Closed\n",
    "json": '{"a": 1,\n "b": [1, 2]}\n',
    "json lines": '{"a": 1}\n{"a": 2}\n',
    "csv": "id,name,size,when\n1,a,2,x\n2,b,3,y\n3,c,4,z\n",
    "listing": "total 8\ndrwxr-xr-x 2 root root 4096 x\n-rw-r--r-- 1 root root 12 y\n",
    "script": "#!/bin/sh\n# a comment\nif [ -f x ]; then\n  return 1;\nfi\n",
}
KINDS = {
    "prose": ("prose", "lines"),
    "markdown": ("prose", "markdown"),
    "html": ("prose", "html"),
    "python": ("code", "code"),
    "c": ("code", "code"),
    "log": ("log", "lines"),
    "syslog": ("log", "lines"),
    "json": ("data", "json"),
    "json lines": ("data", "json"),
    "csv": ("data", "rows"),
    "listing": ("log", "lines"),
    "script": ("code", "code"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_text_is_recognised_by_its_content(name):
    kind = recognise_kind(SAMPLES[name])
    assert (kind, recognise_form(SAMPLES[name], kind)) == KINDS[name]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('import re\n\nHTML = re.compile("<!doctype html|<html>")\n\ndef main():\n    return "<testsuite"\n', "code"),
        ('"""A page:\n\n<html><body>\n"""\n\ndef page():\n    return "<p>"\n', "code"),
        ("<!-- made -->\n<HTML>\n<p>Hello</p>", "html"),
        ('<?xml version="1.0"?><!DOCTYPE html><html><p>Hello</p></html>', "html"),
        ("HTTP/1.1 200 OK\nContent-Type: text/html\n\n<!doctype html>\n<p>Hello</p>", "html"),
    ],
)
def test_what_speaks_of_html_is_none(text: str, form: str) -> None:
    assert recognise_form(text, recognise_kind(text, "x.py")) == form


def test_the_name_of_a_file_of_code_counts_where_its_lines_are_sentences() -> None:
    text = '"""What the store says of a text that was found."""\n\nA = 1\n# It is said once, and never again after that.\n'
    assert [recognise_kind(text, name) for name in ("", "a/b.PY", "a.txt", "py")] == ["prose", "code", "prose", "prose"]
    assert recognise_kind(SAMPLES["json"], "a.py") == "data"


@given(st.text(max_size=300))
def test_any_text_has_a_kind(text):
    assert recognise_kind(text) in ("code", "prose", "log", "data")


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("getUserName", ("get", "User", "Name")),
        ("HTTPServerError", ("HTTP", "Server", "Error")),
        ("utf8Decoder", ("utf", "Decoder")),
        ("plain", ()),
        ("Plain", ()),
        ("LOUD", ()),
        ("12345", ()),
        ("7f3a9b2c", ()),
        ("ab12cdef34ad56be", ()),
        ("数据库", ("数据", "据库")),
        ("数据", ()),
    ],
)
def test_identifiers_have_pieces_and_plain_words_have_none(word, pieces):
    assert pieces_of(word) == pieces


@pytest.mark.parametrize("texts", [[], ["a b"], ["one, two_three", "", " x-y "], ["ascii only", "größer als"]], ids=repr)
def test_the_words_of_many_texts_are_those_of_each(texts):
    assert words_of_each(texts) == [words_in(text) for text in texts]


def test_what_stands_beside_a_text_are_pieces_and_whole_snake_case_names():
    text = "call getUserName and get_user_name"
    assert Pieces().beside(text, words_in(text)) == "get User Name getusername"


def test_only_words_a_person_types_enter_the_vocabulary():
    words = ["ab", "Café", "12345", "deadbeef01", "deadbeef", "x" * 41, "utf8"]
    assert [Kept()[word] for word in words] == ["", "cafe", "", "", "deadbeef", "", "utf8"]


def test_folding_agrees_with_the_tokenizer_of_the_index():
    letters = [chr(code) for code in range(0xC0, 0x1B0) if chr(code).isalpha() and chr(code) != "ſ"]
    stems = Stemmer()([f"q{letter}q" for letter in letters])
    assert [stems[f"q{letter}q"] for letter in letters] == [folded(f"q{letter}q") for letter in letters]


WORDS = (
    "happy happily hopping hoping caching cached caches agreed relational sensibility flies dies cries analogies university".split()
)


@pytest.mark.parametrize("word", WORDS)
def test_ranking_finds_every_word_that_the_index_stems_alike(word):
    stems = Stemmer()
    (one,) = ranked([Candidate(1, "", f"see {word} here", "", 3)], [Term(stems([word])[word], 1.0, 1)], 1, 3.0, stems)
    assert one.score > 0


def _best(bodies: list[tuple[str, str]], *terms: str) -> list[int]:
    stems = Stemmer()
    candidates = [
        Candidate(n, title, body, "", len(words_in(title)) * 2 + len(words_in(body))) for n, (title, body) in enumerate(bodies)
    ]
    holding = {t: sum(t in body for _, body in bodies) for t in terms}
    found = ranked(candidates, [Term(stems([t])[t], 1.0, holding[t]) for t in terms], len(bodies), 5.0, stems)
    return [one.candidate.id for one in found]


def test_a_rare_word_outweighs_a_common_one():
    assert _best([("", "common x"), ("", "rare x"), ("", "common y"), ("", "common z")], "common", "rare")[0] == 1


def test_a_title_counts_more_than_the_body():
    assert _best([("", "apple one two"), ("apple", "three four five apple")], "apple") == [1, 0]


def test_words_near_each_other_beat_the_same_words_apart():
    assert _best([("", "alpha one two three four beta"), ("", "one two alpha beta three four")], "alpha", "beta") == [1, 0]


def test_the_line_that_says_most_is_named():
    stems = Stemmer()
    (one,) = ranked(
        [Candidate(1, "", "alpha\nalpha beta\nbeta", "", 4)], [Term("alpha", 1.0, 1), Term("beta", 1.0, 1)], 9, 4.0, stems
    )
    assert one.best_line == 1


@pytest.mark.parametrize(
    ("body", "pieces", "stem"),
    [
        ("x = 1\nself.invoiceTotals = x\nreturn x", "invoice Totals", "invoic"),
        ("x = 1\nget_user_name(x)\nreturn x", "getusername", "getusernam"),
        ("数据库连接\n斑马爆炸了\n日志服务器", "斑马 马爆 爆炸 炸了", "马爆"),
    ],
)
def test_the_line_that_holds_a_word_as_a_part_is_named(body: str, pieces: str, stem: str) -> None:
    (one,) = ranked([Candidate(1, "", body, pieces, 9)], [Term(stem, 1.0, 1)], 3, 9.0, Stemmer())
    assert one.best_line == 1


def test_templates_forget_numbers_hashes_and_punctuation():
    one, other = "[12:00:01] Worker-3: got 0xff from 10.0.0.1!", "[13:59:59] worker-77: got 0x1 from 192.168.7.255!"
    assert template_of(one) == template_of(other) == "0 0 0 worker 0 got 0 from 0 0 0 0"


def test_repeats_come_last_in_their_own_order():
    assert repeats_last(["a 1", "b", "a 2", "c", "b"], str) == ["a 1", "b", "c", "a 2", "b"]


def _hit(first: int, last: int, handle: str = "h", partial: bool = False) -> Hit:
    return Hit(handle, "x", first, last, "\n".join(f"line {n}" for n in range(first, last + 1)), 1.0, partial=partial)


def test_neighbours_in_rank_and_place_are_joined():
    joined = neighbours_joined([_hit(5, 8), _hit(1, 4), _hit(9, 9)])
    assert joined == [_hit(1, 9)]


@pytest.mark.parametrize("other", [_hit(10, 11), _hit(9, 9, handle="o"), _hit(9, 9, partial=True), _hit(7, 9)])
def test_others_stay_apart(other):
    assert neighbours_joined([_hit(5, 8), other]) == [_hit(5, 8), other]


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("same", "same", 0),
        ("kuberntes", "kubernetes", 1),
        ("teh", "the", 1),
        ("abc", "abd", 1),
        ("ab", "ba", 1),
        ("abcd", "dcba", 3),
        ("a", "abcd", 3),
    ],
)
def test_edits_are_counted_up_to_a_bound(one, other, distance):
    assert edit_distance(one, other, 2) == distance


@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_the_distance_is_the_same_both_ways(one, other):
    assert edit_distance(one, other, 2) == edit_distance(other, one, 2)


@pytest.mark.parametrize(
    ("first", "last", "title", "shown"),
    [
        (2, 2, "", (2, "the third line, of the same length as others", 1)),
        (
            1,
            1,
            "Guide › the first line",
            (0, "the first line, of the same length as others\nthe second line, of the same length", 2),
        ),
    ],
    ids=["the lines that say something", "from the line that names the section"],
)
def test_a_window_holds_what_is_asked_for(first, last, title, shown):
    lines = "the first line, of the same length as others\nthe second line, of the same length\n"
    text = lines + "the third line, of the same length as others\nthe fourth line, of the same length"
    assert window(text, first, last, title) == shown


def test_a_small_text_is_shown_whole():
    assert window("one\ntwo\nthree", 1, 1) == (0, "one\ntwo\nthree", 0)


def test_of_lines_alike_only_one_is_told():
    body = "10:01 disk is full\n10:02 disk is full\n10:03 all is well\n10:04 disk is full"
    (one,) = ranked([Candidate(1, "", body, "", 20)], [Term("disk", 1.0, 1)], 9, 20.0, Stemmer())
    assert one.telling == (0, 0)


def test_many_words_in_place_of_one_do_not_outweigh_an_answer_to_all():
    stems = Stemmer()
    terms = [Term("stop", 1.0, 1), Term("halt", 0.4, 1, "stop"), Term("quit", 0.4, 1, "stop"), Term("daemon", 1.0, 1)]
    bodies = ["halt quit halt quit", "stop daemon one two"]
    candidates = [Candidate(n, "", body, "", 4) for n, body in enumerate(bodies)]
    assert [one.candidate.id for one in ranked(candidates, terms, 9, 4.0, stems)] == [1, 0]


def test_a_source_about_the_question_comes_before_one_that_mentions_a_part_of_it_as_often():
    stems = Stemmer()
    parts = [(1, "alpha one two three"), (2, "alpha one two three"), (2, "beta one two three"), (3, "one two three four")]
    candidates = [Candidate(n, "", body, "", 4, source, 8) for n, (source, body) in enumerate(parts)]
    found = ranked(candidates, [Term("alpha", 1.0, 2), Term("beta", 0.5, 1)], 9, 4.0, stems)
    assert [one.candidate.source for one in found] == [2, 2, 1, 3]


def test_a_line_of_a_long_log_comes_before_those_of_a_page_that_says_one_of_its_words_often():
    page = [Candidate(n, "", "the disk spins here for long", "", 6, 1, 5_000) for n in range(1, 20)]
    log = Candidate(0, "", "12:00 INFO all is well\n12:01 ERROR disk quota exceeded\n12:02 INFO all is well", "", 40, 2, 90_000)
    notes = [Candidate(n, "", "one note of many", "", 4, n, 4) for n in range(20, 30)]
    found = ranked([*page, *notes, log], [Term("disk", 1.0, 20), Term("quota", 1.0, 12)], 90, 10.0, Stemmer())
    assert found[0].candidate.id == 0


def test_what_only_its_heading_found_comes_after_what_answers_itself():
    assert _best([("apple", "one two three four"), ("", "one two apple three apple")], "apple") == [1, 0]
