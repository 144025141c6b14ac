"""What a query says letter for letter is found letter for letter, whatever the index makes of its marks."""

from __future__ import annotations

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.search.literals import Literal, literals
from sandboxmcp.store.store import Store

LINES = {
    "cpp": "templates in C++ are expanded by the compiler",
    "c": "C is a language, c c c, and a compiler for C",
    "arrow": "ptr->next is the one that follows",
    "dash": "call foo-bar with a name",
    "no dash": "foo and bar are other names; foo foo bar bar",
    "call": "then a.b.c() returns nothing",
    "no call": "points a, b and c: c b a b c",
    "unequal": "if x != y then stop",
    "equal": "x y x y: if x equals y then stop",
    "oracle": "ORA-00942: table or view does not exist",
    "other": "ORA and 00942 are apart here: 00942 ORA",
    "hresult": "failed with 0x80070005 at the end",
    "rust": "error[E0308]: mismatched types",
    "quoted": "there is no space left on the device",
    "unquoted": "space left: no; left space, no space, space left left",
    "flag": "give --no-color to be plain",
    "thai": "ระบบไม่สามารถเชื่อมต่อฐานข้อมูลได้",
    "code": "\n".join(f"12:00:{n} INFO request {n} took {n} ms" for n in range(10, 14))
    + "\n12:01:07 ERROR code=E_PG_TIMEOUT retry=3",
    "code apart": "q.put(item, timeout=5)\n\ne pg",
    "operators": "NEAR the end AND before it OR not",
}
QUERIES = [
    ("C++", "cpp"),
    ("->", "arrow"),
    ("ptr->next", "arrow"),
    ("foo-bar", "dash"),
    ("a.b.c()", "call"),
    ("x != y", "unequal"),
    ("ORA-00942", "oracle"),
    ("E_PG_TIMEOUT", "code"),
    ("PG_TIMEOUT", "code"),
    ("0x80070005", "hresult"),
    ("E0308", "rust"),
    ('"no space left"', "quoted"),
    ("what does --no-color do?", "flag"),
    ("ฐานข้อมูล", "thai"),
    ('NEAR("end" AND', "operators"),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("literals")) as store:
        for label, line in LINES.items():
            store.add(NewSource(label, "text", "p", "s"), line)
        store.add(NewSource("filler", "text", "p", "s"), "\n\n".join(f"C {n} is a part of b and of a." for n in range(300)))
        yield store


@pytest.mark.parametrize(("query", "label"), QUERIES, ids=[query for query, _ in QUERIES])
def test_what_is_typed_is_found_first(store, query, label):
    assert [hit.label for hit in store.search(query, Scope("p"))][:1] == [label]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("C++ templates", (Literal("c++"),)),
        ("is it broken (again)?", ()),
        ("what does get_user _do_ return?", (Literal("get_user"),)),
        ("use Foo(bar), please.", (Literal("foo(bar)"),)),
        ("a git-like thing", (Literal("git-like", sure=False),)),
        ("x != y", (Literal("x != y"), Literal("!="))),
        ('say "No Way" twice', (Literal("no way"),)),
        ("don't; why?!", ()),
    ],
)
def test_literals_are_more_than_words(query, found):
    assert literals(query) == found


def test_a_long_query_is_answered(store):
    assert store.search(" ".join(f"word{n}->x{n}" for n in range(1_000)) + " compiler", Scope("p")) != []
