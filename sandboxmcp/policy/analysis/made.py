"""The files that code makes: by redirections, by programs that packs know to write, and by copying what it has made before."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sandboxmcp.policy.facts import HOLE, Command, Fact, Touch, Written, sink_of
from sandboxmcp.policy.paths import Places, resolved
from sandboxmcp.policy.programs.code_files import Maker, can_be_one, is_meant, named_by, wild
from sandboxmcp.policy.programs.effects import effects_of
from sandboxmcp.policy.programs.knowledge import Knowledge, Program, read_command_line

ANY = "**"
_NO_CONTENT = frozenset({"chmod", "chown", "chgrp", "chattr", "mkdir", "touch", "truncate"})
"""Programs that touch a file and put nothing into it."""
_COPIES = frozenset({"cp", "mv", "ln", "install", "rsync", "scp"})
_TARGETS = frozenset({"--target-directory"})
_OUTPUTS = frozenset({"-o", "--output", "--out", "--outfile", "--output-file", "-out"})
"""Options that name an output file for nearly every program that has them."""
_MOST_TEXT = 1 << 20
_MOST_FILES = 2_000
_MOST_PARTS = 64
"""Of a path, from its start."""
_MOST_COMPARED = 60_000
"""Paths of which a part is not known, each with another; about a quarter of a second."""


@dataclass(slots=True)
class File:
    """A file, or some, that the code makes."""

    path: str
    """Resolved, with HOLE for what is not known; ANY for any file."""
    text: str | None = None
    """What stands in it, where the code spells that out."""
    kept: bool = False
    """What stands in it stood in a file before the code ran, or is an edit of that: only a run by this name counts."""
    tree: bool = False
    """It may be a folder."""
    by: int = -1
    """The one command that makes it, by its place among all; -1: several, or none."""

    @property
    def guessed(self) -> bool:
        """Nothing of its name is known."""
        return self.path != ANY and not self.path.strip(HOLE + "./")


@dataclass(slots=True)
class Files:
    """All files that one piece of code makes, by path."""

    places: Places
    found: dict[str, File] = field(default_factory=dict)
    loose: dict[str, File] = field(default_factory=dict)
    """Those of whose paths a part is not known."""
    below: dict[str, list[File]] = field(default_factory=dict)
    """Those that stand in a folder, or deeper."""
    compared: int = 0
    inputs: dict[int, list[str]] = field(default_factory=dict)
    """The files that are read in each line of the code."""

    @property
    def is_full(self) -> bool:
        """Whether there were more comparisons than are made."""
        return self.compared > _MOST_COMPARED

    def path(self, path: str, cwd: str = "") -> str:
        path = wild(path.removeprefix("~+/").replace("~-/", HOLE + "/")) if path != ANY else path
        return ANY if path == ANY else resolved(path, "" if path.startswith(HOLE) else wild(cwd), self.places)

    def add(self, file: File) -> None:
        """Several that write one file: their texts stand in it together."""
        before = self.found.get(file.path)
        if before is not None:
            known = before.text is not None and file.text is not None and len(before.text) + len(file.text) < _MOST_TEXT
            file.text = f"{before.text}{file.text}\n" if known else None
            file.kept, file.tree = before.kept and file.kept, before.tree or file.tree
            before.text, before.kept, before.tree = file.text, file.kept, file.tree
            before.by = file.by if before.by == file.by else -1
            file = before
        elif len(self.found) >= _MOST_FILES:
            file = File(ANY)
        elif file.text is not None:
            file.text = f"{file.text}\n"
        self.found[file.path] = file
        if HOLE in file.path or file.path == ANY:
            self.loose[file.path] = file
        elif before is None:
            for at in [at for at, letter in enumerate(file.path) if letter == "/" and at][:_MOST_PARTS]:
                self.below.setdefault(file.path[:at], []).append(file)

    def at(self, path: str) -> list[File]:
        """The files that a program may read which is given the path: at it, or below it."""
        if HOLE in path or path == ".":
            return self.fitting(path, self.found.values())
        above = [path[:at] for at, letter in enumerate(path) if letter == "/" and at][:_MOST_PARTS]
        above += ["."] if not path.startswith(("/", "~", "..")) else []
        found = [self.found[path]] if path in self.found else []
        found += [self.found[folder] for folder in above if folder in self.found and self.found[folder].tree]
        return found + self.below.get(path, []) + self.fitting(path, self.loose.values())

    def fitting(self, path: str, files: Collection[File]) -> list[File]:
        """Those of the files that may stand at the path. Beyond some number of comparisons: a file of which nothing is known."""
        self.compared += len(files)
        if self.compared > _MOST_COMPARED:
            return [File(ANY)]
        inside = path == "."
        return [
            file
            for file in files
            if file.path == ANY
            or can_be_one(file.path, path)
            or (inside and not file.path.startswith(("/", "~", "..", HOLE)))
            or file.path.startswith(path + "/")
        ]


def files_made(facts: Sequence[Fact], knowledge: Knowledge, places: Places) -> Files:
    """Every file that the facts say is made, in any order: loops, functions and jobs run in another one than they are written."""
    files, at = Files(places), 0
    for fact in facts:
        if isinstance(fact, Written) and _is_file(fact.path):
            files.add(File(files.path(fact.path), fact.text, by=at))
        elif isinstance(fact, Touch) and fact.access == "write" and fact.language != "shell" and _is_file(fact.path):
            files.add(File(files.path(fact.path, fact.cwd)))
        elif isinstance(fact, Touch) and fact.access == "read":
            files.inputs.setdefault(fact.line, []).append(files.path(fact.path, fact.cwd))
        at += isinstance(fact, Command)
    for at, command in enumerate(fact for fact in facts if isinstance(fact, Command)):
        for file in list(_made_by(command, files, knowledge)):
            file.by = at
            files.add(file)
    return files


def _is_file(path: str) -> bool:
    return sink_of(path) == "file"


def _made_by(command: Command, files: Files, knowledge: Knowledge) -> Iterator[File]:
    makers = knowledge.makers_of(command.name)
    kept = any(maker.content == "kept" for maker in makers)
    if command.name in _COPIES:
        yield from _copied(command, files, knowledge)
    elif command.name not in _NO_CONTENT and command.name not in ("tee", "cat"):
        touched = [fact for fact in effects_of(command, knowledge) if isinstance(fact, Touch) and fact.access == "write"]
        yield from (File(files.path(one.path, one.cwd), kept=kept) for one in touched if _is_file(one.path))
    yield from (File(files.path(path, command.cwd)) for path in _outputs(command, knowledge) if _is_file(path))
    for maker in makers:
        if is_meant(maker, command.args):
            yield from _by_maker(command, maker, files)


def _by_maker(command: Command, maker: Maker, files: Files) -> Iterator[File]:
    fresh = maker.content == "opaque" or command.stdin is not None or _reads_made(command, files)
    if fresh or maker.content == "kept":
        for path in [*named_by(maker, command.args), *maker.files]:
            if _is_file(path):
                yield File(files.path(path, command.cwd), kept=not fresh, tree=True)


def _reads_made(command: Command, files: Files) -> bool:
    """Whether the command is given a file that the same code makes, or the output of another command."""
    inputs = files.inputs.get(command.line, []) if command.piped else []
    if command.piped and not inputs:
        return True
    given = (files.path(word.text, command.cwd) for word in command.args if word.text[:1] != "-" and word.text.strip(HOLE + "./"))
    return any(not file.kept and not file.guessed for path in [*given, *inputs] for file in files.at(path)[:1])


def _copied(command: Command, files: Files, knowledge: Knowledge) -> Iterator[File]:
    """Copies and links: of files that the code makes, or of what was there before."""
    reading = read_command_line(knowledge.program(command.name) or Program((command.name,)), command.args)
    words, flagged = [word.text for word in reading.operands], [word.text for word in reading.values(_TARGETS)]
    sources, target = (words, flagged[0]) if flagged else (words[:-1], words[-1] if words else "")
    if not target:
        return
    if not sources:  # `ln -s ../a` makes `a` here
        sources, target = [target], "."
    place = files.path(target, command.cwd)
    is_folder = bool(flagged) or target.endswith("/") or posixpath.basename(target) in (".", "..")
    if not is_folder and len(sources) == 1:
        yield from _of_source(sources[0], place, command, files)
    for source in sources:
        leaf = wild(posixpath.basename(source.rpartition(":")[2].rstrip("/")) or HOLE)
        yield from _of_source(source, resolved(posixpath.join(place, leaf), "", files.places), command, files)


def _of_source(source: str, target: str, command: Command, files: Files) -> Iterator[File]:
    path = files.path(source, command.cwd)
    found = [file for file in files.at(path) if not (file.guessed and path.strip(HOLE + "./"))]
    if not found:
        yield File(target, kept=":" not in source, tree=True)  # `host:file` comes from another machine
    for file in found:
        below = file.path[len(path) :] if file.path.startswith(path + "/") else ""
        yield File(target + below, file.text.removesuffix("\n") if file.text is not None else None, kept=file.kept, tree=file.tree)


def _outputs(command: Command, knowledge: Knowledge) -> Iterable[str]:
    """The files that a program such as curl names by its options, or after its URLs."""
    program = knowledge.program(command.name)
    if program is None:
        yield from named_by(Maker((), options=_OUTPUTS), command.args) if not knowledge.makers_of(command.name) else ()
    elif program.file or program.files or program.writes:
        reading = read_command_line(program, command.args)
        yield from (word.text for word in reading.values(program.file))
        if reading.has(program.files | program.all_files) or (program.writes and not reading.has(program.file)):
            yield from (f"{HOLE}/{word.text.rsplit('/', 1)[-1] or HOLE}" for word in reading.operands)
