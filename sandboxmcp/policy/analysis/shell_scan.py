"""A lexical scan of bash code: where commands start and end, and where heredocs are, read as bash reads them.

The grammar of tree-sitter-bash loses its way in some code that bash runs. This scan finds no structure and no words' meaning, only
places, so it is small enough to follow bash's own reader (parse.y: read_token, read_token_word, parse_matched_pair, parse_comsub;
POSIX 2.3, 2.7.4 and 2.10.2). The judge takes heredocs out by it before it parses, and parses again alone what the tree missed.

One pass with a stack of its own. `((` and `$((` that turn out to hold commands are read a second time, a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sandboxmcp.policy.analysis.heredocs import Heredoc, read_body, read_delimiter

_MOST_REWINDS = 100
_MOST_SPLITS = 3
_JOINED = {b"$": b"({['\"", b"<": b"<(&>-", b">": b">(&|", b"&": b"&>", b"|": b"|&", b";": b";&", b"(": b"("}
"""What may follow the first letter of an operator in it."""
_MOST_DEPTH = 8
"""Heredocs in substitutions in the texts of heredocs."""
_RESERVED = frozenset(b"if then elif else fi while until do done { } !".split())
_ENDS = frozenset(b"fi done } esac".split())
"""Behind these only redirections and separators may stand."""
_PREFIXES = frozenset({b"time", b"coproc"})
"""What follows may be a compound command, or words of a simple one."""
_AFTER_PREFIX = _RESERVED | _PREFIXES | {b"for", b"select", b"case", b"function", b"[["}
_BLANK = re.compile(rb"(?:[ \t]|\\\n)+")
_WORD = re.compile(rb"[^ \t\n\\'\"`$;&|<>()\[#]+")
_COMMENT = re.compile(rb"#[^\n]*")
_OPERATOR = re.compile(rb"&>>|&>|<<<|<<-|<<|<&|<>|>>|>&|>\||<|>|;;&|;;|;&|;|&&|&|\|\||\|&|\||\n")
_SPLIT = re.compile(rb"(?:\$|<<?|>|&>?|\||;|\()(?:\\\n)+(?=[\w'\"{(\[<>&|;-])")
_SHIFT = re.compile(rb"<<")
_SINGLE = re.compile(rb"'[^']*'?")
_ANSI = re.compile(rb"\$'(?:[^'\\]|\\.)*'?", re.DOTALL)
_BACKTICKS = re.compile(rb"`((?:[^`\\]|\\.)*)`?", re.DOTALL)
_ASSIGNED = re.compile(rb"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.DOTALL)
_NAME = re.compile(rb"[A-Za-z_]\w*")
_DESCRIPTOR = re.compile(rb"\d+|\{[A-Za-z_]\w*(?:\[[^\]]*\])?\}")
_VARIABLE = re.compile(rb"\$(?:[A-Za-z_]\w*|[-\d#$!?*@]?)")
_EMPTY_BRACKETS = re.compile(rb"\((?:[ \t]|\\\n)*\)")
_ALTERNATIVE = re.compile(rb"\$\{[!#]?(?:[A-Za-z_]\w*|\d+|[-@*#?$!])(?:\[[^\]\n]*\])?:?[-=?+]")
"""`${x:-word}`: between double quotes a single quote in this word is an ordinary character."""
_PLAIN = {
    "text": re.compile(rb"[^\\$`]+"),
    "quoted": re.compile(rb"[^\"\\$`]+"),
    "expansion": re.compile(rb"[^\"'\\$`}<>]+"),
    "sum": re.compile(rb"[^\"'\\$`()]+"),
    "subscript": re.compile(rb"[^\"'\\$`\[\]]+"),
    "pattern": re.compile(rb"[^\"'\\$`()]+"),
    "condition": re.compile(rb"[^\"'\\$` \t\n#\]<>]+|[ \t]+"),
    "array": re.compile(rb"[^\"'\\$`()\n#\[<>;&|]+"),
}
_TIMED = re.compile(rb"\btime[ \t]+-\S+[ \t]+[A-Za-z_]\w*\Z")
_REPLACES = re.compile(rb"\$\{[!#]?\w+(?:\[[^\]\n]{0,200}\])?/")
_ROUND = re.compile(rb"[()]")
_CLOSING = {"quoted": b'"', "expansion": b"}", "subscript": b"]", "pattern": b")", "array": b")"}
_OPENING = {"subscript": b"[", "pattern": b"("}


class Span(NamedTuple):
    """One simple command: its pipeline's start, its own, its first word's, and its end."""

    pipeline: int
    start: int
    name: int
    end: int
    depth: int
    """In how many texts of heredocs it stands."""


class Piece(NamedTuple):
    """One word of a simple command."""

    start: int
    end: int
    operator: bytes
    """Of the redirection that it is the target of; empty: of none."""
    operator_at: int


class Region(NamedTuple):
    """The code of a substitution in the text of a heredoc."""

    start: int
    end: int
    depth: int


class Backticks(NamedTuple):
    """A substitution in backticks whose text holds backslashes, so that it is no part of the code as it stands."""

    at: int
    text: bytes
    depth: int


@dataclass(slots=True)
class Scan:
    """What stands where in the code."""

    commands: list[Span] = field(default_factory=list)
    heredocs: list[Heredoc] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    backticks: list[Backticks] = field(default_factory=list)
    herestrings: list[Region] = field(default_factory=list)
    """Their operators."""
    shifts: list[Region] = field(default_factory=list)
    """`<<` in sums, which the grammar may take for a heredoc."""
    brackets: list[Region] = field(default_factory=list)
    """Round brackets in what `${name/pattern/text}` puts in: the grammar takes an open one for the beginning of a list."""
    split: list[Region] = field(default_factory=list)
    """Operators and beginnings of expansions that go on behind a backslash at the end of a line, without the rest."""
    broken: list[tuple[int, int, list[int]]] = field(default_factory=list)
    """Words that go on behind a backslash at the end of a line: start, end, and the places of the backslashes."""
    keywords: list[Region] = field(default_factory=list)
    """`!`, and `time` and `coproc`, with options and name, before what is no plain command: the grammar takes them for programs."""
    unclear: list[tuple[int, str]] = field(default_factory=list)
    """Places that versions of bash read in different ways, or that this scan does not follow, each with what it is."""


@dataclass(slots=True)
class _Frame:
    """What is open at a place of the code, and for commands how far the current one has come."""

    kind: str
    end: int
    """Where it must end at the latest: backticks end where they end, whatever is open in them."""
    closer: bytes = b""
    at: int = 0
    depth: int = 0
    literal: bool = False
    """A single quote in it is an ordinary character."""
    quoted: bool = False
    """It stands between double quotes."""
    substitution: bool = False
    within: bool = False
    """It is a `$( )`, or stands in one."""
    pending: list[Heredoc] = field(default_factory=list)
    """Heredocs whose text begins behind the next end of a line."""
    word: int = -1
    """Where the current word began."""
    breaks: list[int] = field(default_factory=list)
    """Where that word goes on in the next line."""
    plain: bool = True
    """Nothing in that word is quoted or expanded."""
    starting: bool = True
    """The next word may be a reserved word, or a command's name."""
    awaits: str = ""
    """What the next word is when it is no word of the command."""
    operator: bytes = b""
    """Of the redirection whose target comes next."""
    operator_at: int = -1
    begun: int = -1
    name: int = -1
    stop: int = 0
    words: int = 0
    prefix: bytes = b""
    pipeline: int = -1
    holes: list[int] = field(default_factory=list)
    """For the text of a heredoc: where each expansion begins and ends."""
    cases: list[bool] = field(default_factory=list)
    """For each open `case` whether a pattern comes next."""


class _Scanner:
    """The pass. `run` returns the Scan."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.at = 0
        self.extglob = b"extglob" in source
        self.found = Scan()
        self.frames = [_Frame("code", len(source))]
        self.commands_in_brackets: set[int] = set()
        """Places of `((` that hold commands."""
        self.depth = 0
        self.strips = False
        """The text that is read has lost the tabs at the start of its lines."""
        self.words: list[Piece] | None = None
        """The words of the outermost commands, where they are wanted."""
        self.waiting: list[tuple[Heredoc, int, bool]] = []
        """Heredocs whose texts are still to be read, with the depth of what they hold and whether tabs are lost there."""

    def run(self) -> Scan:
        self.read()
        while self.waiting:
            heredoc, self.depth, self.strips = self.waiting.pop()
            self.at, self.frames = heredoc.body, [_Frame("text", heredoc.text_end, quoted=True, holes=heredoc.holes)]
            self.read()
            if len(heredoc.holes) % 2:
                heredoc.holes.append(heredoc.text_end)
        return self.found

    def read(self) -> None:
        while self.frames:
            frame = self.frames[-1]
            if self.at >= frame.end:
                self.close(frame)
            elif frame.kind == "code":
                self.code(frame)
            else:
                self.inside(frame)

    # What is open

    def open(self, kind: str, length: int, **more: object) -> None:
        frame = _Frame(kind, self.frames[-1].end, at=self.at, **more)  # type: ignore[arg-type]
        frame.pending = self.frames[-1].pending if kind in ("condition", "array") else frame.pending
        frame.within = self.frames[-1].within or (frame.substitution and frame.closer == b")")
        self.frames.append(frame)
        self.at += length

    def close(self, frame: _Frame) -> None:
        """Leave the frame. A heredoc that waits for its text then gets it behind the next line of the code around it."""
        if frame.kind == "code":
            self.end_command(frame)
        self.frames.pop()
        if frame.closer == b"`":
            self.at = frame.end + 1
        if not self.frames or frame.kind != "code":
            return
        if self.frames[-1].kind == "text":
            self.found.regions.append(Region(frame.at + (1 if frame.closer == b"`" else 2), self.at - 1, self.depth))
        outer = next((one for one in reversed(self.frames) if one.kind == "code"), frame)
        if frame.substitution and frame.pending:
            self.unclear(frame.at, "a heredoc that begins in a substitution and goes on behind it")
            if frame.closer == b")":
                outer.pending[:0] = frame.pending
        if not frame.substitution and outer.kind == "code":
            outer.starting, outer.stop = False, self.at

    def unclear(self, at: int, what: str) -> None:
        self.found.unclear.append((at, what))

    # Between quotes, in expansions, sums, subscripts, patterns, conditions and arrays

    def inside(self, frame: _Frame) -> None:
        if frame.kind == "text" and len(frame.holes) % 2:
            frame.holes.append(self.at)
        plain = _PLAIN[frame.kind].match(self.source, self.at, frame.end)
        if plain is not None:
            frame.plain = plain[0][-1:] in b" \t\n"
            if frame.kind in ("sum", "subscript") and b"<<" in plain[0]:
                self.found.shifts += [
                    Region(one.start(), one.end(), self.depth) for one in _SHIFT.finditer(self.source, self.at, plain.end())
                ]
                inside = any(one.substitution for one in self.frames)
                if frame.kind == "subscript" and inside and _TIMED.search(self.source[max(0, frame.at - 80) : frame.at]):
                    self.unclear(self.at, "a shift in a subscript behind time -p, which bash takes for a heredoc in a substitution")
            if frame.kind == "expansion" and (b"(" in plain[0] or b")" in plain[0]) and _REPLACES.match(self.source, frame.at):
                places = (one.start() for one in _ROUND.finditer(self.source, self.at, plain.end()))
                self.found.brackets += [Region(at, at + 1, self.depth) for at in places]
            self.at = plain.end()
            return
        mark = self.source[self.at : self.at + 1]
        if mark == _CLOSING.get(frame.kind) and frame.depth == 0:
            self.at += 1
            self.close(frame)
        elif mark == b"(" and frame.kind == "sum":
            frame.depth += 1
            self.at += 1
        elif mark == b")" and frame.kind == "sum":
            self.end_sum(frame)
        elif mark == _OPENING.get(frame.kind):
            frame.depth += 1
            self.at += 1
        elif mark == _CLOSING.get(frame.kind):
            frame.depth -= 1
            self.at += 1
        elif mark == b"\n" and frame.kind in ("condition", "array"):
            frame.plain = True
            self.at += 1
            self.read_heredocs(frame)
        elif mark == b"#" and frame.plain and frame.kind in ("condition", "array"):
            self.at = self.match(_COMMENT, frame).end()
        elif frame.kind == "array" and mark in b"<>;&|(" and self.breaks_array(mark):
            self.end_at_fault(frame)
        elif frame.kind == "condition" and self.source.startswith(b"]]", self.at) and frame.plain:
            self.at += 2
            self.close(frame)
        else:
            if frame.kind == "text" and mark != b"\\":
                frame.holes.append(self.at)
            frame.plain = False
            self.piece(frame, mark)

    def breaks_array(self, mark: bytes) -> bool:
        """Whether an operator stands where an array has only words; `<(` is part of one, and `@(` with extglob."""
        if mark in b"<>":
            return not self.source.startswith(b"(", self.at + 1)
        return mark != b"(" or not self.extglob or self.source[self.at - 1 : self.at] not in b"?*+@!"

    def end_at_fault(self, frame: _Frame) -> None:
        """Behind a fault of syntax bash goes on with the next line, with nothing open and no heredoc to read."""
        self.unclear(frame.at, "an array with a fault of syntax")
        outer = self.frames[0]
        end = self.source.find(b"\n", self.at, outer.end)
        self.at = end + 1 if end >= 0 else outer.end
        self.frames = [outer]
        outer.pending.clear()
        outer.cases.clear()
        outer.word, outer.awaits = -1, ""
        self.forget_command(outer)

    def end_sum(self, frame: _Frame) -> None:
        """A sum ends at `))`. Where a single bracket ends it, what it holds are commands (parse.y: parse_dparen, parse_comsub)."""
        if frame.depth:
            frame.depth -= 1
            self.at += 1
        elif self.source.startswith(b"))", self.at):
            self.at += 2
            self.close(frame)
        elif len(self.commands_in_brackets) >= _MOST_REWINDS:
            self.unclear(frame.at, "very many brackets within brackets")
            self.at += 1
            self.close(frame)
        else:
            self.commands_in_brackets.add(frame.at)
            self.forget(frame.at)
            self.at = frame.at
            self.frames.pop()
            self.bracket(self.frames[-1]) if frame.closer else self.piece(self.frames[-1], b"$")

    def forget(self, at: int) -> None:
        """What was found from this place on is found again."""
        found = self.found
        found.commands = [one for one in found.commands if one.start < at or one.depth != self.depth]
        found.heredocs = [one for one in found.heredocs if one.at < at or one.depth != self.depth]
        found.herestrings = [one for one in found.herestrings if one.start < at or one.depth != self.depth]
        found.shifts = [one for one in found.shifts if one.start < at or one.depth != self.depth]
        found.broken = [one for one in found.broken if one[0] < at]
        found.keywords = [one for one in found.keywords if one.start < at or one.depth != self.depth]
        found.backticks = [one for one in found.backticks if one.at < at or one.depth != self.depth]
        self.waiting = [one for one in self.waiting if one[0].at < at or one[0].depth != self.depth]

    def match(self, pattern: re.Pattern[bytes], frame: _Frame) -> re.Match[bytes]:
        found = pattern.match(self.source, self.at, frame.end)
        assert found is not None  # noqa: S101 - the caller has seen the first letter
        return found

    def piece(self, frame: _Frame, mark: bytes) -> None:
        """One quoted or expanded piece of a word."""
        quoted = frame.quoted or frame.kind == "quoted"
        if mark == b"\\":
            self.at += 2
        elif mark == b"'" and not frame.literal and frame.kind != "quoted":
            self.at = self.match(_SINGLE, frame).end()
        elif mark == b'"':
            self.open("quoted", 1)
        elif mark == b"`":
            self.backticks(frame, quoted)
        elif mark == b"$":
            self.dollar(frame, quoted)
        elif mark in b"<>" and self.source.startswith(b"(", self.at + 1) and not quoted:
            self.open("code", 2, closer=b")", substitution=True)
        elif mark == b"[" and frame.kind == "array":
            self.open("subscript", 1)
        elif mark == b"(" and frame.kind == "array":
            self.open("pattern", 1)
        else:
            self.at += 1

    def dollar(self, frame: _Frame, quoted: bool) -> None:
        if frame.kind != "code" and (split := _SPLIT.match(self.source, self.at, frame.end)):
            self.found.split.append(Region(self.at, split.end(), self.depth))
        following = self.source[self.at + 1 : self.at + 3]
        if following == b"((" and self.at not in self.commands_in_brackets:
            self.open("sum", 3, quoted=quoted)
        elif following[:1] == b"(":
            self.open("code", 2, closer=b")", substitution=True)
        elif following[:1] == b"{" and following[1:] in (b" ", b"\t", b"\n", b"|"):
            self.unclear(self.at, "a substitution in braces, which only new versions of bash have")
            self.open("code", 2 + (following[1:] == b"|"), closer=b"}", substitution=True)
        elif following[:1] == b"{":
            literal = quoted and _ALTERNATIVE.match(self.source, self.at) is not None
            self.open("expansion", 2, quoted=quoted, literal=literal)
            if self.source.startswith(b"#", self.at):
                self.at += 1
        elif following[:1] == b"[":
            self.open("subscript", 2, quoted=quoted)
        elif following[:1] == b"'" and not quoted:
            self.at = self.match(_ANSI, frame).end()
        elif following[:1] == b'"' and not quoted:
            self.open("quoted", 2)
        else:
            self.at = self.match(_VARIABLE, frame).end()

    def backticks(self, frame: _Frame, quoted: bool) -> None:
        """Up to the next backtick without a backslash; quotes do not count. Text with backslashes is code of its own."""
        found = self.match(_BACKTICKS, frame)
        if b"\\" in found[1]:
            text = re.sub(rb'\\([`$\\"])' if quoted else rb"\\([`$\\])", rb"\1", found[1])
            self.found.backticks.append(Backticks(self.at, text, self.depth))
            self.at = found.end()
        else:
            self.open("code", 1, closer=b"`", substitution=True)
            self.frames[-1].end = found.end(1)

    # Commands

    def code(self, frame: _Frame) -> None:
        if frame.word < 0 and (blank := _BLANK.match(self.source, self.at, frame.end)):
            self.at = blank.end()
            return
        plain = _WORD.match(self.source, self.at, frame.end)
        if plain is not None:
            self.begin_word(frame)
            self.at = plain.end()
            return
        mark = self.source[self.at : self.at + 1]
        if mark in b"$<>&|;(" and (split := _SPLIT.match(self.source, self.at, frame.end)):
            self.found.split.append(Region(self.at, split.end(), self.depth))
        if mark == b"#":
            if frame.word < 0:
                self.at = self.match(_COMMENT, frame).end()
            else:
                self.at += 1
        elif mark in b"<>" and self.source.startswith(b"(", self.at + 1):
            self.begin_word(frame)
            frame.plain = False
            self.piece(frame, mark)
        elif mark == b"[":
            self.begin_word(frame)
            self.subscript(frame)
        elif mark == b"(":
            self.bracket(frame)
        elif mark == b")":
            self.end_bracket(frame)
        elif mark in b"\\'\"`$":
            self.begin_word(frame)
            if self.source.startswith(b"\\\n", self.at):
                frame.breaks.append(self.at)
            else:
                frame.plain = False
            self.piece(frame, mark)
        elif (operator := _OPERATOR.match(self.source, self.at, frame.end)) is not None:
            self.operator(frame, operator[0])
        else:  # a blank behind a word
            self.end_word(frame)
            self.at += 1

    def begin_word(self, frame: _Frame) -> None:
        if frame.word < 0:
            frame.word, frame.plain, frame.breaks = self.at, True, []

    def subscript(self, frame: _Frame) -> None:
        """`name[` where an assignment may stand goes on to its `]`, over blanks too."""
        text = self.source[frame.word : self.at]
        starting = frame.starting or (frame.prefix and frame.words == 1)
        if starting and not frame.awaits and frame.plain and _NAME.fullmatch(text):
            self.open("subscript", 1)
        else:
            self.at += 1

    def bracket(self, frame: _Frame) -> None:
        """An opening bracket: an array, a pattern, a function's, a sum, or commands of their own."""
        text = self.source[frame.word : self.at] if frame.word >= 0 else b""
        if _ASSIGNED.fullmatch(text):
            return self.open("array", 1, plain=True)
        if text and text[-1:] in b"?*+@!" and not (text == b"!" and frame.starting):
            frame.plain = False
            return self.open("pattern", 1)
        self.end_word(frame)
        if frame.prefix and frame.words <= 1 + (frame.prefix == b"coproc") and not _EMPTY_BRACKETS.match(self.source, self.at):
            self.end_prefix(frame, self.at)
        empty = _EMPTY_BRACKETS.match(self.source, self.at, frame.end)
        if frame.cases and frame.cases[-1]:
            self.at += 1
        elif empty is not None:
            self.at = empty.end()  # `name()`: a function's body follows
            self.forget_command(frame)
        elif self.source.startswith(b"((", self.at) and self.at not in self.commands_in_brackets:
            self.open("sum", 2, closer=b"))")
            self.forget_command(frame)
            frame.starting, frame.awaits = frame.awaits == "variable", ""  # `for ((…)) do`
        else:
            self.end_command(frame)
            pending = frame.pending
            self.open("code", 1, closer=b")")
            self.frames[-1].pending = pending
        return None

    def end_bracket(self, frame: _Frame) -> None:
        self.end_word(frame)
        self.at += 1
        if frame.cases and frame.cases[-1]:
            frame.cases[-1] = False
            self.forget_command(frame)
        elif frame.closer == b")":
            self.at -= 1
            self.end_command(frame)
            self.at += 1
            self.close(frame)
        else:
            self.end_command(frame)

    def operator(self, frame: _Frame, operator: bytes) -> None:
        text = self.source[frame.word : self.at] if frame.word >= 0 else b""
        if operator[:1] in b"<>" or operator[:2] == b"&>":
            if text and operator[:1] != b"&" and frame.plain and _DESCRIPTOR.fullmatch(text):
                frame.begun = frame.word if frame.begun < 0 else frame.begun
                frame.word = -1
            self.end_word(frame)
            frame.begun = self.at if frame.begun < 0 else frame.begun
            if operator in (b"<<", b"<<-"):
                self.heredoc(frame, operator)
            else:
                if operator == b"<<<":
                    self.found.herestrings.append(Region(self.at, self.at + 3, self.depth))
                frame.awaits, frame.operator, frame.operator_at = frame.awaits or "target", operator, self.at
                self.at += len(operator)
            return
        self.end_word(frame)
        in_pipe = operator in (b"|", b"|&") and frame.name >= 0
        start = frame.pipeline if frame.pipeline >= 0 else frame.begun
        pattern = bool(frame.cases) and frame.cases[-1]
        self.end_command(frame)
        frame.pipeline = start if in_pipe else -1
        self.at += len(operator)
        if (operator in (b";;", b";&", b";;&") and frame.cases) or pattern:
            frame.cases[-1] = True
        if operator == b"\n":
            self.read_heredocs(frame)

    def heredoc(self, frame: _Frame, operator: bytes) -> None:
        start = self.at
        delimiter = read_delimiter(self.source, start + len(operator), frame.end)
        if delimiter is None:
            self.unclear(start, "a heredoc without a plain delimiter")
            self.at += len(operator)
            frame.awaits = "target"
            return
        text, quoted, end, doubtful = delimiter
        if doubtful:
            self.unclear(start, "the delimiter of a heredoc")
        found = Heredoc(start, end, text, quoted, operator == b"<<-" or self.strips, self.depth)
        self.found.heredocs.append(found)
        frame.pending.append(found)
        self.at = frame.stop = end

    def read_heredocs(self, frame: _Frame) -> None:
        """The texts of what waits for them, which begin behind this end of a line."""
        if not frame.pending:
            return
        for heredoc in frame.pending:
            for what in read_body(heredoc, self.source, self.at, frame.end, frame.within):
                self.unclear(heredoc.at, what)
            self.at = heredoc.after
            if heredoc.expands(self.source):
                if self.depth < _MOST_DEPTH:
                    self.waiting.append((heredoc, self.depth + 1, heredoc.strips))
                else:
                    self.unclear(heredoc.at, "heredocs within heredocs")
        frame.pending.clear()

    # Words of commands

    def end_word(self, frame: _Frame) -> None:
        """The word that ends here, and what it makes of what follows."""
        if frame.word < 0:
            return
        start, frame.word = frame.word, -1
        text = self.source[start : self.at] if frame.plain else b""
        if frame.breaks:
            self.found.broken.append((start, self.at, frame.breaks))
        frame.begun = start if frame.begun < 0 else frame.begun
        frame.stop = self.at
        if frame.cases and frame.cases[-1]:
            if text.replace(b"\\\n", b"") == b"esac":
                frame.cases.pop()
                self.end_compound(frame)
            return
        if self.words is not None and len(self.frames) == 1:
            self.words.append(Piece(start, self.at, frame.operator if frame.awaits == "target" else b"", frame.operator_at))
        if frame.awaits:
            self.awaited(frame, text)
        elif frame.starting:
            self.first(frame, start, text.replace(b"\\\n", b""))
        elif frame.prefix and self.ends_prefix(frame, start, text):
            self.end_prefix(frame, start)
            self.first(frame, start, text)
        elif not (frame.prefix == b"time" and text in (b"-p", b"--")):
            frame.words += 1

    def ends_prefix(self, frame: _Frame, start: int, text: bytes) -> bool:
        """Whether the word behind `time` or `coproc` begins a command that is more than a program and its arguments."""
        named = frame.prefix == b"coproc"
        if frame.words > 1 + named:
            return False
        return text in _AFTER_PREFIX or (frame.words == 1 and _ASSIGNED.match(self.source, start, self.at) is not None)

    def end_prefix(self, frame: _Frame, at: int) -> None:
        self.found.keywords.append(Region(frame.name, at, self.depth))
        self.forget_command(frame)

    def awaited(self, frame: _Frame, text: bytes) -> None:
        awaits, frame.awaits = frame.awaits, ""
        if awaits in ("variable", "function"):
            self.forget_command(frame)
            frame.awaits = "in" if awaits == "variable" else ""
        elif awaits == "subject":
            frame.awaits = "of"
        elif awaits == "of":
            frame.cases.append(True)
            self.forget_command(frame)
        elif awaits == "in":
            self.forget_command(frame)
            if text == b"in":
                frame.starting = False
            elif text not in (b"do", b"{"):
                self.unclear(self.at, "a loop without its list")

    def first(self, frame: _Frame, start: int, text: bytes) -> None:
        """A word where a command may start."""
        if text == b"}" and frame.closer == b"}":
            self.end_compound(frame)
            self.close(frame)
        elif text == b"esac" and frame.cases:
            frame.cases.pop()
            self.end_compound(frame)
        elif text in _ENDS:
            self.end_compound(frame)
        elif text in _RESERVED:
            self.forget_command(frame)
            if text == b"!":  # the grammar reads `! { a=1; }` as a program called `{`
                self.found.keywords.append(Region(start, self.at, self.depth))
        elif text == b"[[":
            self.end_compound(frame)
            self.open("condition", 0, plain=True)
        elif text in (b"for", b"select"):
            frame.awaits = "variable"
        elif text == b"case":
            frame.awaits = "subject"
        elif text == b"function":
            frame.awaits = "function"
        elif not _ASSIGNED.match(self.source, start, self.at):
            frame.name, frame.words, frame.starting = start, 1, False
            frame.prefix = text if text in _PREFIXES else b""

    def end_command(self, frame: _Frame) -> None:
        """What was a simple command so far is one; the next word may start another."""
        self.end_word(frame)
        if frame.name >= 0:
            pipeline = frame.pipeline if frame.pipeline >= 0 else frame.begun
            self.found.commands.append(Span(pipeline, frame.begun, frame.name, frame.stop, self.depth))
        if frame.awaits in ("in", "target", "function", "variable"):
            frame.awaits = ""
        self.forget_command(frame)

    def forget_command(self, frame: _Frame) -> None:
        frame.begun = frame.name = frame.pipeline = -1
        frame.words, frame.prefix, frame.starting = 0, b"", True

    def end_compound(self, frame: _Frame) -> None:
        """Behind a compound command: redirections, and what separates."""
        self.forget_command(frame)
        frame.starting, frame.awaits = False, ""


def scan(source: bytes) -> tuple[Scan, bytes]:
    """Where commands, heredocs and backticks with backslashes stand in shell code, and the code as it was scanned.

    An operator that is split over lines (`<`, a backslash, the end of the line, `<EOF`) is joined first: the code returned holds
    the end of the line before it. Never raises; time grows with the length.
    """
    found, doubt = _Scanner(source).run(), list[tuple[int, str]]()
    for _ in range(_MOST_SPLITS):
        joints = [(at, end, mark) for at, end, mark in _split_operators(source, found)]
        if not joints and not found.broken:
            return found, source
        code = bytearray(source)
        for at, end, mark in joints:
            code[at:end] = source[at + len(mark) : end] + mark
        source = bytes(code) if joints else _join_words(source, found)
        doubt += [(at, "an operator that is split over two lines") for at, *_ in joints]
        found = _Scanner(source).run()
        found.unclear += doubt
    found.unclear += [(at, "a word that is split over lines, within others") for at, *_ in found.broken]
    return found, source


def _join_words(source: bytes, found: Scan) -> bytes:
    """The code with each broken word whole behind its line ends. Of words within words the inner ones come first."""
    code, done = bytearray(source), -1
    for start, end, breaks in sorted(found.broken, key=lambda one: (one[1], -one[0])):
        if start >= done:
            pieces = zip([start, *(at + 2 for at in breaks)], [*breaks, end], strict=True)
            code[start:end] = b"\\\n" * len(breaks) + b"".join(source[at:stop] for at, stop in pieces)
            done = end
    return bytes(code)


def _split_operators(source: bytes, found: Scan) -> Iterator[tuple[int, int, bytes]]:
    """Those whose two parts are one operator, or the beginning of an expansion, each with its first part."""
    for at, end, _ in found.split:
        mark = source[at:end].rstrip(b"\\\n")
        if source[end : end + 1] in _JOINED.get(mark[-1:], b""):
            yield at, end, mark


def pieces_of(source: bytes, start: int, end: int) -> list[Piece]:
    """The words of the simple command that stands there, from its name on."""
    scanner = _Scanner(source[:end])
    scanner.at, scanner.words = start, list[Piece]()
    scanner.read()
    return scanner.words
