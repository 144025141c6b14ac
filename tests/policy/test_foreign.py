"""Other languages: what is found in their code, and that no code of any kind makes the analysis fail."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxmcp.policy.analysis.lexemes import LEXED
from sandboxmcp.policy.analysis.other_languages import foreign_facts
from sandboxmcp.policy.engine import Engine, load_engine
from sandboxmcp.policy.facts import HOLE, Call, Embedded, Import
from sandboxmcp.policy.programs.knowledge import Knowledge

LANGUAGES = sorted(LEXED)
ENGINE = load_engine()
MONSTERS = {
    "calls": "f(" * 5_000 + ")" * 5_000,
    "brackets": "[" * 20_000,
    "quotes": "'\"`" * 5_000,
    "templates": "`${" * 2_000 + "x" + "}`" * 2_000,
    "nul": "\0fetch\0('u')\0",
    "surrogates": "\udcff\ud800 x('y')",
    "chain": "a." * 20_000 + "b()",
    "groups": "use a::{" * 2_000,
    "heredocs": "<<A\n" * 10_000,
    "one-text": '"' + "a" * 1_000_000 + '"',
    "too-long": "x = 1\n" * 200_000,
}
FOUND = {
    "alias": (
        "javascript",
        "const { get: g } = require('node:https')\ng('u')",
        Call(2, "module:https.get", ("u",), {}, (), "javascript"),
    ),
    "template": ("javascript", "f(`a ${b} c`)", Call(1, "f", (f"a {HOLE} c",), {}, (), "javascript")),
    "code-in-a-template": ("javascript", "f(`a ${g('u')}`)", Call(1, "g", ("u",), {}, (), "javascript")),
    "command-in-a-template": (
        "javascript",
        "require('child_process').execSync(`curl ${u}`)",
        Call(1, "module:child_process.execSync", (f"curl {HOLE}",), {}, (), "javascript"),
    ),
    "cast": ("typescript", "f('u' as string)", Call(1, "f", ("u",), {}, (), "typescript")),
    "constant": ("javascript", "const u = 'x'; f(u + '/y')", Call(1, "f", ("x/y",), {}, (), "javascript")),
    "list": (
        "go",
        'package main\nimport "os/exec"\nfunc main() { exec.Command("a", "b") }',
        Call(3, "os/exec.Command", ("a", "b"), {}, (), "go"),
    ),
    "builder": (
        "rust",
        'fn main() { Command::new("a").arg("b").args(["c"]); }',
        Call(1, "Command.new", ("a", "b", ("c",)), {}, (), "rust"),
    ),
    "group": ("rust", "use a::{b, c as d};", Import(1, "a.c", "rust")),
    "backticks": ("ruby", "puts `ls -la`", Embedded(1, "shell", "ls -la")),
    "qx": ("perl", "print qx(ls);", Embedded(1, "shell", "ls")),
    "without-brackets": ("ruby", 'system "a", "b"', Call(1, "system", ("a", "b"), {}, (), "ruby")),
    "namespace": ("php", "<?php use A\\B as C; C::d('x');", Call(1, "A.B.d", ("x",), {}, (), "php")),
    "named": ("r", "f(x = 'y')", Call(1, "f", (), {"x": "y"}, (), "r")),
    "atom": ("elixir", ":httpc.request(:get)", Call(1, ":httpc.request", (HOLE,), {}, (), "elixir")),
}


@pytest.mark.parametrize(("language", "code", "fact"), FOUND.values(), ids=FOUND)
def test_a_construct_becomes_the_fact_it_is(language: str, code: str, fact: object) -> None:
    assert fact in foreign_facts(code, language, Knowledge())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", MONSTERS.values(), ids=MONSTERS)
def test_monstrous_code_is_judged(code: str, language: str) -> None:
    verdict = ENGINE.judge(code, language)
    assert [part for part in verdict.unknown if "analysis failed" in part] == []


@settings(max_examples=40)
@given(st.text(max_size=200), st.sampled_from(LANGUAGES))
def test_no_text_makes_an_analysis_fail(code: str, language: str) -> None:
    assert [part for part in ENGINE.judge(code, language).unknown if "analysis failed" in part] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_code_that_is_too_long_is_said_to_be_unknown(language: str, engine: Engine) -> None:
    verdict = engine.judge("x" * 1_100_000, language, "host")
    assert (verdict.action, verdict.unknown) == ("ask", (f"line 1: {language} code of more than 1,048,576 bytes",))


def test_a_method_or_a_word_of_the_codes_own_is_no_client(engine: Engine) -> None:
    code = "class A { fetch(u) { return u } }\nnew A().fetch('u'); function got() {}; got('x'); const http = {}; http.get('x')"
    assert engine.judge(code, "javascript").action == "allow"
