"""What is said of a language that nothing runs here, or that is half installed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sandboxmcp.render.reasons import said

SUFFIX = "-of-tests"
"""Behind the names of all programs here: what the machine has installed is not found."""


@pytest.fixture
def with_tools(make_inside, tmp_path):
    """Makes a sandbox that sees a folder with the given commands, and no others: name → shell script."""

    def make(**commands):
        (tmp_path / "tools" / "bin").mkdir(parents=True)
        for name, text in commands.items():
            write_tool(tmp_path, name, text)
        own = make_inside(tool_folders=str(tmp_path / "tools"))
        own.wait(rename_programs(own))
        return own

    return make


def write_tool(tmp_path, name, text):
    file = tmp_path / "tools" / "bin" / f"{name}{SUFFIX}"
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)


async def rename_programs(own):
    def renamed(one):
        checks = tuple(
            replace(check, argv=tuple(re.sub(r"\bmono\b", f"mono{SUFFIX}", word) for word in check.argv)) for check in one.checks
        )
        return replace(one, program=one.program + SUFFIX, checks=checks)

    async with own.runner.session() as session:
        for name, language in session._scripts.items():
            session._scripts[name] = replace(language, alternatives=tuple(map(renamed, language.alternatives)))


def test_a_language_without_a_runtime_is_skipped_and_says_what_to_install(with_tools):
    outcome = with_tools().run("1", "elixir").outcome
    assert (outcome.status, outcome.exit_code) == ("skipped", None)
    assert said(outcome.reasons).startswith("elixir is not installed. Install Elixir (apt-get install elixir)")


def test_a_broken_runtime_says_what_it_said(with_tools):
    outcome = with_tools(elixir="echo 'erl: not found' >&2; exit 127").run("1", "elixir").outcome
    if outcome.status == "ok":
        pytest.skip("another elixir is installed here")
    assert said(outcome.reasons).startswith("elixir is not installed (it says: erl: not found). Install Elixir")


def test_half_an_installation_names_the_missing_half(with_tools):
    outcome = with_tools(mcs="exit 0", mono="exit 127").run("class A {}", "csharp").outcome
    assert (
        said(outcome.reasons)
        == "csharp is not installed. Install Mono's runtime (apt-get install mono-runtime), which this Mono lacks."
    )


def test_a_node_that_is_too_old_for_typescript_is_passed_over_for_one_that_is_not(with_tools):
    own = with_tools(deno="case $1 in --version) exit 0;; *) cat >/dev/null; echo deno ran;; esac", node="exit 9")
    ran = own.run("1", "typescript")
    assert ran.outcome.status == "ok"


def test_typescript_without_a_runtime_for_it_says_which_would_do(with_tools):
    outcome = with_tools().run("1", "typescript").outcome
    assert "Install Node.js 22.6 or newer (https://nodejs.org), deno, bun or tsx" in said(outcome.reasons)


def test_a_runtime_that_is_installed_meanwhile_is_found(with_tools, tmp_path):
    own = with_tools()
    assert own.run("1", "elixir").outcome.status == "skipped"
    write_tool(tmp_path, "elixir", "echo installed\n")
    assert own.run("1", "elixir").stdout == b"installed\n"
