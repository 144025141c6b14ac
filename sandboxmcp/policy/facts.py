"""What an analysis finds in code: plain facts, each with its line, for rules to match. An analysis never judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

HOLE = "\0"
"""Stands in a text for a part that is known only at run time. Code never holds a NUL: analysers drop them first."""
SPREAD = "\0*"
"""A word that becomes any number of words at run time, such as `"$@"`."""

UNKNOWN_NAME = "__unknown__"
"""What stands for a HOLE in code that is analysed in turn."""

Access = Literal["read", "write", "remove", "move"]
Sink = Literal["stream", "file", "discard"]
"""Where output goes: a terminal, pipe or unknown place; a regular file; nowhere."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command line after quotes and expansions, HOLE where it cannot be known."""

    text: str
    line: int
    sure: bool = True
    """False: it may become another word, or none, since a variable in it need not have the value that the code gives it."""
    built: bool = False
    """It holds a variable in which the code puts what nobody knows, such as the output of a program. As code it may be any code."""

    @property
    def known(self) -> bool:
        return HOLE not in self.text


@dataclass(frozen=True, slots=True)
class Command:
    """A program that the code starts, whatever its language: rules for `shell` judge it."""

    line: int
    name: str
    """Without its folder."""
    path: str = field(default="", kw_only=True)
    """As written, where a folder is written with it."""
    args: tuple[Word, ...] = ()
    stdout: Sink = "stream"
    stderr: Sink = "stream"
    stdin: Word | None = None
    """The text that it reads, when the code spells that out."""
    piped: bool = False
    """Reads what another command writes, and that is not spelled out."""
    substituted: Word | None = None
    """The text of the one `<( )` among its words, when the code spells that out."""
    cwd: str = ""
    """Folder that it runs in, against the one that the code starts in; HOLE where it cannot be known."""
    sure: bool = field(default=True, kw_only=True)
    """False: another program may run in its place, or the same with other words."""


@dataclass(frozen=True, slots=True)
class Import:
    """A module, or a name out of one, that the code imports: dotted, `urllib.request.urlopen`."""

    line: int
    name: str
    language: str = "python"


@dataclass(frozen=True, slots=True)
class Reference:
    """An argument that is no literal but a name that could be followed, such as `subprocess.PIPE`."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose function has a name that could be followed to an import or a builtin."""

    line: int
    name: str
    """Dotted, aliases resolved; a method of what a class returned is `socket.socket.connect`."""
    args: tuple[object, ...] = ()
    """Literals as Python values, lists as tuples; a Reference or HOLE for what is no literal."""
    options: dict[str, object] = field(default_factory=dict)
    """Keyword arguments, likewise."""
    lines: tuple[int, ...] = ()
    """First line of each positional argument."""
    language: str = "python"
    receiver: object = HOLE
    """The value that a method belongs to, where that is a literal: the path in `Path("a").write_text("")`."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A file that the code reads, writes, removes or moves away."""

    line: int
    path: str
    """As written, `~` for the home folder; HOLE for what is not known."""
    access: Access
    cwd: str = ""
    language: str = "shell"


@dataclass(frozen=True, slots=True)
class Url:
    """A URL that a command or a function is given."""

    line: int
    text: str
    language: str = "shell"


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that the code is able to do, whatever it uses for it: packs say what it takes."""

    line: int
    name: str
    language: str = "shell"


@dataclass(frozen=True, slots=True)
class Embedded:
    """Code inside code, to be analysed in turn: the argument of `bash -c`, a heredoc that python reads."""

    line: int
    """Line of the outer code on which it starts."""
    language: str
    code: str
    stdout: Sink = "stream"
    stderr: Sink = "stream"
    arguments: tuple[str, ...] | None = None
    """What it is given as `$1`, `$2` and so on; None: not known."""
    stdin: Word | None = None
    """The text that it reads where that is spelled out; its line counts from the start of this code."""
    piped: bool = False
    """It reads what is not spelled out."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that cannot be resolved before it runs."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a shell command's output goes into, with the text where the code spells it out."""

    line: int
    path: str
    text: str | None


Fact = Command | Import | Call | Touch | Url | Capability | Embedded | Unknown | Written

_SCREEN = {"-", "/dev/stdout", "/dev/stderr", "/dev/tty"}
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/", "/dev/pts/")


def sink_of(path: str) -> Sink:
    """Where output written to `path` ends up."""
    if path == "/dev/null":
        return "discard"
    return "stream" if path in _SCREEN or path.startswith(_DESCRIPTORS) else "file"


_FILLINGS = {"shell": "${" + UNKNOWN_NAME + "}", "powershell": "$" + UNKNOWN_NAME, "cmd": f"%{UNKNOWN_NAME}%"}


def filled(code: str, language: str) -> str:
    """Code whose holes are filled with a name that no rule knows, so that it parses."""
    return code.replace(SPREAD, HOLE).replace(HOLE, _FILLINGS.get(language, UNKNOWN_NAME))


def joined(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)


Key = tuple[str, str, str]
"""Language, kind and name of a fact: `("shell", "command", "curl")`, `("python", "import", "urllib.request")`."""


def keys_of(fact: Fact) -> list[Key]:
    """What an index of rules is asked for a fact: its name, and every prefix of a dotted one."""
    match fact:
        case Command(name=name):
            return [("shell", "command", name), ("shell", "command", "*")]
        case Import(name=name, language=language):
            return [(language, "import", prefix) for prefix in _prefixes(name)]
        case Call(name=name, language=language):
            return [(language, "call", prefix) for prefix in _prefixes(name)]
        case Touch(language=language):
            return [(language, "path", "")]
        case Url(language=language):
            return [(language, "url", "")]
        case Capability(language=language, name=name):
            return [(language, "capability", name)]
        case _:
            return []


def _prefixes(dotted: str) -> list[str]:
    parts = dotted.split(".")[:12]
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
