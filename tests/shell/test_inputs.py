"""Kinds of input, and where one ends: tables."""

from __future__ import annotations

import pytest

from sandboxmcp.shell.inputs import Input, Splitter, parse, unfinished, wants_more


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("  ", Input("nothing")),
        (":search a b", Input("command", "search a b")),
        ("!ls -la", Input("shell", "ls -la")),
        ("os.path?", Input("inspect", "os.path")),
        ("f??", Input("inspect", "f", 1)),
        ("?f", Input("inspect", "f")),
        ("exit()", Input("leave")),
        ("x = 1\n", Input("code", "x = 1")),
        ("  indented", Input("code", "  indented")),
        ("'really?'", Input("code", "'really?'")),
        (": no command", Input("code", ": no command")),
    ],
    ids=lambda value: str(value)[:24],
)
def test_the_kind_of_an_input_is_seen_from_its_text(typed: str, expected: Input) -> None:
    assert parse(typed) == expected


@pytest.mark.parametrize(
    ("code", "language", "expected"),
    [
        ("x = (1,", "python", True),
        ("x = 1", "python", False),
        ("'''a", "python", True),
        ("if x:", "python", True),
        ("%time x", "python", False),
        ("x = 'a", "python", False),
        ("\0", "python", False),
        ("(" * 500, "python", False),
        ("%%time", "python", True),
        ("for i in 1 2; do", "shell", True),
        ("cat << EOF", "shell", True),
        ("cat << EOF\nEOF", "shell", False),
        ("echo '('", "shell", False),
        ("echo a \\", "shell", True),
        ("f(function () {", "javascript", True),
    ],
)
def test_unfinished_code_is_told_from_finished(code: str, language: str, expected: bool) -> None:
    assert unfinished(code, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", False),
        ("def f():", True),
        ("def f():\n    return 1", True),
        ("def f():\n    return 1\n", False),
        ("for i in x: print(i)", False),
        ("x = [\n  1]", False),
        (":help", False),
        ("!echo", False),
        ("!for i in 1; do", True),
        ("f?", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, expected: bool) -> None:
    assert wants_more(text, "python") == expected


def split(lines: str, language: str = "python", *, blank_ends: bool = False) -> list[str]:
    splitter = Splitter(blank_ends=blank_ends)
    found = [one for line in lines.split("\n") for one in splitter.feed(line, language)]
    return [*found, *([splitter.rest()] if splitter.waiting else [])]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("a = 1\nb = 2", ["a = 1", "b = 2"]),
        ("if a:\n  b\nelse:\n  c\nd", ["if a:\n  b\nelse:\n  c", "d"]),
        ("def f():\n  a\n\n  b\n# c\n  d\ne", ["def f():\n  a\n\n  b\n# c\n  d", "e"]),
        ("@d\ndef f():\n  a\n:help", ["@d\ndef f():\n  a", ":help"]),
        ("x = '''\n:help\n!ls\n'''\ny", ["x = '''\n:help\n!ls\n'''", "y"]),
        ("x = (\n1,\n)\ny", ["x = (\n1,\n)", "y"]),
        ("!ls\n\n:more", ["!ls", ":more"]),
        ("with a:\n  (b,\n)\n  c\nd", ["with a:\n  (b,\n)\n  c", "d"]),
        ("try:\n  a\nexcept E:\n  b\nfinally:\n  c", ["try:\n  a\nexcept E:\n  b\nfinally:\n  c"]),
        ("x = (1", ["x = (1"]),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_stream_of_lines_is_cut_into_statements(lines: str, expected: list[str]) -> None:
    assert split(lines) == expected


def test_an_empty_line_ends_a_block_that_is_typed() -> None:
    assert split("def f():\n  a\n\nb", blank_ends=True) == ["def f():\n  a\n", "b"]


def test_languages_without_state_take_what_stands_between_empty_lines() -> None:
    assert split("cd /tmp\nls\n\n:lang python\npwd", "shell") == ["cd /tmp\nls", ":lang python", "pwd"]
