"""Files that the same code makes and then runs: what they hold is judged where the code spells it out, and unknown elsewhere."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from sandboxmcp.policy.analysis.made import ANY, File, Files, files_made
from sandboxmcp.policy.facts import HOLE, Capability, Command, Embedded, Fact, Import, Unknown, Word, filled, joined
from sandboxmcp.policy.paths import Places
from sandboxmcp.policy.programs.code_files import can_be_one, is_meant, named_by
from sandboxmcp.policy.programs.knowledge import Knowledge, Program, read_command_line

_MOST_PAIRS = 40_000
"""Files that are run without being named, times files that are made."""
_MOST_LAYERS = 8
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)
_BY_SUFFIX = {
    "bash": "shell", "bats": "shell", "cjs": "javascript", "cs": "csharp", "ex": "elixir", "exs": "elixir", "go": "go",
    "js": "javascript", "mjs": "javascript", "mk": "make", "php": "php", "pl": "perl", "pm": "perl", "ps1": "powershell",
    "py": "python", "r": "r", "rb": "ruby", "rs": "rust", "sh": "shell", "ts": "typescript", "tsx": "typescript",
}  # fmt: skip
_PACKAGES = frozenset({"__init__", "__main__", "index", "mod"})
"""Files that are loaded by the name of their folder."""
_BINARIES = frozenset({"bin", "sbin"})
_READ_IN = frozenset({".", "source"})
_EDITORS = frozenset({"sed", "gsed"})
_MOST_CHARACTERS = 100_000
_READS_IN = re.compile(
    r"\b(?:run_path|do|load|require\w*|dofile|loadfile|source|include\w*|spec_from_file_location|CDLL|import|use)"
    r"\b[\s(]{0,9}(?:\w{1,20},\s?)?[\"']([^\"'\n]{1,200})[\"']"
)
_WRITES = re.compile(r"\b(?:open|fopen|write\w*|save\w*|dump|copy\w*|move|rename|replace|symlink|link|print|puts)\b|>")


def scripts_run(facts: Sequence[Fact], knowledge: Knowledge, places: Places) -> Iterator[Fact]:
    """For every file that the code makes and runs, in any order: the code in it, or that it is unknown."""
    files = files_made(facts, knowledge, places)
    scripts = [fact.code for fact in facts if isinstance(fact, Embedded) and fact.language not in ("shell", "make")]
    if files.found or scripts:
        yield from dict.fromkeys(_Runs(facts, files, scripts, knowledge).found())


class _Runs:
    """What one piece of code runs, against the files that it makes."""

    def __init__(self, facts: Sequence[Fact], files: Files, scripts: Sequence[str], knowledge: Knowledge) -> None:
        self.facts, self.files, self.scripts, self.knowledge = facts, files, scripts, knowledge
        self.commands = [fact for fact in facts if isinstance(fact, Command)]
        self.pairs = 0
        self.seen: set[tuple[str, ...]] = set()

    def found(self) -> Iterator[Fact]:
        for at, command in enumerate(self.commands):
            program = self.knowledge.program(command.name)
            if program is not None and program.inert and read_command_line(program, command.args).has(program.inert):
                continue
            for path, language in self.named(command, program):
                yield from self.named_file(at, command, path, language)
            for loader in self.knowledge.loaders_of(command.name):
                if is_meant(loader, command.args):
                    inputs = self.files.inputs.get(command.line, []) if loader.operands == "input" else []
                    for path in [*named_by(loader, command.args), *inputs]:
                        yield from self.named_file(at, command, path, loader.language)
                    for pattern in loader.files:
                        yield from self.unnamed_file(at, command, pattern, loader.language)
            if self.pairs > _MOST_PAIRS or self.files.is_full:
                yield Unknown(command.line, "very many files that the same code makes and runs")
                return
        yield from chain(self.by_search_path(), self.imported(), self.read_in())

    def named(self, command: Command, program: Program | None) -> Iterator[tuple[str, str]]:
        """The files that a command runs because its words name them, each with its language where that is known."""
        if "/" in command.path:
            yield command.path, ""
        for word in command.args:
            if (assigned := _ASSIGNED.fullmatch(word.text)) and (language := self.knowledge.variables.get(assigned[1])):
                yield assigned[2] if language == "file" else assigned[2].split(" ")[0], "shell"
        if program is not None and program.language is not None and program.then not in ("command", "code"):
            reading = read_command_line(program, command.args)
            inline = program.then == "script" or reading.has(program.code | program.module)
            named = reading.values(program.script) or ([] if inline else list(reading.operands[:1]))
            if named and program.language != "make":
                yield named[0].text, program.language
            elif program.language == "make":
                yield from ((word.text, "make") for word in reading.values(program.script))

    def named_file(self, at: int, command: Command, path: str, language: str) -> Iterator[Fact]:
        key = (path, command.cwd, language)
        if not path or path == "-" or key in self.seen:
            return
        self.seen.add(key)
        place = self.files.path(path, command.cwd)
        for file in self.files.at(place):
            stood_before = (HOLE in place and self.is_maker(file, at)) or (file.kept and file.by > at)
            guess = file.guessed or not place.strip(HOLE + "./")
            guess = guess and not (file.text or "").replace(HOLE, "").strip() and self.is_existing(command, place)
            if not stood_before and not guess:
                yield from self.judged(command, file, path, language)
        leaf = posixpath.basename(place)
        if leaf and HOLE not in leaf:
            mentioned = re.compile(rf"(?<![\w.-]){re.escape(leaf)}(?![\w-])")
            if any(mentioned.search(code) and _WRITES.search(code) for code in self.scripts):
                yield _unknown(command.line, path)

    def is_existing(self, command: Command, place: str) -> bool:
        """Whether the file is more likely one that was there before than one that was made under a name of which nothing is known.

        Nearly all scripts of a system read in libraries and write logs under names that they are given.
        """
        if HOLE in posixpath.basename(place):
            return not place.strip(HOLE + "./") and command.name in _EDITORS
        return command.name in _READ_IN or place.startswith(("/", HOLE))

    def unnamed_file(self, at: int, command: Command, pattern: str, language: str) -> Iterator[Fact]:
        """A file that a program runs unasked, such as a makefile."""
        self.pairs += len(self.files.found)
        for file in self.files.found.values() if self.pairs <= _MOST_PAIRS else ():
            stood_before = self.is_maker(file, at) or (file.path == ANY and file.by >= at)
            if not file.kept and not stood_before and _is_named_like(file, pattern):
                yield from self.judged(command, file, posixpath.basename(file.path), language)

    def is_maker(self, file: File, at: int) -> bool:
        """Whether the command itself makes the file, or runs inside the one that does: what it runs stood there before."""
        if not 0 <= file.by <= at <= file.by + _MOST_LAYERS or self.commands[file.by].line != self.commands[at].line:
            return False
        command = self.commands[at]
        line = joined([Word(command.path or command.name, 0), *command.args])
        return file.by == at or joined(self.commands[file.by].args).endswith(line)

    def judged(self, command: Command, file: File, name: str, language: str) -> Iterator[Fact]:
        text = file.text
        if text is None or not text.replace(HOLE, "").strip():
            yield _unknown(command.line, name)
            return
        suffix = posixpath.basename(file.path).rpartition(".")[2].lower()
        language = _BY_SUFFIX.get(suffix, language) or _by_first_line(text, self.knowledge)
        if language == "package":
            language, text = "shell", _package_scripts(text)
        yield Embedded(command.line, language, filled(text, language), command.stdout, command.stderr)

    def by_search_path(self) -> Iterator[Fact]:
        """Programs that are named without a folder, where the code puts a file of this name into a folder of programs."""
        by_name = {command.name: command for command in self.commands if not command.path}
        set_anew = any(isinstance(fact, Capability) and fact.name == "search-path" for fact in self.facts)
        set_anew = set_anew or any(word.text.startswith("PATH=") for command in self.commands for word in command.args)
        for file in self.files.found.values():
            folder, name = posixpath.split(file.path)
            if name in by_name and not file.kept and (set_anew or posixpath.basename(folder) in _BINARIES):
                yield from self.judged(by_name[name], file, name, "")

    def read_in(self) -> Iterator[Fact]:
        """Files that code of other languages names as code: `require("./a")`, `load "a"`, `runpy.run_path("a")`."""
        named = {posixpath.basename(found[1]) for code in self.scripts for found in _READS_IN.finditer(code[:_MOST_CHARACTERS])}
        for file in self.files.found.values() if named else ():
            leaf = posixpath.basename(file.path)
            if leaf in named and not leaf.endswith(".json") and not file.kept:
                yield _unknown(1, leaf)

    def imported(self) -> Iterator[Fact]:
        imports = {part: fact for fact in self.facts if isinstance(fact, Import) for part in re.split(r"[./:]+", fact.name)}
        for file in self.files.found.values() if imports else ():
            folder, name = posixpath.split(file.path)
            stem, _, suffix = name.rpartition(".")
            stem = posixpath.basename(folder) if stem in _PACKAGES else stem
            if stem in imports and suffix in _BY_SUFFIX and not file.kept:
                yield from self.judged(Command(imports[stem].line, stem), file, name, "")


def _unknown(line: int, name: str) -> Unknown:
    return Unknown(line, f"the script {name.replace(HOLE, '…')}, which the same code writes")


def _is_named_like(file: File, pattern: str) -> bool:
    """Whether the file's name, of which something must be known, fits one that a program looks for."""
    if file.path == ANY:
        return True
    parts, wanted = file.path.split("/"), pattern.replace("*", HOLE).split("/")
    if not parts[-1].strip(HOLE) or (HOLE in wanted[-1] and (parts[-1].endswith(HOLE) or len(parts) < len(wanted))):
        return False
    if len(parts) < len(wanted) and parts[0].startswith(HOLE):
        wanted = wanted[-len(parts) + 1 :]
    if HOLE in wanted[-1] and not all(part.strip(HOLE) for part in parts[-len(wanted) :]):
        return False
    return len(parts) >= len(wanted) and all(map(can_be_one, parts[-len(wanted) :], wanted))


def _package_scripts(text: str) -> str:
    """The command lines in a package.json; a command of unknown name where it is none."""
    try:
        scripts = json.loads(text.replace(HOLE, "")).get("scripts", {})
        return "\n".join(str(script) for script in scripts.values()) or ":"
    except (ValueError, AttributeError, RecursionError):
        return '"$scripts"'


def _by_first_line(text: str, knowledge: Knowledge) -> str:
    """The language that a script's `#!` line names; shell without one."""
    first = text.split("\n", 1)[0]
    names = [word.rsplit("/", 1)[-1] for word in first.removeprefix("#!").split()] if first.startswith("#!") else []
    found = (knowledge.program(name) for name in names if name != "env")
    return next((program.language for program in found if program is not None and program.language), "shell")
