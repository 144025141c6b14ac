"""What somebody typed: which kind of input it is, and where in a stream of lines one input ends. Pure.

The text is compiled to see whether it is complete, and never run: that happens in the sandbox.
"""

from __future__ import annotations

import codeop
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["nothing", "code", "shell", "command", "inspect", "leave"]

_COMMAND = re.compile(r":[a-z]+\b")
_ASKED = re.compile(r"(?P<before>\?{1,2})?\s*(?P<name>[^\W\d][\w.]*(?:\[[\w'\"]+\])?)\s*(?P<after>\?{1,2})?")
_LEAVING = frozenset({"exit", "quit", "exit()", "quit()"})
_CONTINUES = re.compile(r"(?:else|elif|except|finally|case)\b|#")
"""How a line without indent begins that belongs to the compound statement before it."""
_OPENS = re.compile(r"(?:@|(?:async|class|def|for|if|match|try|while|with)\b)")
_OPENERS = {"do": "done", "if": "fi", "case": "esac"}
_HEREDOC = re.compile(r"<<-?\s*[\"']?(\w+)")


@dataclass(frozen=True, slots=True)
class Input:
    """One input. `text` is the code, the shell line, the command without its colon, or the name to inspect."""

    kind: Kind
    text: str = ""
    detail: int = 0
    """Of an inspection: 1 when the source is wanted too."""


def parse(typed: str, *, inspects: bool = True) -> Input:
    """What was typed. `inspects`: the language has a kernel that can be asked with `?`."""
    text = typed.strip()
    if not text:
        return Input("nothing")
    if _COMMAND.match(text) and "\n" not in text:
        return Input("command", text[1:])
    if text.startswith("!"):
        return Input("shell", text[1:].strip())
    if inspects and (asked := _ASKED.fullmatch(text)) and (marks := (asked["before"] or "") + (asked["after"] or "")):
        return Input("inspect", asked["name"], int(len(marks) > 1))
    if text in _LEAVING and inspects:
        return Input("leave")
    return Input("code", typed.strip("\n"))


def unfinished(code: str, language: str) -> bool:
    """Whether more must follow for the code to mean anything."""
    if language == "python":
        return _unfinished_python(code)
    if code.endswith("\\"):
        return True
    words = re.findall(r"[\w-]+", code)
    if language == "shell" and any(words.count(opens) > words.count(closes) for opens, closes in _OPENERS.items()):
        return True
    if language == "shell" and (here := _HEREDOC.search(code)) and here[1] not in code.split("\n")[1:]:
        return True
    bare = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", "", code)
    return any(bare.count(opens) > bare.count(closes) for opens, closes in ("()", "[]", "{}"))


def _unfinished_python(code: str) -> bool:
    if code.startswith("%%"):  # a cell magic takes all lines up to an empty one
        return not code.endswith("\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codeop.compile_command(code, "<input>", "exec") is None
        except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
            return False  # wrong rather than unfinished: the kernel says how


def wants_more(text: str, language: str) -> bool:
    """Whether Enter at the end of the text begins a new line instead of running it."""
    if parse(text).kind != "code" or not text.strip():
        return parse(text).kind == "shell" and unfinished(text.lstrip()[1:], "shell")
    if language != "python":
        return unfinished(text, language) and bool(text.rsplit("\n", 1)[-1].strip())
    last = text.rsplit("\n", 1)[-1]
    return unfinished(text, language) or bool(last.strip() and _is_compound(text) and last[0] in " \t")


def _is_compound(code: str) -> bool:
    """Whether the last statement that begins without indent is one that holds others."""
    outer = [line for line in code.split("\n") if line and line[0] not in " \t)]}#"]
    return bool(outer) and _OPENS.match(_first_of(outer)) is not None


def _first_of(outer: list[str]) -> str:
    """The line that the last statement begins with: not its `else`."""
    return next((line for line in reversed(outer) if not _CONTINUES.match(line)), outer[0])


class Splitter:
    """Cuts a stream of lines into inputs. Python: a statement each. Languages without state: what stands between empty lines.

    A compound statement ends where a line without indent begins that is no part of it, as in a script, so that its body may hold
    empty lines; `blank_ends` ends it at an empty line, as a person expects who types.
    """

    def __init__(self, *, blank_ends: bool = False) -> None:
        self._blank_ends = blank_ends
        self._pending: list[str] = []

    @property
    def waiting(self) -> bool:
        """Whether an input has begun and not ended."""
        return bool(self._pending)

    def feed(self, line: str, language: str) -> Iterator[str]:
        """The inputs that this line completes."""
        if not self._pending:
            if line.strip():
                yield from self._begin(line, language)
        elif language == "python":
            yield from self._continue(line)
        elif line.strip():
            self._pending.append(line)
        else:
            yield self.rest()

    def rest(self) -> str:
        """What has begun and is given up as it is."""
        text, self._pending = "\n".join(self._pending), []
        return text

    def _begin(self, line: str, language: str) -> Iterator[str]:
        kind = parse(line).kind
        self._pending = [line]
        if kind != "code" or (language == "python" and not _OPENS.match(line) and not unfinished(line, language)):
            yield self.rest()

    def _continue(self, line: str) -> Iterator[str]:
        compound = _OPENS.match(self._pending[0]) is not None
        starts = bool(line) and line[0] not in " \t"
        if compound and starts and not _CONTINUES.match(line) and not unfinished(self._text, "python"):
            yield self.rest()
            yield from self._begin(line, "python")
            return
        self._pending.append(line)
        ends = self._blank_ends and not line.strip() if compound else True
        if ends and not unfinished(self._text, "python"):
            yield self.rest()

    @property
    def _text(self) -> str:
        return "\n".join(self._pending)
