"""What a rule can ask of a fact beyond its name; the answer may also be that only the run will tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from sandboxmcp.policy.facts import HOLE, Call, Command, Fact, Touch, Word, joined, keys_of, sink_of
from sandboxmcp.policy.paths import Places, is_outside, is_scratch, resolved
from sandboxmcp.policy.patterns import pattern_problem, search
from sandboxmcp.policy.programs.addresses import is_service_address
from sandboxmcp.policy.programs.knowledge import Knowledge, Program, Reading, read_command_line
from sandboxmcp.policy.programs.order import Refusal
from sandboxmcp.policy.programs.urls import checked_url


@dataclass(frozen=True, slots=True)
class Subject:
    """A fact as conditions look at it: a command comes with its options read."""

    fact: Fact
    program: Program | None = None
    reading: Reading = field(default_factory=Reading)
    path: str = ""
    """Of a touched file, resolved."""
    allow_private: tuple[str, ...] = ()
    """The setting: what of the private networks may be reached."""


def subject_of(fact: Fact, knowledge: Knowledge, places: Places) -> Subject:
    if isinstance(fact, Touch):
        return Subject(fact, path=resolved(fact.path, fact.cwd, places))
    if not isinstance(fact, Command):
        return Subject(fact)
    program = knowledge.program(fact.name) or Program((fact.name,))
    return Subject(fact, program, read_command_line(program, fact.args), allow_private=places.allow_private)


@dataclass(frozen=True, slots=True)
class Condition:
    """One key of `when` and `unless`: how its value is checked when the pack loads, and what it asks of a fact."""

    check: Callable[[Any], str]
    """What is wrong with the value; empty when nothing is."""
    holds: Callable[[Subject, Any], bool | None]


def _option(subject: Subject, names: Sequence[str]) -> bool | None:
    program = subject.program
    if program is None:
        return False
    wanted = frozenset(program.canonical.get(name, name) for name in names)
    if subject.reading.has(wanted) or wanted & set(subject.reading.unlisted):
        return True
    return None if subject.reading.spread else False


def _value(subject: Subject, patterns: Mapping[str, str]) -> bool | None:
    program = subject.program
    if program is None:
        return False
    answers = [
        search(pattern, word.text)
        for name, pattern in patterns.items()
        for word in subject.reading.values(frozenset({program.canonical.get(name, name)}))
    ]
    return _any([*answers, None if subject.reading.spread else False])


def _argument(subject: Subject, pattern: str) -> bool | None:
    if isinstance(subject.fact, Call):
        texts = [value for value in (*subject.fact.args, *subject.fact.options.values()) if isinstance(value, str)]
    else:
        texts = [word.text for word in subject.reading.operands]
    return _any([search(pattern, text) for text in texts])


def _first(subject: Subject, names: Sequence[str]) -> bool | None:
    operands = subject.reading.operands
    if not operands:
        return False
    return operands[0].text in names or (None if not operands[0].known else False)


def _quiet(subject: Subject, wanted: bool) -> bool | None:
    program, fact = subject.program, subject.fact
    if program is None or not isinstance(fact, Command):
        return False
    if fact.stderr != "stream" and not subject.reading.has(program.noisy):
        return wanted
    if subject.reading.has(program.noisy):
        return not wanted
    if subject.reading.has(program.quiet) or program.silent:
        return wanted
    return None if subject.reading.spread else not wanted


def _discards(subject: Subject, wanted: bool) -> bool | None:
    program, fact = subject.program, subject.fact
    if program is None or not isinstance(fact, Command):
        return False
    sinks = [sink_of(value.text) for value in subject.reading.values(program.file)] or [fact.stdout]
    return (set(sinks) == {"discard"}) == wanted


def _writes_file(subject: Subject, wanted: bool) -> bool | None:
    program, fact = subject.program, subject.fact
    if program is None or not isinstance(fact, Command):
        return False
    found = _output_is_kept(fact, program, subject.reading)
    return None if found is None else found == wanted


def _output_is_kept(fact: Command, program: Program, reading: Reading) -> bool | None:
    """Whether all output goes to files or nowhere: by options, by the program's habit, or by redirection."""
    sinks = ["file" if value.text == HOLE else sink_of(value.text) for value in reading.values(program.file)]
    named = sum(name in program.files for name, _ in reading.options)
    redirected = fact.stdout != "stream"
    if "stream" in sinks:
        return redirected
    if redirected or reading.has(program.all_files):
        return True
    operands = len(reading.operands) + len(reading.values(program.targets))
    outputs = len(sinks) + named
    if program.writes or (outputs and not program.each) or (outputs and outputs >= operands):
        return True
    return None if reading.spread else False


def _beyond(subject: Subject, names: Sequence[str]) -> bool | None:
    """An option that is none of `names`."""
    program, reading = subject.program, subject.reading
    if program is None:
        return False
    allowed = {program.canonical.get(name, name) for name in names}
    if reading.unlisted or any(name not in allowed for name, _ in reading.options):
        return True
    return None if reading.spread else False


def _unlisted(subject: Subject, wanted: bool) -> bool | None:
    """An option that the broker does not take. One that only prints help, or talks, is the matter of other rules."""
    program, reading = subject.program, subject.reading
    if program is None:
        return False
    known = program.taken.keys() | program.inert | program.noisy
    if reading.unlisted or any(name not in known for name, _ in reading.options):
        return wanted
    return None if reading.spread else not wanted


def _refused(subject: Subject, reasons: Sequence[str]) -> bool | None:
    """An option that the broker refuses for one of these reasons."""
    program = subject.program
    if program is None:
        return False
    return _option(subject, [name for name, reason in program.refused.items() if reason in reasons])


def _other_method(subject: Subject, wanted: bool) -> bool | None:
    """A method, named or come of a body that is sent, which the broker's table does not have."""
    program, reading = subject.program, subject.reading
    if program is None or not program.methods:
        return not wanted
    treated = [(program.taken.get(name, "").split(" "), value) for name, value in reading.options]
    named = [value.text for treatment, value in treated if treatment[0] == "method" and value is not None]
    body = any(treatment[0] == "data" for treatment, _ in treated) and ["flag", "get"] not in [one for one, _ in treated]
    if any(HOLE not in text and text not in program.methods for text in named) or (body and "POST" not in program.methods):
        return wanted
    return None if reading.spread or any(HOLE in text for text in named) else not wanted


def _no_url(subject: Subject, wanted: bool) -> bool | None:
    """A target that the broker takes for no URL, or that lies on an address which it never connects to."""
    program, reading = subject.program, subject.reading
    if program is None:
        return False
    texts = [word.text for word in (*reading.operands, *reading.values(program.targets))]
    return any(HOLE not in text and _is_no_url(text, subject.allow_private) for text in texts) == wanted


def _is_no_url(text: str, allow_private: tuple[str, ...]) -> bool:
    try:
        host = urlsplit(checked_url(text)).hostname or ""
    except Refusal:
        return True
    return is_service_address(host, allow_private)


def _operands(subject: Subject, wanted: bool) -> bool | None:
    program, reading = subject.program, subject.reading
    found = bool(reading.operands) or (program is not None and reading.has(program.targets))
    return found == wanted


def _address(subject: Subject, wanted: str) -> bool | None:
    """`local`: loopback, this machine's own name, or a path (a unix socket)."""
    if not isinstance(subject.fact, Call):
        return False
    call = subject.fact
    first = call.args[0] if call.args else next((call.options[key] for key in ("address", "host") if key in call.options), HOLE)
    if isinstance(first, tuple):
        first = first[0] if first else HOLE
    elif isinstance(first, str) and first.startswith(("/", "\0/")):
        return True
    if not isinstance(first, str) or HOLE in first:
        return None
    return _is_local(first)


def _is_local(host: str) -> bool:
    import ipaddress

    if host.lower().rstrip(".") in {"", "localhost"} or host.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name(subject: Subject, names: Sequence[str]) -> bool | None:
    return any(key[2] in names for key in keys_of(subject.fact))


def _access(subject: Subject, wanted: Sequence[str]) -> bool | None:
    return isinstance(subject.fact, Touch) and subject.fact.access in wanted


def _outside(subject: Subject, wanted: bool) -> bool | None:
    return isinstance(subject.fact, Touch) and is_outside(subject.path) == wanted


def _scratch(subject: Subject, wanted: bool) -> bool | None:
    if not isinstance(subject.fact, Touch):
        return False
    return None if subject.path.startswith(HOLE) else is_scratch(subject.path) == wanted


def _line(subject: Subject, globs: Sequence[str]) -> bool | None:
    """The whole command line, words joined by blanks."""
    if not isinstance(subject.fact, Command):
        return False
    line = joined([Word(subject.fact.name, 0), *subject.fact.args])
    if any(fnmatchcase(line, glob) for glob in globs):
        return True
    known, hole, _ = line.partition(HOLE)
    heads = [glob.split("*")[0] for glob in globs]
    return None if hole and any(head.startswith(known) or known.startswith(head) for head in heads) else False


def _any(answers: Sequence[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _is_bool(value: Any) -> str:
    return "" if isinstance(value, bool) else "wants true or false"


def _is_names(value: Any) -> str:
    fine = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    return "" if fine else "wants a list of texts"


def _is_patterns(value: Any) -> str:
    if not isinstance(value, dict) or not value:
        return "wants a table of options, each with a regular expression"
    return next((problem for item in value.values() if (problem := pattern_problem(item))), "")


def _is_address(value: Any) -> str:
    return "" if value == "local" else 'wants "local"'


CONDITIONS: Mapping[str, Condition] = {
    "option": Condition(_is_names, _option),
    "value": Condition(_is_patterns, _value),
    "argument": Condition(pattern_problem, _argument),
    "first": Condition(_is_names, _first),
    "quiet": Condition(_is_bool, _quiet),
    "writes_file": Condition(_is_bool, _writes_file),
    "discards": Condition(_is_bool, _discards),
    "beyond": Condition(_is_names, _beyond),
    "unlisted": Condition(_is_bool, _unlisted),
    "refused": Condition(_is_names, _refused),
    "other_method": Condition(_is_bool, _other_method),
    "no_url": Condition(_is_bool, _no_url),
    "operands": Condition(_is_bool, _operands),
    "address": Condition(_is_address, _address),
    "name": Condition(_is_names, _name),
    "access": Condition(_is_names, _access),
    "outside": Condition(_is_bool, _outside),
    "scratch": Condition(_is_bool, _scratch),
    "line": Condition(_is_names, _line),
}
