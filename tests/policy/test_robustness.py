"""No code of any kind makes the judge raise, nor hold the others up for long."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.policy.engine import Engine, load_engine

ENGINE = load_engine()
SIZE = 1_000_000


def _filled(unit: str) -> str:
    return unit * (SIZE // len(unit))


SHELL = {
    "parentheses": _filled("("),
    "substitutions": "$(" * 100_000 + "x" + ")" * 100_000,
    "open-substitutions": _filled("$("),
    "quoted-substitutions": _filled('"$('),
    "backticks": _filled("`a"),
    "pipes": _filled("a|"),
    "and": _filled("a && "),
    "redirections": _filled(">"),
    "expansions": _filled("${"),
    "groups": _filled("{ "),
    "conditions": _filled("if true; then "),
    "heredocs": "".join(f"cat <<A{at}\nx\nA{at}\n" for at in range(10_000)),
    "heredocs-in-one-line": "cat " + "<<A " * 10_000 + "\n" + "A\n" * 10_000,
    "interpreters": 'bash -c "' * 5_000,
    "wrappers": _filled("sudo "),
    "braces": "{a,b}" * 10_000,
    "functions": "".join(f"f{at}() {{ f{at + 1}; }}\n" for at in range(5_000)),
    "one-word": _filled("x"),
    "nul": _filled("\0"),
    "surrogates": _filled("\ud800"),
}
PYTHON = {
    "parentheses": _filled("("),
    "minus": _filled("-") + "1",
    "attributes": "a" + _filled(".a"),
    "sums": "1" + _filled("+1"),
    "calls": "f(" * 100_000 + ")" * 100_000,
    "levels": "".join(" " * at + "if 1:\n" for at in range(1_000)),
    "elif": "if 1:\n pass\n" + "elif 1:\n pass\n" * 20_000,
    "f-string": 'f"' + "{a}" * 300_000 + '"',
    "texts": '"a"' + '+"a"' * 50_000,
    "shell-lines": "!ls\n" * 5_000,
    "exec": "exec(" * 50 + '"x"' + ")" * 50,
    "nul": _filled("\0"),
    "surrogates": _filled("\ud800"),
}


@pytest.mark.parametrize("code", SHELL.values(), ids=SHELL)
def test_monstrous_shell_code_is_judged(code: str) -> None:
    assert ENGINE.judge(code, "shell").action == "allow"


@pytest.mark.parametrize("code", PYTHON.values(), ids=PYTHON)
def test_monstrous_python_code_is_judged(code: str) -> None:
    assert ENGINE.judge(code, "python").action == "allow"


def test_giving_up_is_said_and_asked_about_on_the_host() -> None:
    verdict = ENGINE.judge("a|" * 5_000, "shell")
    assert verdict.unknown == ("line 1: shell code with more than 1,500 pipes or heredocs in one statement",)
    assert ENGINE.judge("a|" * 5_000, "shell", "host").action == "ask"


def test_a_large_heredoc_is_no_obstacle() -> None:
    assert ENGINE.judge("cat > f <<'EOF'\n" + _filled("some data | more\n") + "EOF\ncurl u", "shell").action == "deny"


_MARKS = [*"abc \n\t;|&<>(){}[]$'\"`\\=#!*?~-@,", "\0", "\ud800", "é", "%s", ":\n    ", "f'"]
_WORDS = [
    "curl ",
    "-o ",
    "<<E\n",
    "E\n",
    "$(",
    "${",
    "bash -c ",
    "eval ",
    "if ",
    "then ",
    "fi\n",
    "import ",
    "requests",
    "os.system(",
]
_TOKENS = st.sampled_from([*_MARKS, *_WORDS, "lambda: ", "%%bash\n", "__import__("])


@given(st.one_of(st.text(max_size=200), st.lists(_TOKENS, max_size=60).map("".join)))
def test_no_text_makes_an_analysis_fail(code: str) -> None:
    verdicts = [ENGINE.judge(code, language, "host") for language in ("shell", "python")]
    assert [part for verdict in verdicts for part in verdict.unknown if "analysis failed" in part] == []
    assert all(verdict.line is None or 1 <= verdict.line <= code.count("\n") + 2 for verdict in verdicts)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_do_not_raise(raw: bytes) -> None:
    code = raw.decode("utf-8", "surrogateescape")
    assert [ENGINE.judge(code, language).action in {"allow", "deny"} for language in ("shell", "python")] == [True, True]


def test_the_judge_works_in_a_thread(engine: Engine) -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(engine.judge(code, "python").action for code in PYTHON.values()))
    thread.start()
    thread.join()
    assert found == ["allow"] * len(PYTHON)


def test_the_room_imports_no_parser_before_there_is_code() -> None:
    import subprocess

    code = "import sandboxmcp.policy.engine, sys; print([m for m in ('tree_sitter', 'subprocess', 'socket') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
