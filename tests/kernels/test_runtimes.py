"""What is said of a language that nothing runs here, or that is half installed."""

from __future__ import annotations

import pytest


@pytest.fixture
def with_tools(make_inside, tmp_path):
    """Makes a sandbox that sees a folder with the given commands: name → shell script."""

    def make(**commands):
        (tmp_path / "tools" / "bin").mkdir(parents=True)
        for name, text in commands.items():
            file = tmp_path / "tools" / "bin" / name.replace("_", "-")
            file.write_text("#!/bin/sh\n" + text)
            file.chmod(0o755)
        return make_inside(tool_folders=str(tmp_path / "tools"))

    return make


def test_a_language_without_a_runtime_is_skipped_and_says_what_to_install(with_tools):
    outcome = with_tools().run("1", "elixir").outcome
    if outcome.status == "ok":
        pytest.skip("elixir is installed here")
    assert (outcome.status, outcome.exit_code) == ("skipped", None)
    assert outcome.reason.startswith("elixir is not installed. Install Elixir (apt-get install elixir)")


def test_a_broken_runtime_says_what_it_said(with_tools):
    outcome = with_tools(elixir="echo 'erl: not found' >&2; exit 127").run("1", "elixir").outcome
    if outcome.status == "ok":
        pytest.skip("another elixir is installed here")
    assert outcome.reason.startswith("elixir is not installed (it says: erl: not found). Install Elixir")


def test_half_an_installation_names_the_missing_half(with_tools):
    outcome = with_tools(mcs="exit 0", mono="exit 127").run("class A {}", "csharp").outcome
    if outcome.status != "skipped":
        pytest.skip("another C# is installed here")
    assert (
        outcome.reason == "csharp is not installed. Install Mono's runtime (apt-get install mono-runtime), which this Mono lacks."
    )


def test_a_node_that_is_too_old_for_typescript_is_passed_over_for_one_that_is_not(with_tools):
    own = with_tools(deno="case $1 in --version) exit 0;; *) cat >/dev/null; echo deno ran;; esac", node="exit 9")
    ran = own.run("1", "typescript")
    assert ran.outcome.status == "ok"


def test_typescript_without_a_runtime_for_it_says_which_would_do(with_tools):
    outcome = with_tools().run("1", "typescript").outcome
    if outcome.status == "ok":
        pytest.skip("the machine's own Node.js runs it")
    assert "Install Node.js 22.6 or newer (https://nodejs.org), deno, bun or tsx" in outcome.reason


def test_a_runtime_that_is_installed_meanwhile_is_found(with_tools, tmp_path):
    own = with_tools()
    if own.run("1", "elixir").outcome.status == "ok":
        pytest.skip("elixir is installed here")
    file = tmp_path / "tools" / "bin" / "elixir"
    file.write_text("#!/bin/sh\necho installed\n")
    file.chmod(0o755)
    assert own.run("1", "elixir").stdout == b"installed\n"
