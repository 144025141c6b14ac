"""Packs say what may go out: one table of options for the static judgement and for the broker, and errors that name their line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.paths import Places
from sandboxmcp.policy.programs.brokered_programs import read_fetch
from sandboxmcp.policy.programs.order import Refusal

ENGINE = load_engine()
URL = "https://example.org/file"
REST = {"curl": f"-sS -o f {URL}", "wget": f"-q -O f {URL}"}
VALUES = {
    "--cookie": "a=b", "--header": "A: b", "--user": "a:b", "--request": "GET", "--method": "GET", "--proto": "https",
    "--limit-rate": "1k", "--range": "0-9", "--compression": "gzip", "--directory-prefix": "d",
}  # fmt: skip
TARGETS = {"--output", "--output-document", "--url", "--remote-name", "--remote-name-all", "--data", "--data-raw", "--input-file"}
"""They change how many outputs or targets there are; the end-to-end tests have them."""


def options_of(program: str) -> list[str]:
    known = ENGINE.knowledge.programs[program]
    return sorted(set(known.canonical.values()) - TARGETS - known.inert)


def brokered(program: str, arguments: list[str]) -> str:
    try:
        read_fetch(ENGINE.brokers()[program], arguments)
    except Refusal:
        return "deny"
    return "allow"


@pytest.mark.parametrize(("program", "option"), [(program, option) for program in REST for option in options_of(program)])
def test_the_static_judgement_and_the_broker_agree_on_every_option(program: str, option: str) -> None:
    valued = option in ENGINE.knowledge.programs[program].valued
    line = f"{option} {shlex.quote(VALUES.get(option, '1'))} {REST[program]}" if valued else f"{option} {REST[program]}"
    assert ENGINE.judge(f"{program} {line}", "shell").action == brokered(program, shlex.split(line))


def test_every_taken_and_every_refused_option_is_known_once() -> None:
    for program in REST:
        known = ENGINE.knowledge.programs[program]
        assert set(known.taken) & set(known.refused) == set()
        assert (set(known.taken) | set(known.refused)) - set(known.canonical.values()) == set()


def write(folder: Path, text: str, name: str = "mine") -> None:
    (folder / f"{name}.toml").write_text(f'[pack]\nname = "{name}"\n{text}')


def test_a_pack_that_refuses_beats_one_that_allows(tmp_path: Path) -> None:
    write(tmp_path, '[[broker]]\nprogram = "wget"\nverdict = "deny"\nbecause = "curl is enough."')
    assert sorted(load_engine(["default", "mine"], [tmp_path]).brokers()) == ["curl"]


def test_a_star_refuses_every_program(tmp_path: Path) -> None:
    write(tmp_path, '[[broker]]\nprogram = "*"\nverdict = "deny"\nbecause = "Nothing goes out."')
    assert load_engine(["research", "mine"], [tmp_path]).brokers() == {}


BROKEN = {
    "an unknown key": ('[[broker]]\nprogram = "x"\nverdict = "allow"\nfetch = "curl"', 6, "unknown key 'fetch'"),
    "no verdict": ('[[broker]]\nprogram = "x"\nfetches = "curl"', 3, "lacks 'verdict'"),
    "an ask": ('[[broker]]\nprogram = "x"\nverdict = "ask"\nfetches = "curl"', 5, "'verdict' is 'ask'"),
    "every program": ('[[broker]]\nprogram = "*"\nverdict = "allow"\nfetches = "curl"', 4, "'*' is no program"),
    "a path": ('[[broker]]\nprogram = "../x"\nverdict = "allow"\nfetches = "curl"', 4, "is no program"),
    "nothing to run": ('[[broker]]\nprogram = "x"\nverdict = "allow"', 3, "says not what may be run"),
    "no host": ('[[broker]]\nprogram = "x"\nverdict = "allow"\nfetches = "curl"\nhosts = ["a b"]', 7, "wants domains"),
    "no variable": ('[[broker]]\nprogram = "x"\nverdict = "allow"\nfetches = "curl"\nenvironment = ["A-B"]', 7, "is no variable"),
    "no expression": (
        '[[broker]]\nprogram = "x"\nverdict = "allow"\nrun = ["x"]\n[[broker.shape]]\nname = "s"\nmost = 1\noperands = ["("]',
        7,
        "is not a regular expression",
    ),
    "an example that disagrees": (
        '[[broker]]\nprogram = "x"\nverdict = "allow"\nfetches = "curl"\n[[broker.example]]\narguments = ["-k"]\nverdict = "allow"',
        7,
        "the example is deny (option -k is refused: it turns off certificate checks), not allow",
    ),
    "a treatment that is none": (
        '[[program]]\nnames = ["x"]\nflags = ["--a"]\n[program.taken]\n"--a" = "output"',
        7,
        "'output' is no treatment of an option without a value",
    ),
    "a treatment of nothing": (
        '[[program]]\nnames = ["x"]\nflags = ["-a --a"]\n[program.taken]\n"-a" = "nothing"',
        7,
        "last spelling",
    ),
    "a reason for nothing": ('[[program]]\nnames = ["x"]\n[program.refused]\n"it bites" = ["--a"]', 6, "neither among flags"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_table_that_is_wrong_names_its_line(tmp_path: Path, case: str) -> None:
    text, line, what = BROKEN[case]
    write(tmp_path, text)
    with pytest.raises(BrokenPack) as caught:
        load_engine(["mine"], [tmp_path])
    assert (caught.value.line, what in str(caught.value)) == (line, True), str(caught.value)


SENDING = {
    "a body": "curl -sS -d a=1 -o f https://example.org/f",
    "a method and a body": "curl -sS -X POST -d a=1 -o f https://example.org/f",
    "a method": "curl -sS -X POST -o f https://example.org/f",
    "wget's method": "wget -q --method=POST -O f https://example.org/f",
}


@pytest.mark.parametrize("line", SENDING.values(), ids=SENDING)
@pytest.mark.parametrize("order", [["default", "mine"], ["mine", "default"], ["mine"]], ids=" ".join)
def test_what_sends_is_refused_by_both_until_a_pack_names_the_method(line: str, order: list[str], tmp_path: Path) -> None:
    program, *arguments = shlex.split(line)
    verdict = ENGINE.judge(line, "shell", "host")
    assert (verdict.action, verdict.rule, brokered(program, arguments)) == ("deny", f"{program}-sends", "deny")
    assert f'`program = "{program}"`' in verdict.instead and '`methods = ["GET", "HEAD", "POST"]`' in verdict.instead
    table = f'[[broker]]\nprogram = "{program}"\nverdict = "allow"\nfetches = "{program}"\nmethods = ["GET", "HEAD", "POST"]'
    (tmp_path / "mine.toml").write_text(f'[pack]\nname = "mine"\nextends = ["default"]\n{table}')
    engine = load_engine(order, [tmp_path])
    assert (engine.judge(line, "shell", "host").action, engine.judge(line, "shell").action) == ("allow", "allow")
    assert read_fetch(engine.brokers()[program], arguments).downloads[0].output == "f"


HOSTS = {
    "one narrows the other": (["example.org"], ["api.example.org", "example.net"], ("api.example.org",)),
    "one says nothing": ([], ["example.org"], ("example.org",)),
    "nothing is left": (["example.org"], ["example.net"], None),
}


@pytest.mark.parametrize(("some", "others", "left"), HOSTS.values(), ids=HOSTS)
def test_two_tables_of_a_program_let_out_what_both_let_out(
    some: list[str], others: list[str], left: tuple[str, ...] | None, tmp_path: Path
) -> None:
    for name, hosts in (("one", some), ("two", others)):
        write(tmp_path, f'[[broker]]\nprogram = "x"\nverdict = "allow"\nfetches = "curl"\nhosts = {hosts}', name)
    for order in (["one", "two"], ["two", "one"]):
        found = load_engine(order, [tmp_path]).brokers().get("x")
        assert (found and found.hosts) == left


URLS = {
    "a file": ("file:///etc/passwd", "deny"),
    "metadata": ("http://169.254.169.254/latest", "deny"),
    "metadata by name": ("http://metadata.google.internal/x", "deny"),
    "mapped": ("http://[::ffff:169.254.169.254]/", "deny"),
    "a number": ("http://2852039166/", "deny"),
    "octal": ("http://0251.0376.0251.0376/", "deny"),
    "a password": ("https://me:pw@example.org/", "deny"),
    "a plain one": ("https://example.org/169.254.169.254", "allow"),
    "a private one, which the gate judges": ("http://10.0.0.1/x", "allow"),
}


@pytest.mark.parametrize(("url", "verdict"), URLS.values(), ids=URLS)
def test_urls_that_are_never_let_out_are_refused_before(url: str, verdict: str) -> None:
    assert ENGINE.judge(f"curl -sS -o f '{url}'", "shell", "host").action == verdict
    assert ENGINE.judge(f"wget -q -O f '{url}'", "shell").action == verdict


def test_a_service_address_that_the_settings_open_is_not_refused_before() -> None:
    engine = load_engine(places=Places(allow_private=("169.254.169.254",)))
    assert engine.judge("curl -sS -o f http://169.254.169.254/", "shell").action == "allow"
