"""Scripts that the same code writes and then runs: what they hold is judged where the code spells it out, and unknown elsewhere."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from sandboxmcp.policy.facts import HOLE, Command, Embedded, Fact, Touch, Unknown, Written, filled
from sandboxmcp.policy.programs.knowledge import Knowledge, read_command_line

_NO_CONTENT = frozenset({"chmod", "chown", "chgrp", "chattr", "mkdir", "touch", "truncate"})
"""Programs that touch a file and put nothing into it."""
_MOST_TEXT = 1 << 20


def scripts_run(facts: Sequence[Fact], knowledge: Knowledge) -> Iterator[Fact]:
    """For every file that the code writes and runs, in any order: the code in it, or that it is unknown."""
    texts: dict[str, str | None] = {}
    commands = [fact for fact in facts if isinstance(fact, Command)]
    for fact in facts:
        if isinstance(fact, Written):
            _keep(texts, fact.path, fact.text)
    for command in commands:
        _copied(texts, command)
        for path in _outputs(command, knowledge):
            texts.setdefault(_named(path), None)
    by = ""
    for fact in facts:
        by = fact.name if isinstance(fact, Command) else by
        fills = isinstance(fact, Touch) and fact.access == "write" and (fact.language != "shell" or by not in _NO_CONTENT)
        if fills and isinstance(fact, Touch) and HOLE not in fact.path:
            texts.setdefault(_named(fact.path), None)
    if texts:
        for command in commands:
            yield from _run(command, texts, knowledge)


def _outputs(command: Command, knowledge: Knowledge) -> Iterator[str]:
    """The files that a program such as curl names by its options, or after its URLs."""
    program = knowledge.program(command.name)
    if program is not None and (program.file or program.files or program.writes):
        reading = read_command_line(program, command.args)
        yield from (word.text for word in reading.values(program.file) if word.known)
        if reading.has(program.files | program.all_files) or (program.writes and not reading.has(program.file)):
            yield from (word.text.rsplit("/", 1)[-1] or "." for word in reading.operands if word.known)


def _named(path: str) -> str:
    return posixpath.normpath(path)


def _keep(texts: dict[str, str | None], path: str, text: str | None) -> None:
    """What several commands write into one file may all stand in it."""
    before = texts.get(_named(path), "")
    joined = None if before is None or text is None else f"{before}{text}\n"
    texts[_named(path)] = joined if joined is None or len(joined) <= _MOST_TEXT else None


def _copied(texts: dict[str, str | None], command: Command) -> None:
    files = [word.text for word in command.args if not word.text.startswith("-")]
    if command.name in ("cp", "mv", "ln", "install") and len(files) == 2 and _named(files[0]) in texts:
        texts[_named(files[1])] = texts[_named(files[0])]


def _run(command: Command, texts: dict[str, str | None], knowledge: Knowledge) -> Iterator[Fact]:
    program = knowledge.program(command.name)
    direct = command.path or command.name
    if program is None:
        script, language = (direct, "") if "/" in direct else ("", "")
    elif program.language is None or program.then in ("command", "code"):
        return
    else:
        reading = read_command_line(program, command.args)
        inline = program.then == "script" or reading.has(program.code)
        named = reading.values(program.script) or ([] if inline else list(reading.operands[:1]))
        script, language = (named[0].text if named else ""), program.language
    if not script or HOLE in script or _named(script) not in texts:
        return
    text = texts[_named(script)]
    if text is None or not text.replace(HOLE, "").strip():
        yield Unknown(command.line, f"the script {script}, which the same code writes")
    else:
        language = language or _by_first_line(text, knowledge)
        yield Embedded(command.line, language, filled(text, language), command.stdout, command.stderr)


def _by_first_line(text: str, knowledge: Knowledge) -> str:
    """The language that a script's `#!` line names; shell without one."""
    first = text.split("\n", 1)[0]
    names = [word.rsplit("/", 1)[-1] for word in first.removeprefix("#!").split()] if first.startswith("#!") else []
    found = (knowledge.program(name) for name in names if name != "env")
    return next((program.language for program in found if program is not None and program.language), "shell")
