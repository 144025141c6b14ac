"""Lines of keys and headers in TOML."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.policy.packs.toml_lines import line_of, lines_of

DOCUMENT = '''# a comment
[pack]
name = "x"  # [[rule]]
text = """
[[rule]]
not = "a key"
"""

[[rule]]
id = "a"
unless.writes_file = true
list = [
  "one", # ]
  '[[rule]]',
]
  [[rule.example]]
  code = 'x = "'
  [[rule.example]]
  "quoted key".b = 1
[[rule]]
inline = { a = 1, b = [2] }
  [rule.when]
  quiet = true
end = """a\\""" # """"
'''


def test_every_key_has_the_line_on_which_it_stands() -> None:
    assert {place: line for place, line in lines_of(DOCUMENT).items() if place} == {
        ("pack",): 2,
        ("pack", "name"): 3,
        ("pack", "text"): 4,
        ("rule",): 9,
        ("rule", 0): 9,
        ("rule", 0, "id"): 10,
        ("rule", 0, "unless"): 11,
        ("rule", 0, "unless", "writes_file"): 11,
        ("rule", 0, "list"): 12,
        ("rule", 0, "example"): 16,
        ("rule", 0, "example", 0): 16,
        ("rule", 0, "example", 0, "code"): 17,
        ("rule", 0, "example", 1): 18,
        ("rule", 0, "example", 1, "quoted key"): 19,
        ("rule", 0, "example", 1, "quoted key", "b"): 19,
        ("rule", 1): 20,
        ("rule", 1, "inline"): 21,
        ("rule", 1, "when"): 22,
        ("rule", 1, "when", "quiet"): 23,
        ("rule", 1, "when", "end"): 24,
    }


def test_what_has_no_line_of_its_own_has_that_of_what_holds_it() -> None:
    lines = lines_of(DOCUMENT)
    assert (line_of(("rule", 1, "inline", "a"), lines), line_of(("rule", 0, "verdict"), lines), line_of(("x",), lines)) == (
        21,
        9,
        1,
    )


def test_windows_line_ends_count_once() -> None:
    assert lines_of("[a]\r\nb = 1\r\n\r\nc = 2\r\n")[("a", "c")] == 4


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20), max_size=6))
def test_texts_of_any_kind_do_not_shift_the_lines_behind_them(texts: list[str]) -> None:
    quoted = [text.replace("\\", "").replace('"', "'") for text in texts]
    document = "".join(f'k{at} = """{text}\n[[no]]\n"""\n' for at, text in enumerate(quoted)) + "last = 1\n"
    assert tomllib.loads(document)["last"] == 1
    assert lines_of(document)[("last",)] == 3 * len(texts) + 1
