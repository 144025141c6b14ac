"""How command lines are read by what packs know of programs."""

import pytest

from sandboxmcp.policy.engine import Engine
from sandboxmcp.policy.facts import SPREAD, Word
from sandboxmcp.policy.programs.knowledge import read_command_line

LINES = {
    "separate": ("curl", "-s -o f u", [("--silent", None), ("--output", "f")], ["u"]),
    "cluster": ("curl", "-sSo f u", [("--silent", None), ("--show-error", None), ("--output", "f")], ["u"]),
    "attached": ("curl", "-sof u", [("--silent", None), ("--output", "f")], ["u"]),
    "equals": ("curl", "--output=f u", [("--output", "f")], ["u"]),
    "prefix": ("curl", "--user-ag x u", [("--user-agent", "x")], ["u"]),
    "permuted": ("curl", "u -s", [("--silent", None)], ["u"]),
    "dashes": ("curl", "-s -- -o", [("--silent", None)], ["-o"]),
    "dash": ("wget", "-O - u", [("--output-document", "-")], ["u"]),
    "two-letters": ("wget", "-nv -nc u", [("--no-verbose", None), ("--no-clobber", None)], ["u"]),
    "two-letters-in-cluster": ("wget", "-qncO f", [("--quiet", None), ("--no-clobber", None), ("--output-document", "f")], []),
    "wrapper-stops": ("sudo", "-u bob curl -s u", [("--user", "bob")], ["curl", "-s", "u"]),
    "skip": ("timeout", "-k 1 5 curl -s", [("--kill-after", "1")], ["5", "curl", "-s"]),
    "code-stops": ("python", "-c code -s x", [("-c", "code")], ["-s", "x"]),
    "code-flag": ("bash", "-ec code x", [("-e", None), ("-c", None)], ["code", "x"]),
    "missing-value": ("curl", "u -o", [("--output", None)], ["u"]),
}


@pytest.mark.parametrize(("program", "line", "options", "operands"), LINES.values(), ids=LINES)
def test_a_command_line_is_read_as_the_program_reads_it(
    program: str, line: str, options: list[tuple[str, str | None]], operands: list[str], engine: Engine
) -> None:
    known = engine.knowledge.program(program)
    assert known is not None
    reading = read_command_line(known, [Word(word, 1) for word in line.split()])
    found = [(name, value and value.text) for name, value in reading.options]
    assert (found, [word.text for word in reading.operands]) == (options, operands)


def test_options_that_the_pack_does_not_know_are_kept_apart(engine: Engine) -> None:
    known = engine.knowledge.program("curl")
    assert known is not None
    reading = read_command_line(known, [Word("--frob=1", 1), Word("-s?", 1), Word(SPREAD, 1)])
    assert (reading.unlisted, reading.spread) == (("--frob", "-?"), True)


def test_a_version_behind_a_name_does_not_hide_the_program(engine: Engine) -> None:
    names = ("python", "python3", "python3.11", "pypy3")
    assert [program and program.language for program in map(engine.knowledge.program, names)] == ["python"] * 4
