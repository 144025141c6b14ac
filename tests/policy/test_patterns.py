"""Which regular expressions a pack may hold, and how they are searched."""

import pytest

from sandboxmcp.policy.facts import HOLE
from sandboxmcp.policy.patterns import pattern_problem, search


@pytest.mark.parametrize(
    "pattern", ["^a+$", "(ab)+", "a{1,3}(b{2}){4}", "^(https?|ftp)://", "(?:x(?=y))*", "[^/]*/[^/]*/.*", "(a?b?)?"]
)
def test_a_usual_pattern_is_accepted(pattern: str) -> None:
    assert pattern_problem(pattern) == ""


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a*)*b", "(a|a)*", "(?:(x+)y?)*", "(a+){2,50}", "((?=a+)b)*", "a*a*a*a*", "(a|b+?)*?"]
)
def test_a_pattern_that_may_take_very_long_is_refused(pattern: str) -> None:
    assert pattern_problem(pattern).startswith("may take very long")


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?P<a>", "a{999999999999}", 7, "(" * 5_000 + ")" * 5_000])
def test_what_is_no_pattern_is_refused(pattern: object) -> None:
    assert "regular expression" in pattern_problem(pattern)


def test_a_search_knows_what_it_cannot_know() -> None:
    texts = ["@file", "file", HOLE, f"x{HOLE}@", "x" * 5_000]
    assert [search("^@", text) for text in texts] == [True, False, None, None, None]
