"""What awk, sed and make run is found in their own small languages, and what only looks like it is not."""

import pytest

from sandboxmcp.policy.analysis.text_tools import TOOLS
from sandboxmcp.policy.facts import Embedded, Unknown

RUNS = {
    "awk system": ("awk", 'BEGIN { system("curl u"); }', ["curl u"]),
    "awk reads a pipe": ("awk", '{ "date" | getline d; print d | "sort -n" }', ["date", "sort -n"]),
    "awk escapes": ("awk", '{ system("echo \\"a\\"") }', ['echo "a"']),
    "awk prints": ("awk", '{ print "system(\\"x\\")"; print $1 "|" $2 } # system("no")', []),
    "sed e": ("sed", "1e curl u", ["curl u"]),
    "sed e behind an address": ("sed", "/a b/,$ { s/x/y/g; e ls -l\n}", ["ls -l"]),
    "sed flag e": ("sed", "s/.*/curl u/e", ["curl u", "?"]),
    "sed pattern space": ("sed", "2e", ["?"]),
    "sed texts": ("sed", "s#/e curl#e#g; y/e/f/; a e curl u\n$!d; /e x/p", []),
    "make recipes": ("make", "all: a\n\t@curl $(URL)\n\n.PHONY: all\nx := e; y", ["curl ${__unknown__}"]),
    "make on one line": ("make", "all: ; curl $$u", ["curl $u"]),
    "make's shell": ("make", "V := $(shell git log $(shell date))", ["git log $(date)", "date"]),
}


@pytest.mark.parametrize(("language", "code", "wanted"), RUNS.values(), ids=RUNS)
def test_what_they_run_is_found(language: str, code: str, wanted: list[str]) -> None:
    facts = TOOLS[language](code)
    assert [fact.code if isinstance(fact, Embedded) else "?" for fact in facts] == wanted
    assert all(isinstance(fact, Embedded | Unknown) for fact in facts)


@pytest.mark.parametrize("language", TOOLS)
@pytest.mark.parametrize(
    "code", ["", "\\", "s", "s/", "s/a", "s/a/b", "/", "{" * 5_000, "$(shell " * 2_000, '"' * 9_999, "e\n" * 3_000]
)
def test_odd_code_is_read_to_its_end(language: str, code: str) -> None:
    assert isinstance(TOOLS[language](code), tuple)
