"""What commands and calls do to files, and which URLs they are given, by what packs know of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sandboxmcp.policy.facts import HOLE, Call, Command, Fact, Touch, Url, Word
from sandboxmcp.policy.programs.knowledge import Knowledge, Reading, TouchRule, read_command_line

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/]")
_WRITING_MODE = re.compile(r"[wax+]")
_LEADING_END = ("-", "(", "!")


def effects_of(fact: Fact, knowledge: Knowledge) -> Iterator[Fact]:
    """The files that a command or call touches and the URLs among its arguments."""
    if isinstance(fact, Command):
        yield from (Url(word.line, word.text) for word in fact.args if _URL.match(word.text))
        program = knowledge.program(fact.name)
        if program is not None and program.touches:
            reading = read_command_line(program, fact.args)
            if not reading.has(program.inert):
                yield from _touched(fact, reading, program.touches)
    elif isinstance(fact, Call):
        texts = [value for value in (*fact.args, *fact.options.values()) if isinstance(value, str)]
        yield from (Url(fact.line, text, fact.language) for text in texts if _URL.match(text))
        yield from _touched_by_call(fact, knowledge)


def _touched(command: Command, reading: Reading, rules: Sequence[TouchRule]) -> Iterator[Touch]:
    raw = {word.text for word in command.args}
    for rule in rules:
        if rule.when and not (raw & rule.when or reading.has(rule.when)):
            continue
        if rule.unless and (raw & rule.unless or reading.has(rule.unless)):
            continue
        words = [*_chosen(rule, command, reading), *reading.values(rule.values)]
        for word in words:
            if word.text and (":" not in word.text.split("/")[0] or word.text.startswith(HOLE)):
                yield Touch(word.line, word.text, rule.access, command.cwd)


def _chosen(rule: TouchRule, command: Command, reading: Reading) -> Sequence[Word]:
    operands = reading.operands
    match rule.operands:
        case "all":
            return operands
        case "rest":
            return operands[1:]
        case "first":
            return operands[:1]
        case "last":
            return operands[-1:] if len(operands) > 1 and not reading.has(rule.values) else ()
        case "but-last":
            return operands if reading.has(rule.values) else operands[:-1]
        case "leading":
            return leading(command.args)
        case "prefix":
            return [Word(w.text[len(rule.prefix) :], w.line) for w in command.args if w.text.startswith(rule.prefix)]
    return ()


def leading(words: Sequence[Word]) -> list[Word]:
    """The words before the first option or expression (find); the working folder where there are none."""
    found: list[Word] = []
    for word in words:
        if word.text.startswith(_LEADING_END):
            break
        found.append(word)
    return found or [Word(".", words[0].line if words else 1)]


def _touched_by_call(call: Call, knowledge: Knowledge) -> Iterator[Touch]:
    function = knowledge.functions.get((call.language, call.name))
    if function is None or function.runs not in ("read", "write", "remove", "move", "open"):
        return
    receiver = call.receiver if function.receiver else None
    at = function.argument
    named = next((call.options[k] for k in ("file", "path", "dst") if k in call.options), HOLE)
    path = receiver if receiver is not None else call.args[at] if len(call.args) > at else named
    if not isinstance(path, str) or not path.strip(HOLE):
        return
    access = function.runs
    if access == "open":
        place = 0 if function.receiver else at + 1
        mode = call.args[place] if len(call.args) > place else call.options.get("mode", "r")
        access = "write" if isinstance(mode, str) and _WRITING_MODE.search(mode) else "read"
    yield Touch(call.line, path, access, language=call.language)
