"""What really runs when a command line runs: `sudo env A=1 timeout 5 bash -c '…'` is followed to its end."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from sandboxmcp.policy.facts import HOLE, SPREAD, Command, Embedded, Fact, Import, Unknown, Word, filled, joined
from sandboxmcp.policy.programs.effects import leading
from sandboxmcp.policy.programs.knowledge import Knowledge, Program, Reading, read_command_line
from sandboxmcp.policy.programs.switches import decoded

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_CONVERSION = re.compile(r"%[-+ #0-9.]*[a-zA-Z]")
_NUMBERED = frozenset("clang g++ gcc gem java node php perl pip pypy python ruby".split())
"""Programs that come with a version in their names: `python$version` is python, whichever."""
_STANDARD_INPUT = re.compile(r"-|/dev/stdin|/dev/fd/0|/proc/[^/]+/(?:task/[^/]+/)?fd/0")
_OTHER_INPUT = re.compile(r"/dev/fd/.*|/proc/[^/]+/(?:task/[^/]+/)?fd/.*")
SCRIPT_FILE = "script-file"
"""Stands for the language of a variable that names a file of shell code, such as `BASH_ENV`."""
_MOST_LAYERS = 32
_MOST_ADDED = 1_000
_MOST_REPLACED = 16


def expand_command(command: Command, knowledge: Knowledge) -> Iterator[Fact]:
    """The command itself, then every command and piece of code that it starts in turn."""
    waiting = [command]
    layers = 0
    while waiting:
        layers += 1
        if layers > _MOST_LAYERS:
            yield Unknown(command.line, f"what {command.name} starts through more than {_MOST_LAYERS} layers")
            return
        current = waiting.pop()
        yield current
        if not current.sure:
            yield Unknown(current.line, f"whether {current.name} or another program runs")
        program = knowledge.program(current.name)
        if program is None:
            continue
        reading = read_command_line(program, current.args)
        if reading.has(program.inert):
            continue
        if reading.unlisted and program.then in ("command", "code"):
            yield Unknown(current.line, f"option {reading.unlisted[0]} of {current.name}")
        yield from _code_of(current, program, reading)
        waiting += [sourced(word, current.substituted) for word in reading.values(program.sources)]
        if program.then == "command":
            yield from _environment(reading, knowledge)
        for words in _inner_lines(current, program, reading):
            inner = command_of(words, current)
            if isinstance(inner, Command):
                waiting.append(inner)
            elif inner is not None:
                yield inner


def sourced(path: Word, printed: Word | None) -> Command:
    """A shell reads this file of commands; `printed`: its text, where it is a `<( )` that spells it out."""
    return Command(path.line, ".", (path,), substituted=printed)


def _environment(reading: Reading, knowledge: Knowledge) -> Iterator[Fact]:
    """Variables that `env` and its like set, from which the program that they start takes commands."""
    for word in takewhile(lambda one: _ASSIGNMENT.match(one.text), reading.operands):
        name, _, text = word.text.partition("=")
        language = knowledge.variables.get(name)
        if language == SCRIPT_FILE:
            yield from expand_command(sourced(Word(text, word.line), None), knowledge)
        elif language is not None and text.strip(HOLE):
            yield Embedded(word.line, language, filled(text, language))


def command_of(words: Sequence[Word], outer: Command) -> Command | Unknown | None:
    """The command that `words` start, with the streams of `outer`; assignments before the program are skipped."""
    start = 0
    while start < len(words) and _ASSIGNMENT.match(words[start].text):
        start += 1
    if start == len(words):
        return None
    program = words[start]
    name = program.text.rsplit("/", 1)[-1]
    if name.lower().endswith(".exe"):  # a program of Windows, which other systems' shells can start too
        name = name.rsplit("\\", 1)[-1][:-4].lower()
    if name.rstrip(HOLE) in _NUMBERED:
        name = name.rstrip(HOLE)
    if HOLE in name:
        return Unknown(program.line, "which program runs")
    if not name:
        return None
    path = program.text if "/" in program.text else ""
    sure = all(word.sure for word in words[: start + 1])
    return replace(outer, line=program.line, name=name, args=tuple(words[start + 1 :]), path=path, sure=sure)


def _inner_lines(command: Command, program: Program, reading: Reading) -> Iterator[Sequence[Word]]:
    if program.then == "command":
        operands = list(reading.operands)
        while operands and (_ASSIGNMENT.match(operands[0].text) or operands[0].text == "-"):  # `env -` is `env -i`
            operands.pop(0)
        inner = operands[program.skip :]
        adds = program.adds_unless is not None and not reading.has(program.adds_unless)
        if program.adds_unless and not adds:
            yield from _replaced(inner, command, [word.text for word in reading.values(program.adds_unless)] or ["{}"])
        else:
            yield [*inner, *_added(command)] if inner and adds else inner
    roots = leading(command.args) if program.starts else []
    start: int | None = None
    for at, word in enumerate(command.args if program.starts else ()):
        if start is None and word.text in program.starts:
            start = at + 1 + sum(1 for _ in takewhile(lambda one: one.text.startswith("-"), command.args[at + 1 :]))
        elif start is not None and word.text in {";", "+"}:
            yield _found_filled_in(command.args[start:at], roots)
            start = None
    if start is not None:
        yield _found_filled_in(command.args[start:], roots)


def _added(command: Command) -> list[Word]:
    """What xargs adds: the words of its input where they are spelled out."""
    if command.stdin is None or HOLE in command.stdin.text:
        return [Word(HOLE, command.line)]
    return [Word(text, command.stdin.line) for text in command.stdin.text.split()[:_MOST_ADDED]]


def _replaced(words: Sequence[Word], command: Command, marks: Sequence[str]) -> Iterator[Sequence[Word]]:
    """The command line of `xargs -I{}` for each line of the input, where those are spelled out and few."""
    lines = [line.strip() for line in command.stdin.text.splitlines()] if command.stdin is not None else [HOLE]
    fillings = lines if len(lines) <= _MOST_REPLACED else [*lines[:_MOST_REPLACED], HOLE]
    if not any(mark in word.text for word in words for mark in marks if mark):
        fillings = [""]
    for filling in fillings:
        texts = [word.text for word in words]
        for mark in filter(None, marks):
            texts = [text.replace(mark, filling) for text in texts]
        yield [Word(text, word.line) for text, word in zip(texts, words, strict=True)]


def _found_filled_in(words: Sequence[Word], roots: Sequence[Word]) -> list[Word]:
    """`{}` of find, as the folders that are searched: what holds for them holds for what is found there."""
    return [filled for word in words for filled in (roots if word.text == "{}" else [word])]


def _code_of(command: Command, program: Program, reading: Reading) -> Iterator[Fact]:
    yield from _carried(command, program, reading)
    paths = [_placed(word.text, command.cwd) for word in reading.values(program.script)]
    if any(_OTHER_INPUT.fullmatch(path) and not _STANDARD_INPUT.fullmatch(path) for path in paths):
        if command.substituted is not None:
            yield from _embedded([command.substituted], program.language or "shell", command)
        else:
            yield Unknown(command.line, f"the code that {command.name} reads from another command")
    if program.then == "code" and program.inputs:
        yield from _for_each_input(command, program, reading)
    elif program.then == "code":
        yield from _embedded(reading.operands[program.skip :], program.language or "shell", command)
    elif program.then == "script" and not reading.has(program.code | program.script):
        yield from _embedded(reading.operands[:1], program.language or "shell", command)
    elif reading.operands and reading.operands[0].text in program.code_after:
        code = [word for word in reading.operands[1:] if not word.text.startswith("-")][:1]
        yield from _embedded(code, program.language or "shell", command)
    language = program.language or "python"
    named = [word for word in reading.values(program.module) if word.known]
    yield from (Import(word.line, word.text.split("=")[0].replace("::", "."), language) for word in named)
    if program.language is None:
        return
    for value in reading.values(program.encoded):
        if (plain := decoded(value.text)) is None:
            yield Unknown(value.line, f"the code that {command.name} decodes")
        else:
            yield Embedded(value.line, program.language, plain, command.stdout, command.stderr)
    if program.switches and (words := [*reading.values(program.code), *reading.operands]) and joined(words) != "-":
        yield from _embedded(words, program.language, command)
    elif reading.has(program.code) and not program.switches:
        values = reading.values(program.code) or list(reading.operands[:1])
        given = reading.operands[1:] if not reading.values(program.code) else reading.operands
        for value in values:
            yield from _embedded([value], program.language, command, given[1:])
    elif command.stdin is not None and _script_is_stdin(program.script, reading):
        yield from _embedded([command.stdin], program.language, command)
    elif (
        program.stdin is not None
        and not reading.has(program.module | program.encoded)
        and _reads_stdin(program.stdin, reading, program.skip, command.cwd)
    ):
        if command.stdin is not None:
            yield from _embedded([command.stdin], program.language, command)
        elif command.piped:
            yield Unknown(command.line, f"the code that {command.name} reads from a pipe")
    elif reading.operands and _OTHER_INPUT.fullmatch(_placed(reading.operands[0].text, command.cwd)):
        if (text := command.substituted or command.stdin) is not None:
            yield from _embedded([text], program.language, command)
            return
        yield Unknown(command.line, f"the code that {command.name} reads from another command")


def _for_each_input(command: Command, program: Program, reading: Reading) -> Iterator[Fact]:
    """`parallel CODE ::: a b` runs the code with each input, quoted; without code each input is code itself."""
    words = list(reading.operands[program.skip :])
    marks = [at for at, word in enumerate(words) if word.text in program.inputs]
    code, inputs = (
        words[: marks[0]] if marks else words,
        [word for word in words[marks[0] + 1 :] if word.text not in program.inputs] if marks else [],
    )
    if not marks and command.stdin is not None:
        inputs = [Word(line, command.stdin.line, command.stdin.sure) for line in command.stdin.text.splitlines() if line.strip()]
    text = joined(code)
    if code:
        yield from _embedded(code, "shell", command)
    if len(inputs) > _MOST_REPLACED or (not inputs and text in ("", "{}")):
        yield Unknown(command.line, f"the code that {command.name} runs for each input")
    for word in inputs[:_MOST_REPLACED]:
        quoted = shlex.quote(word.text)
        line = word.text if text in ("", "{}") else text.replace("{}", quoted) if "{}" in text else f"{text} {quoted}"
        yield from _embedded([replace(word, text=line)], "shell", command)


def _reads_stdin(forced: frozenset[str], reading: Reading, skip: int, cwd: str) -> bool:
    if len(reading.operands) <= skip or reading.has(forced):
        return True
    return _STANDARD_INPUT.fullmatch(_placed(reading.operands[0].text, cwd)) is not None


def _placed(path: str, cwd: str) -> str:
    """The path of a script without detours; `-` stays."""
    placed = posixpath.normpath(posixpath.join(cwd, path)) if path != "-" else path
    return "/" + placed.lstrip("/") if placed.startswith("/") else placed


def _script_is_stdin(script: frozenset[str], reading: Reading) -> bool:
    """The grammar loses a `-` right before a heredoc, so a value that is missing is one too."""
    values = [value for name, value in reading.options if name in script]
    return any(value is None or _STANDARD_INPUT.fullmatch(value.text) for value in values)


def _carried(command: Command, program: Program, reading: Reading) -> Iterator[Fact]:
    """Command lines inside the values of options, inside operands, or inside the lines of standard input."""
    for option, pattern in program.carries.items():
        words = reading.values(frozenset({option})) if option else reading.operands
        if option.startswith(">"):
            places = [at for at, word in enumerate(command.args) if word.text == option[1:]][:1]
            words = [Word(joined(command.args[at + 1 :]), command.line) for at in places]
        elif option == "<":
            text = command.stdin.text if command.stdin is not None else ""
            words = [Word(line, command.line) for line in text.split("\n")]
        for word in words:
            if (found := re.match(pattern, word.text, re.DOTALL)) and (code := next(filter(None, found.groups()), "").strip(HOLE)):
                yield Embedded(word.line, "shell", filled(code, "shell"), command.stdout, command.stderr)


def _embedded(words: Sequence[Word], language: str, command: Command, given: Sequence[Word] | None = None) -> Iterator[Fact]:
    """Code out of words. What the outer shell fills in becomes a name that no rule knows."""
    if not words:
        return
    code = joined(words)
    if not code.replace(HOLE, "").strip("* "):
        yield Unknown(words[0].line, f"the code that {command.name} runs")
        return
    if not all(word.sure for word in words) or (language == "shell" and any(word.built for word in words)):
        yield Unknown(words[0].line, f"all of the code that {command.name} runs")
    arguments = None if not given or any(SPREAD in word.text for word in given) else tuple(word.text for word in given)
    line, stdin = words[0].line, command.stdin if words[0] is not command.stdin else None
    text = Word(stdin.text, stdin.line - line + 1) if stdin is not None else None
    yield Embedded(line, language, filled(code, language), command.stdout, command.stderr, arguments, text, command.piped)


def printed_by(command: Command, knowledge: Knowledge) -> Word | None:
    """The text that a command writes, where its words spell it out (`echo`, `printf`, `cat` of a heredoc)."""
    program = knowledge.program(command.name)
    if program is None:
        return None
    reading = read_command_line(program, command.args)
    if program.prints and reading.operands:
        text = _formatted(command, reading.operands).replace("\\n", "\n").replace("\\t", "\t")
        return Word(text, reading.operands[0].line, all(word.sure for word in reading.operands))
    return command.stdin if program.passes and (not reading.operands or command.name == "tee") else None


def _formatted(command: Command, operands: Sequence[Word]) -> str:
    """The operands as echo prints them, or as printf fills them into the first."""
    if command.name != "printf" or "%" not in operands[0].text:
        return joined(operands)
    values = iter([word.text for word in operands[1:]])
    return _CONVERSION.sub(lambda _: next(values, ""), operands[0].text)


def aliases_of(command: Command) -> dict[str, str]:
    """What `alias a=b` and `hash -p b a` define. Many shells expand none in a script; that an agent's does cannot be excluded."""
    if command.name == "hash":
        texts = [word.text.removeprefix("-p") for word in command.args]
        told = any(word.text.startswith("-p") for word in command.args)
        return dict.fromkeys(texts[-1:], next(filter(None, texts))) if told and any(texts) else {}
    if command.name != "alias":
        return {}
    pairs = [word.text.partition("=") for word in command.args]
    return {name: text for name, equals, text in pairs if equals and text.strip()}
