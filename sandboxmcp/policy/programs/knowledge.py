"""What is known of programs and functions: how options are read, which of them run other code. All of it is data in packs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sandboxmcp.policy.facts import SPREAD, Access, Word
from sandboxmcp.policy.programs.code_files import Loader, Maker
from sandboxmcp.policy.programs.switches import read_switches

Then = Literal["command", "code", "script"]
Runs = Literal["code", "argv", "words", "exec", "import", "line", "pipe", "read", "write", "remove", "move", "open"]
Operands = Literal["all", "first", "rest", "last", "but-last", "leading", "prefix", "none"]


@dataclass(frozen=True, slots=True)
class TouchRule:
    """Which operands of a program are files that it touches, and how."""

    access: Access
    operands: Operands = "all"
    when: frozenset[str] = frozenset()
    """Only with one of these options or words."""
    unless: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """Options whose values are such files too; with one of them the last operand is like the others."""
    prefix: str = ""
    """Of the words, for `operands = "prefix"`."""


@dataclass(frozen=True, slots=True)
class Program:
    """How one program reads its command line. Options are spelled with their dashes; all spellings lead to one canonical name."""

    names: tuple[str, ...]
    canonical: Mapping[str, str] = field(default_factory=dict)
    """Every spelling to the canonical name: the last of those written together in the pack."""
    valued: frozenset[str] = frozenset()
    """Canonical names of the options that take a value."""
    quiet: frozenset[str] = frozenset()
    """Any of these silences it."""
    noisy: frozenset[str] = frozenset()
    """Any of these makes it talk although it is silenced."""
    file: frozenset[str] = frozenset()
    """Options whose value is the file that its output goes to."""
    files: frozenset[str] = frozenset()
    """Options that send output to files which it names itself."""
    all_files: frozenset[str] = frozenset()
    """Options with which every operand gets a file of its own."""
    targets: frozenset[str] = frozenset()
    """Options whose values count as operands."""
    each: bool = False
    """Every operand needs an output option of its own (curl)."""
    writes: bool = False
    """It writes files by itself unless an option says otherwise (wget)."""
    silent: bool = False
    """It says nothing by itself."""
    then: Then | None = None
    """What its operands are: another command line, words that are joined to code, or code in the first of them."""
    skip: int = 0
    """Operands before them."""
    adds_unless: frozenset[str] | None = None
    """Not None: it adds words from its input to that command line, unless one of these options says where they go (xargs)."""
    inputs: frozenset[str] = frozenset()
    """Words behind which the inputs stand for which it runs its code, each in turn; without code they are code (parallel)."""
    starts: frozenset[str] = frozenset()
    """Words that begin another command line, which ends at `;` or `+` (find)."""
    inert: frozenset[str] = frozenset()
    """With one of these it runs nothing."""
    language: str | None = None
    """Language of the code it runs."""
    code: frozenset[str] = frozenset()
    """Options that carry code: in their value, or in the first operand when they take none."""
    code_after: frozenset[str] = frozenset()
    """Words before an operand that is code (`deno eval`)."""
    carries: Mapping[str, str] = field(default_factory=dict)
    """Option, or nothing for the operands → a pattern whose first group is a command line that it runs."""
    module: frozenset[str] = frozenset()
    """Options whose value is a module to run."""
    encoded: frozenset[str] = frozenset()
    """Options whose value is code in PowerShell's encoding, which is base64."""
    switches: bool = False
    """It reads its command line as programs of Windows do; code goes on to the end of the line."""
    stdin: frozenset[str] | None = None
    """Not None: without operands, or with one of these options, its standard input is code."""
    script: frozenset[str] = frozenset()
    """Options whose value is the file with its code; `-` is standard input."""
    sources: frozenset[str] = frozenset()
    """Options whose value is a file of shell code that it runs as well."""
    mixes: bool = False
    """Options may follow operands although its operands are another's, or code."""
    plus: bool = False
    """It is a shell: `+x` is an option too, and the value of a short option is the next word (`bash -oc pipefail CODE`)."""
    prints: bool = False
    """Its output is its operands."""
    passes: bool = False
    """Without operands its output is its input."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """Canonical names of the options that the broker takes, with what it does; see policy/programs/curl_options.py."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Canonical names of options that the broker refuses for a reason, with the reason."""
    touches: tuple[TouchRule, ...] = ()
    """What it does to files."""
    methods: frozenset[str] = frozenset()
    """Of HTTP, with which the broker lets it fetch; empty: the broker does not know it."""

    @property
    def permutes(self) -> bool:
        """Options may follow operands; not so where the operands belong to another program."""
        return self.mixes or (self.then is None and self.language is None and not self.starts)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a language that runs something out of its arguments, or touches a file."""

    names: tuple[str, ...]
    language: str
    runs: Runs
    code: str = "shell"
    """Language of the code, for `runs = "code"`."""
    argument: int = 0
    """Position of the argument, from 0."""
    receiver: bool = False
    """It is a method, and what it belongs to is the file."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All programs and functions, by name."""

    programs: Mapping[str, Program] = field(default_factory=dict)
    functions: Mapping[tuple[str, str], Function] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment that hold code, with its language; `file`: they name a file with code."""
    makers: Mapping[str, tuple[Maker, ...]] = field(default_factory=dict)
    loaders: Mapping[str, tuple[Loader, ...]] = field(default_factory=dict)

    def program(self, name: str) -> Program | None:
        """`python3.11` and `python-3` are found as `python` where nothing else is known of them."""
        return self.programs.get(name) or self.programs.get(_VERSION.sub("", name))

    def makers_of(self, name: str) -> tuple[Maker, ...]:
        return self.makers.get(name) or self.makers.get(_VERSION.sub("", name), ())

    def loaders_of(self, name: str) -> tuple[Loader, ...]:
        return self.loaders.get(name) or self.loaders.get(_VERSION.sub("", name), ())


_VERSION = re.compile(r"-?\d[\d.]*$")


@dataclass(frozen=True, slots=True)
class Reading:
    """A command line read by what is known of its program."""

    options: tuple[tuple[str, Word | None], ...] = ()
    """Canonical name and value, in order."""
    operands: tuple[Word, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Options that the pack does not know, as written."""
    spread: bool = False
    """Words known only at run time may hold options."""

    def has(self, names: frozenset[str]) -> bool:
        return any(name in names for name, _ in self.options)

    def values(self, names: frozenset[str]) -> list[Word]:
        return [value for name, value in self.options if name in names and value is not None]


class _Reader:
    """One pass over the words. getopt_long(3): clusters, attached values, `--name=value`, prefixes, `--`."""

    def __init__(self, program: Program, words: Sequence[Word]) -> None:
        self.program = program
        self.words = words
        self.at = 0
        self.options: list[tuple[str, Word | None]] = []
        self.operands: list[Word] = []
        self.unlisted: list[str] = []
        self.spread = False

    def read(self) -> Reading:
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            if word.text == "--":
                break
            if word.text.startswith("--"):
                self.long(word)
            elif word.text.startswith("-") and word.text != "-":
                self.short(word)
            elif self.program.plus and word.text.startswith("+"):
                self.plus(word)
            else:
                self.operands.append(word)
                if not self.program.permutes and len(self.operands) > self.program.skip:
                    break
            if self.options and self.options[-1][0] in self.program.code & self.program.valued:
                break
        rest = self.words[self.at :]
        self.operands += rest
        self.spread = any(word.text.startswith(SPREAD) for word in self.words)
        return Reading(tuple(self.options), tuple(self.operands), tuple(self.unlisted), self.spread)

    def long(self, word: Word) -> None:
        name, has_value, value = word.text.partition("=")
        found = self.find_long(name)
        if found is None:
            self.unlisted.append(name)
        elif found not in self.program.valued:
            self.options.append((found, None))
        else:
            self.options.append((found, Word(value, word.line) if has_value else self.next()))

    def find_long(self, name: str) -> str | None:
        spellings = self.program.canonical
        if name in spellings:
            return spellings[name]
        near = {canonical for spelling, canonical in spellings.items() if spelling.startswith(name)} if len(name) > 2 else set()
        return near.pop() if len(near) == 1 else None

    def short(self, word: Word) -> None:
        """A cluster such as `-sSo FILE`; spellings of several letters (`-nv`, `-exec`) are tried before single letters."""
        text, at = word.text, 1
        while at < len(text):
            width = next((n for n in (len(text) - at, 2, 1) if "-" + text[at : at + n] in self.program.canonical), 0)
            if not width:
                self.unlisted.append("-" + text[at])
                at += 1
                continue
            name = self.program.canonical["-" + text[at : at + width]]
            at += width
            if name in self.program.valued and self.program.plus and self.next_is_name():
                self.options.append((name, self.next()))
                continue
            if name in self.program.valued:
                self.options.append((name, Word(text[at:], word.line) if at < len(text) else self.next()))
                return
            self.options.append((name, None))

    def plus(self, word: Word) -> None:
        """A cluster that sets options back. `+c` and `+s` are `-c` and `-s` to a shell; the others count no more."""
        before, self.options = self.options, []
        self.short(Word("-" + word.text[1:], word.line))
        ends = {name for name, _ in self.options} - self.program.code - (self.program.stdin or frozenset())
        kept = [one for one in self.options if one[0] not in ends]
        self.options = [one for one in before if one[0] not in ends] + kept

    def next_is_name(self) -> bool:
        return self.at < len(self.words) and self.words[self.at].text[:1] not in ("-", "+", "")

    def next(self) -> Word | None:
        self.at += 1
        return self.words[self.at - 1] if self.at <= len(self.words) else None


def read_command_line(program: Program, words: Sequence[Word]) -> Reading:
    """Options and operands of `words`, the program itself left out."""
    if program.switches:
        options, operands, unlisted = read_switches(program, words)
        return Reading(tuple(options), tuple(operands), tuple(unlisted), any(word.text.startswith(SPREAD) for word in words))
    return _Reader(program, words).read()
