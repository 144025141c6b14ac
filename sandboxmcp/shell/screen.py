"""What of an output goes to the reader's screen, while it comes: harmless text, up to a screenful, then its end and a count.

Nothing of a kernel's bytes reaches the terminal but what `core.text` leaves of them. A line that the script rewrites with
carriage returns is redrawn in place by us.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from prompt_toolkit.utils import get_cwidth

from sandboxmcp.core.text import neutral, shown
from sandboxmcp.shell.follow import StreamName

_OURS = 7
"""Rows that stay for the prompt, the input and the notes."""
_FEWEST_ROWS = 9
_LONGEST_LINE = 1 << 16
"""Bytes of a line that are looked at; the rest is in the store."""
_BROKEN_ESCAPE = re.compile(r"\x1b[^a-zA-Z\x07]*$")
_DIM, _RED, _PLAIN, _WIPE = "\x1b[2m", "\x1b[31m", "\x1b[0m", "\r\x1b[K"
_Line = tuple[StreamName, bytes]


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where to write, how large it is, and whether it understands escape sequences."""

    write: Callable[[str], None]
    size: Callable[[], tuple[int, int]]
    """Columns and rows."""
    styled: bool

    def dim(self, text: str) -> str:
        return f"{_DIM}{text}{_PLAIN}" if self.styled else text


@dataclass(slots=True)
class Left:
    """What was not shown."""

    lines: int = 0
    next_line: dict[StreamName, int] = field(default_factory=dict)
    """The first line of each stream that was not."""


class Output(Protocol):
    """Takes a script's output while it comes."""

    def feed(self, stream: StreamName, data: bytes) -> None:
        """Take some bytes."""

    def finish(self, where: Callable[[Left], str]) -> Left:
        """No more comes. `where` says where the rest is to be found, when something was left out."""


class Through:
    """All of it, for a pipe: each stream to its own writer, a line at a time."""

    def __init__(self, out: Callable[[str], None], err: Callable[[str], None]) -> None:
        self._writers: dict[StreamName, Callable[[str], None]] = {"out": out, "err": err}
        self._rest: dict[StreamName, bytes] = {"out": b"", "err": b""}

    def feed(self, stream: StreamName, data: bytes) -> None:
        """Write the lines that are complete, and what is too long to wait for its end."""
        lines, end, rest = (self._rest[stream] + data).rpartition(b"\n")
        if len(rest) > _LONGEST_LINE:
            cut = len(rest) - len(_unfinished_character(rest))
            lines, end, rest = lines + end + rest[:cut], b"", rest[cut:]
        self._rest[stream] = rest
        if lines or end:
            self._writers[stream](shown(lines + end))

    def finish(self, where: Callable[[Left], str]) -> Left:
        """Write what has no line end."""
        for stream, rest in self._rest.items():
            if rest:
                self._writers[stream](shown(rest))
        return Left()


class Window:
    """The beginning as it comes, then one line that counts, at the end the last lines."""

    def __init__(self, terminal: Terminal) -> None:
        columns, rows = terminal.size()
        room = max(rows - _OURS, _FEWEST_ROWS)
        tail = room // 3
        self._terminal = terminal
        self._columns = max(columns, 8)
        self._head_room = room - tail
        self._rest: dict[StreamName, bytes] = {"out": b"", "err": b""}
        self._shown: dict[StreamName, int] = {"out": 0, "err": 0}
        self._tail: deque[_Line] = deque(maxlen=tail)
        self._held = 0
        """Lines that came when the head was full."""
        self._standing = ""
        """What stands on the screen's last line, to be overwritten."""

    def feed(self, stream: StreamName, data: bytes) -> None:
        """Show what there is room for, hold what may be the end."""
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        self._rest[stream] = rest[:_LONGEST_LINE]
        for line in lines if not self._held else self._last(lines):
            self._take(stream, line)
        self._draw(stream)

    def _last(self, lines: list[bytes]) -> list[bytes]:
        """Of many lines only those are looked at that may be the end."""
        most = self._tail.maxlen or 1
        self._held += max(len(lines) - most, 0)
        return lines[-most:]

    def _take(self, stream: StreamName, line: bytes) -> None:
        text = shown(line[:_LONGEST_LINE])
        rows = self._rows(text)
        if self._held or rows > self._head_room:
            self._held += 1
            self._tail.append((stream, line))
            return
        self._head_room -= rows
        self._shown[stream] += 1
        self._set_apart(stream)
        self._print(stream, text)

    def _set_apart(self, stream: StreamName) -> None:
        """What the other stream has begun to write on a line came first: it keeps its place."""
        other: StreamName = "err" if stream == "out" else "out"
        begun, self._rest[other] = self._rest[other], b""
        if begun and (text := live(begun)):
            self._head_room -= self._rows(text)
            self._print(other, text)

    def finish(self, where: Callable[[Left], str]) -> Left:
        """Show the end, and before it how much was left out."""
        for stream, rest in self._rest.items():
            if rest:
                self._take(stream, rest)
        self._wipe()
        texts = [(stream, self._cut(shown(line[:_LONGEST_LINE]))) for stream, line in self._tail]
        left = Left(self._held - len(texts), {stream: count + 1 for stream, count in self._shown.items()})
        if left.lines or any(cut for _, (_, cut) in texts):
            self._terminal.write(self._terminal.dim(f"⋯ {where(left)}") + "\n")
        for stream, (text, _) in texts:
            self._print(stream, text)
        return left

    def _rows(self, text: str) -> int:
        return max(-(-get_cwidth(text.expandtabs()) // self._columns), 1)

    def _cut(self, text: str) -> tuple[str, bool]:
        """A line of the end on at most two rows."""
        most = 2 * self._columns - 20
        if self._rows(text) <= 2:
            return text, False
        return f"{text[:most]}… {len(text) - most:,} more characters", True

    def _print(self, stream: StreamName, text: str) -> None:
        self._wipe()
        coloured = stream == "err" and self._terminal.styled and text
        self._terminal.write((f"{_RED}{text}{_PLAIN}" if coloured else text) + "\n")

    def _draw(self, stream: StreamName) -> None:
        """Redraw the line that has no end yet, or the count."""
        if not self._terminal.styled:
            return
        current = live(self._rest[stream] or (self._tail[-1][1] if self._tail else b""))
        text = f"⋯ {self._held:,} more lines  {current}" if self._held else current
        text = text.expandtabs()
        while get_cwidth(text) >= self._columns:
            text = text[: len(text) - max((get_cwidth(text) - self._columns + 1) // 2, 1)]
        if text != self._standing:
            self._wipe()
            self._terminal.write(self._terminal.dim(text) if self._held else text)
            self._standing = text

    def _wipe(self) -> None:
        if self._standing:
            self._terminal.write(_WIPE)
            self._standing = ""


def live(line: bytes) -> str:
    """The state of a line that is still being written: what stands after its last carriage return."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(line)
    states = [state for state in text.split("\r") if state]
    return neutral(_BROKEN_ESCAPE.sub("", states[-1])).replace("\n", " ") if states else ""


def _unfinished_character(data: bytes) -> bytes:
    """The bytes at the end that are the beginning of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-8:])
    return decoder.getstate()[0]
