"""Files that one command line makes and then runs: judged by their text where it is spelled out, asked about elsewhere."""

import json
import random
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from sandboxmcp.policy.claude_permissions import claude_packs
from sandboxmcp.policy.engine import Engine, load_engine
from sandboxmcp.policy.facts import HOLE
from sandboxmcp.policy.paths import Places
from sandboxmcp.policy.programs.code_files import can_be_one

CASES: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "files_run.toml").read_text())


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """With `rm` denied."""
    file = tmp_path_factory.mktemp("claude") / "settings.json"
    file.write_text(json.dumps({"permissions": {"deny": ["Bash(rm:*)"]}}))
    return load_engine(imported=claude_packs((file,)))


@pytest.mark.parametrize("code", CASES["asked"])
def test_a_file_that_is_made_and_run_is_asked_about(engine: Engine, code: str) -> None:
    verdict = engine.judge(code, "shell", "host")
    assert verdict.action in ("ask", "deny")
    assert verdict.unknown != ()


@pytest.mark.parametrize("code", CASES["judged"])
def test_a_file_whose_text_is_spelled_out_is_judged_by_it(strict: Engine, code: str) -> None:
    assert [strict.judge(code, "shell", setting).rule for setting in ("kernel", "host")] == ["deny-1", "deny-1"]


@pytest.mark.parametrize("code", CASES["harmless"])
def test_everyday_work_is_allowed(engine: Engine, code: str) -> None:
    verdict = engine.judge(code, "shell", "host")
    assert (verdict.action, verdict.unknown) == ("allow", ())


def test_a_path_in_the_workspace_is_the_same_in_full_and_in_short() -> None:
    engine = load_engine(places=Places("/srv/project", "/home/user"))
    assert engine.judge("base64 -d z > /srv/project/a; sh a", "shell", "host").action == "ask"
    assert engine.judge("base64 -d z > a; cd /srv/project; sh a", "shell", "host").action == "ask"
    assert engine.judge("base64 -d z > /home/user/a; sh ~/a", "shell", "host").action == "ask"
    assert engine.judge("base64 -d z > /srv/other/a; sh a", "shell", "host").action == "allow"


def test_two_paths_that_are_known_in_part_meet_where_some_file_fits_both() -> None:
    """Never misses a file of one folder that fits both; `HOLE` there stands for any text."""
    chosen = random.Random(11)
    files = ["".join(chosen.choices("ab", k=length)) for length in range(1, 7) for _ in range(12)]
    patterns = ["".join(chosen.choices("ab*", (2, 2, 1), k=chosen.randint(1, 5))) for _ in range(150)]
    matched = {one: {file for file in files if fnmatchcase(file, one)} for one in patterns}
    met = {(a, b): can_be_one(a.replace("*", HOLE), b.replace("*", HOLE)) for a in patterns for b in patterns}
    assert [pair for pair, said in met.items() if not said and matched[pair[0]] & matched[pair[1]]] == []
    assert [(a, b) for (a, b), said in met.items() if said and "*" not in a + b and a != b] == []
    assert 0.1 < sum(met.values()) / len(met) < 0.9


SHAPES = {
    "runs": "foo > f{n}; sh g{n}\n",
    "copies": "cp a{n} b{n}\n",
    "copies-in-part-unknown": 'cp "$a/{n}" "$b{n}/{n}"\n',
    "runs-in-part-unknown": 'foo > "$x{n}/{n}"; sh "$y/{n}"\n',
}


@pytest.mark.parametrize("unit", SHAPES.values(), ids=SHAPES)
def test_the_steps_grow_with_the_length(engine: Engine, unit: str) -> None:
    small, large = (_steps(engine, _repeated(unit, count)) for count in (500, 1_000))
    assert large <= 2.6 * small


def test_more_paths_than_are_compared_are_unknown(engine: Engine) -> None:
    assert engine.judge(_repeated(SHAPES["copies-in-part-unknown"], 1_000), "shell", "host").action == "ask"


def _repeated(unit: str, count: int) -> str:
    return "".join(unit.replace("{n}", str(at)) for at in range(count))


def _steps(engine: Engine, code: str) -> int:
    """How many functions of Python are called while the code is judged."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(called)
    try:
        engine.judge(code, "shell", "host")
    finally:
        sys.setprofile(None)
    return count
