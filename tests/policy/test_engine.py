"""How one verdict comes out of many facts."""

from pathlib import Path

import pytest

from sandboxmcp.core.model import Verdict
from sandboxmcp.policy.engine import Engine, load_engine

RULE = """
[[rule]]
id = "{id}"
language = "shell"
command = "{command}"
verdict = "{verdict}"
because = "Because of {id}."
instead = "Instead of {id}."
[[rule.example]]
code = "{command} x"
verdict = "{verdict}"
"""


def _engine(folder: Path, *rules: tuple[str, str, str]) -> Engine:
    text = "[pack]\nname = 'own'\n" + "".join(RULE.format(id=id_, command=command, verdict=v) for id_, command, v in rules)
    (folder / "own.toml").write_text(text)
    return load_engine(["own"], [folder])


def test_deny_beats_ask_and_ask_beats_allow(tmp_path: Path) -> None:
    engine = _engine(tmp_path, ("may", "ls", "allow"), ("asks", "rm", "ask"), ("never", "dd", "deny"))
    assert [engine.judge(code, "shell").rule for code in ("ls; rm", "rm; dd", "dd; ls", "ls")] == ["asks", "never", "never", "may"]


def test_of_equally_strict_rules_the_first_line_speaks(tmp_path: Path) -> None:
    engine = _engine(tmp_path, ("second", "dd", "deny"), ("first", "mkfs", "deny"))
    assert engine.judge("true\nmkfs x\ndd", "shell") == Verdict("deny", "own", "first", 2, "Because of first.", "Instead of first.")


def test_the_strictest_of_several_packs_wins(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[pack]\nname = 'own'\n" + RULE.format(id="fine", command="aria2c", verdict="allow"))
    engine = load_engine(["default", "own"], [tmp_path])
    assert engine.judge("aria2c u; curl u", "shell").rule == "curl-to-stdout"


def test_a_pack_is_loaded_with_what_it_extends(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[pack]\nname = 'own'\nextends = ['default']\n")
    assert [pack.name for pack in load_engine(["own"], [tmp_path]).packs] == ["programs", "own", "default"]


def test_nothing_matches_is_allow_without_a_rule(engine: Engine) -> None:
    assert engine.judge("git log --stat", "shell") == Verdict("allow")


@pytest.mark.parametrize(
    ("code", "language", "line"),
    [
        pytest.param("true\n\ncurl u", "shell", 3, id="shell"),
        pytest.param("true\nbash -c '\ntrue\ncurl u'", "shell", 4, id="in-a-text"),
        pytest.param("true\npython3 - <<'EOF'\nimport os\nimport requests\nEOF\n", "shell", 4, id="in-a-heredoc"),
        pytest.param("cat <<'EOF' | bash\ntrue\ncurl u\nEOF\n", "shell", 3, id="in-a-heredoc-of-another"),
        pytest.param("x = 1\nimport requests", "python", 2, id="python"),
        pytest.param('import os\nos.system("""\ncurl u""")', "python", 3, id="shell-in-python"),
        pytest.param("%%bash\ntrue\ncurl u", "python", 3, id="cell"),
        pytest.param("x = 1\n!curl u", "python", 2, id="shell-line"),
        pytest.param("true \\\n  && curl u", "shell", 2, id="continued"),
    ],
)
def test_the_line_is_that_of_the_outer_code(code: str, language: str, line: int, engine: Engine) -> None:
    assert engine.judge(code, language).line == line


UNKNOWN = {
    "variable": ("$C -s u", "line 1: which program runs"),
    "glob": ("true\n/usr/bin/c?rl u", "line 2: which program runs"),
    "substitution": ("$(cat f) u", "line 1: which program runs"),
    "eval": ('eval "$x"', "line 1: the code that eval runs"),
    "bash-c": ('bash -c "$x"', "line 1: the code that bash runs"),
    "pipe": ("base64 -d f | sh", "line 1: the code that sh reads from a pipe"),
    "process": ("bash <(base64 -d f)", "line 1: the code that bash reads from another command"),
    "arguments": ('wget "$@"', "line 1: the arguments of wget"),
    "code-in-code": ('node -e "$x"', "line 1: the code that node runs"),
    "input": ("bash < script", "line 1: the code that bash reads from a pipe"),
}


@pytest.mark.parametrize(("code", "unknown"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_cannot_be_known_is_listed_and_asked_about_on_the_host(code: str, unknown: str, engine: Engine) -> None:
    host = engine.judge(code, "shell", "host")
    assert engine.judge(code, "shell") == Verdict("allow", unknown=(unknown,))
    assert (host.action, host.rule, host.unknown) == ("ask", None, (unknown,))
    assert unknown in host.because


def test_a_language_without_analysis_is_allowed_and_named(engine: Engine) -> None:
    assert engine.judge("fetch('https://example.org')", "lua") == Verdict(
        "allow", unknown=("line 1: lua code, which is not analysed",)
    )


def test_a_denial_still_lists_what_is_unknown(engine: Engine) -> None:
    verdict = engine.judge("$C u\ncurl u", "shell")
    assert (verdict.action, verdict.line, verdict.unknown) == ("deny", 2, ("line 1: which program runs",))


def test_a_long_list_of_unknown_parts_is_cut(engine: Engine) -> None:
    unknown = engine.judge("$C\n" * 50, "shell").unknown
    assert (len(unknown), unknown[-1]) == (21, "and 30 more")


def test_other_names_of_a_language_mean_the_same(engine: Engine) -> None:
    assert [engine.judge("curl u", name).action for name in ("shell", "bash", "sh")] == ["deny"] * 3


def test_every_reason_is_one_sentence_and_says_what_to_do_instead(engine: Engine) -> None:
    rules = [rule for pack in engine.packs for rule in pack.rules]
    assert [rule.id for rule in rules if not rule.because.endswith(".") or not rule.instead.endswith(".")] == []
