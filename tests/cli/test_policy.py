"""The policy commands, as a pipeline calls them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Say = Callable[..., Any]


@pytest.fixture
def wrong(no_make: str) -> str:
    """A pack the example of which disagrees."""
    return no_make.replace('verdict = "deny"\n', 'verdict = "ask"\n', 1)


def test_explain_says_who_spoke_where_and_what_to_do_instead(say: Say) -> None:
    said = say("policy", "explain", "--json", "--", "true\ncurl https://example.org")
    facts = {key: said.document[key] for key in ("verdict", "pack", "rule", "line", "program", "unknown")}
    assert said.code == 3
    assert facts == {"verdict": "deny", "pack": "default", "rule": "curl-to-stdout", "line": 2, "program": "curl", "unknown": []}


def test_explain_allows_without_a_rule_and_lists_what_is_unknown(say: Say) -> None:
    said = say("policy", "explain", "--", "$C x")
    assert (said.code, said.out) == (0, "allow.\nunknown: line 1: which program runs\n")


def test_explain_says_of_what_is_allowed_that_it_would_find_no_network(say: Say) -> None:
    said, known = [say("policy", "explain", *more, "--", "pip install x") for more in ((), ("--json",))]
    assert (said.code, said.out.splitlines()[0], known.document["outlook"]) == (0, "allow.", [said.out.splitlines()[1]])
    assert "pip install (line 1) would fail: there is no network in the sandbox" in said.out
    assert say("policy", "explain", "--setting", "host", "--", "pip install x").out == "allow.\n"


def test_explain_asks_on_the_host_and_denies_in_a_pipeline(say: Say) -> None:
    asked = say("policy", "explain", "--setting", "host", "--json", "--", "$C x")
    denied = say("policy", "explain", "--setting", "host", "--policy-packs", "ci", "--json", "--", "$C x")
    assert [asked.document["verdict"], denied.document["verdict"]] == ["ask", "deny"]


def test_explain_judges_other_languages(say: Say) -> None:
    assert say("policy", "explain", "--language", "js", "--", "fetch('https://example.org')").code == 3


def test_an_unknown_setting_is_refused(say: Say) -> None:
    said = say("policy", "explain", "--setting", "cloud", "--", "ls")
    assert (said.code, said.err) == (2, "sandboxmcp: --setting is 'cloud'. Choose kernel or host.\n")


def test_check_judges_files_and_the_cells_of_notebooks(say: Say) -> None:
    cells = [{"cell_type": "markdown", "source": "curl"}, {"cell_type": "code", "source": ["import json\n", "import requests\n"]}]
    Path("n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}}))
    Path("a.js").write_text("console.log(1)\n")
    said = say("policy", "check", "--json", "a.js", "n.ipynb")
    rows = [(row["file"], row["cell"], row["action"], row["line"]) for row in said.document["verdicts"]]
    assert (said.code, rows) == (3, [("a.js", None, "allow", None), ("n.ipynb", 1, "deny", 2)])


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"cells": [{}]}', '{"cells": 3}'])
def test_a_notebook_that_is_none_is_refused(say: Say, text: str) -> None:
    Path("n.ipynb").write_text(text)
    said = say("policy", "check", "n.ipynb")
    assert (said.code, "n.ipynb is no notebook" in said.err) == (2, True)


def test_check_writes_sarif_with_a_place_for_each_finding(say: Say) -> None:
    Path("a.sh").write_text("true\ncurl https://example.org\n")
    run = say("policy", "check", "--sarif", "a.sh").document["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (run["results"][0]["ruleId"], place) == (
        "default/curl-to-stdout",
        {"artifactLocation": {"uri": "a.sh"}, "region": {"startLine": 2}},
    )


def test_test_runs_every_example_of_the_packs_in_force(say: Say) -> None:
    said = say("policy", "test", "--json")
    assert (said.code, said.document["failed"], said.document["examples"] > 100) == (0, [], True)


def test_test_tells_which_example_disagrees_and_where_in_every_form(say: Say, wrong: str) -> None:
    Path("own.toml").write_text(wrong)
    plain = say("policy", "test", "./own.toml")
    suite = ElementTree.fromstring(say("policy", "test", "--junit", "./own.toml").out.split("\n", 1)[1])  # noqa: S314 - our own
    finding = say("policy", "test", "--sarif", "./own.toml").document["runs"][0]["results"][0]
    problem = "the example is ask by no-make, not deny"
    assert (plain.code, plain.out.splitlines()[0]) == (1, f"own.toml:10: own/no-make example 1: {problem}")
    assert [failure.get("message") for failure in suite.iter("failure")] == [problem]
    assert (finding["ruleId"], finding["message"]["text"]) == ("own/no-make", problem)


def test_show_says_in_words_what_a_pack_lets_out(say: Say, no_make: str) -> None:
    Path("own.toml").write_text(no_make)
    lines = say("policy", "show", "research").out.splitlines()
    assert "let out: gh to github.com, githubusercontent.com, with the server's GH_TOKEN, GITHUB_TOKEN" in lines
    assert "  gh pr diff [--name-only] [--patch] [-R|--repo REPO] ARGUMENT" in lines
    assert say("policy", "show", "./own.toml").out.splitlines()[2] == "deny no-make: Not here. Use ninja."
    assert (say("policy", "show", "nosuch").code, say("policy", "show", "offline", "--json").document["name"]) == (6, "offline")


def test_a_broken_pack_stops_every_command_with_its_line(say: Say, no_make: str) -> None:
    Path(".sandboxmcp/policies").mkdir(parents=True)
    Path(".sandboxmcp/policies/own.toml").write_text(no_make.replace("because", "becuase"))
    Path("a.sh").write_text("ls\n")
    for line in (("check", "a.sh"), ("explain", "ls"), ("test",), ("list",)):
        said = say("policy", *line)
        assert (said.code, "own.toml:8: unknown key 'becuase'" in said.err) == (6, True)
    assert say("run", "-c", "print(1)").code == 6


def test_an_example_that_contradicts_its_rule_stops_what_would_run(say: Say, wrong: str) -> None:
    Path(".sandboxmcp/policies").mkdir(parents=True)
    Path(".sandboxmcp/policies/own.toml").write_text(wrong)
    said = say("run", "-c", "print(1)")
    assert (said.code, "own.toml:10: rule 'no-make': the example is ask by no-make, not deny" in said.err) == (6, True)


def test_unreadable_settings_of_claude_code_are_an_error_not_silence(say: Say) -> None:
    Path(".claude/settings.json").mkdir(parents=True)
    said = say("policy", "explain", "--", "ls")
    off = say("policy", "explain", "--claude-permissions", "false", "--", "ls")
    assert (said.code, "Claude Code's settings cannot be read: Is a directory" in said.err, off.code) == (6, True, 0)


def test_what_claude_code_denies_is_denied_here(say: Say) -> None:
    Path(".claude").mkdir()
    Path(".claude/settings.local.json").write_text('{"permissions": {"deny": ["Bash(make:*)",]}} // mine')
    assert say("policy", "explain", "--json", "--", "make all").document["pack"] == "claude:settings.local.json"


def test_list_shows_packs_and_rules(say: Say) -> None:
    packs = {pack["name"]: pack for pack in say("policy", "list", "--policy-packs", "strict", "--json").document["packs"]}
    assert (set(packs), packs["strict"]["extends"]) == ({"programs", "strict", "offline", "default"}, ["offline"])


def test_diff_tells_which_commands_change_their_verdict(say: Say) -> None:
    Path("commands.txt").write_text("ls\ngit clone https://example.org/a\ncurl u\n")
    said = say("policy", "diff", "default", "offline", "--corpus", "commands.txt", "--json")
    row = {"code": "git clone https://example.org/a", "language": "shell", "old": "allow", "new": "deny", "rule": "no-network"}
    assert (said.code, said.document) == (1, {"ok": False, "judged": 3, "changed": [row]})


def test_the_log_shows_verdicts_and_survives_a_line_that_was_cut(say: Say, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    lines = [{"time": 1, "event": "verdict", "verdict": v, "rule": r} for v, r in (("allow", None), ("deny", "curl-to-stdout"))]
    (tmp_path / "data/policy.log").write_text("\n".join(map(json.dumps, lines)) + '\n{"time": 2, "ev')
    assert say("policy", "log", "--json").document == {"ok": True, "events": lines}
    assert say("policy", "log", "--denied").out.endswith("verdict verdict=deny rule=curl-to-stdout\n")


def test_what_a_script_put_into_the_log_is_shown_as_one_value(say: Say, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    row = {"time": 1, "event": "broker", "program": "\x1b]0;x\x07sh\n1970 verdict=allow", "verdict": "deny"}
    (tmp_path / "data/policy.log").write_text(json.dumps(row) + "\n")
    assert say("policy", "log").out.partition(" broker ")[2] == 'program="sh 1970 verdict=allow" verdict=deny\n'


def test_a_log_that_is_not_there_is_empty(say: Say) -> None:
    assert say("policy", "log") == (0, "", "") or say("policy", "log").out == ""
