"""The prefilter says yes only where the engine would, without a rule and with nothing unknown, in both settings."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxmcp.core.model import Verdict
from sandboxmcp.policy.claude_permissions import claude_packs
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.judge import Engine
from sandboxmcp.policy.prefilter import surely_allowed, words_of

ENGINES = {name: load_engine([name]) for name in ("default", "strict", "ci", "research")}
WORDS = {name: words_of(engine) for name, engine in ENGINES.items()}
FOLDER = Path(__file__).parent / "corpus"
LINES = [line.replace("⏎", "\n") for file in sorted(FOLDER.glob("*.txt")) for line in file.read_text().splitlines()]
WHOLE = ".exe .EXE cmd pwsh /c".split()
WHOLE += "curl cu rl ls make echo -o x a=b rm git config bash .git/hooks python3.11 requests os print(1) open".split()
PIECES = [*WHOLE, *"'\" \n;|></.$~=,()", "&&", "..", "import "]


def _agrees(engine: Engine, code: str, language: str) -> bool:
    return [engine.judge(code, language, setting) for setting in ("kernel", "host")] == [Verdict("allow")] * 2


@pytest.mark.parametrize("name", ENGINES)
def test_the_engine_agrees_on_the_whole_corpus(name: str) -> None:
    sure = [(code, language) for code in LINES for language in ("shell", "python") if surely_allowed(code, language, WORDS[name])]
    assert (len(sure) > 20, [one for one in sure if not _agrees(ENGINES[name], *one)]) == (True, [])


@settings(max_examples=400)
@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join),
    st.sampled_from(["shell", "python"]),
    st.sampled_from(sorted(ENGINES)),
)
def test_the_engine_agrees_on_any_row_of_pieces(code: str, language: str, name: str) -> None:
    assert not surely_allowed(code, language, WORDS[name]) or _agrees(ENGINES[name], code, language)


def test_plain_code_is_sure_and_what_could_hide_a_word_is_not() -> None:
    sure = ["ls -la src", "make test | tail -5", "npm run build > build.log 2>&1", 'go test "./..."']
    unsure = [
        "cu''rl u",
        "$C u",
        "c\\url u",
        "a/curl u",
        "git config core.pager x",
        "echo x > .git/hooks/y",
        "rm x",
        "PATH=x sh y",
        "'\nls",
        "'\" ' \"",
    ]
    assert [surely_allowed(code, "shell", WORDS["default"]) for code in (*sure, *unsure)] == [True] * 4 + [False] * 10


def test_other_languages_are_never_sure() -> None:
    assert not surely_allowed("1", "javascript", WORDS["default"])


def test_what_is_known_survives_as_json() -> None:
    assert json.loads(json.dumps(WORDS["default"])) == WORDS["default"]


def test_rules_about_any_command_close_it(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    assert words_of(load_engine(imported=claude_packs((tmp_path / "s.json",))))["closed"] is True


def test_rules_about_some_lines_are_words(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"permissions": {"deny": ["Bash(make deploy:*)", "Read(./secrets/**)"]}}')
    words = words_of(load_engine(imported=claude_packs((tmp_path / "s.json",))))
    assert [surely_allowed(code, "shell", words) for code in ("make x", "ninja < secrets/a", "ninja x")] == [False, False, True]
