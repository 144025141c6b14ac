"""How the shell shows itself: on a terminal, through a pipe, or as one JSON document an input."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from sandboxmcp.render.fence import harmless
from sandboxmcp.shell.screen import Output, Terminal, Through, Window

Ask = Callable[[str], Awaitable[str]]
"""Asks for one line."""
_JSON_TEXT = 5_000
"""Characters of an output that a document holds; the handle has the rest."""


class Face(Protocol):
    """What the session says, and to whom."""

    answers: bool
    """Whether there is somebody who answers questions."""

    def output(self) -> Output:
        """Takes the output of the next script."""

    def rows(self) -> int:
        """Lines of a page."""

    def say(self, text: str) -> None:
        """An answer: what was asked for."""

    def note(self, text: str) -> None:
        """Something beside the answer."""

    def complain(self, text: str) -> None:
        """What went wrong, and what to do."""

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Rows of cells, the first row their titles."""

    async def confirm(self, question: str) -> bool:
        """Yes or no; no where nobody can answer."""

    def ended(self, facts: dict[str, Any]) -> None:
        """An input is done; `facts` with its exit code as `code`."""


class TerminalFace:
    """A person looks."""

    answers = True

    def __init__(self, *, styled: bool, ask: Ask) -> None:
        self._terminal = Terminal(_write, _size, styled)
        self._ask = ask

    def output(self) -> Output:
        return Window(self._terminal)

    def rows(self) -> int:
        return max(_size()[1] - 4, 9)

    def say(self, text: str) -> None:
        _write(text + "\n")

    def note(self, text: str) -> None:
        _write(self._terminal.dim(text) + "\n")

    def complain(self, text: str) -> None:
        _write((f"\x1b[31m{text}\x1b[0m" if self._terminal.styled else text) + "\n")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        title, *body = rows
        table = Table(*title, box=None, pad_edge=False, header_style="dim")
        for row in body:
            table.add_row(*(Text(harmless(cell)) for cell in row))
        columns = _size()[0]
        Console(width=columns, no_color=not self._terminal.styled, force_terminal=self._terminal.styled, highlight=False).print(
            table
        )

    async def confirm(self, question: str) -> bool:
        try:
            return (await self._ask(f"{question} [Y/n] ")).strip().lower() in ("", "y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def ended(self, facts: dict[str, Any]) -> None:
        """Its output stands there."""


class PipeFace:
    """A program reads: output to stdout, everything else to stderr, no colour, nothing asked."""

    answers = False

    def output(self) -> Output:
        return Through(_write, _write_err)

    def rows(self) -> int:
        return 1_000

    def say(self, text: str) -> None:
        _write(text + "\n")

    def note(self, text: str) -> None:
        _write_err(text + "\n")

    def complain(self, text: str) -> None:
        _write_err(f"sandboxmcp: {text}\n")

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        for row in rows:
            _write("\t".join(map(harmless, row)) + "\n")

    async def confirm(self, question: str) -> bool:
        return False

    def ended(self, facts: dict[str, Any]) -> None:
        """Its output has been written."""


class JsonFace:
    """One document for each input: its facts, the beginning of its output, what was said beside it."""

    answers = False

    def __init__(self) -> None:
        self._text = ""
        self._notes: list[str] = []

    def output(self) -> Output:
        return Through(self._add, self._add)

    def _add(self, text: str) -> None:
        self._text = (self._text + text)[:_JSON_TEXT]

    def rows(self) -> int:
        return 1_000

    def say(self, text: str) -> None:
        self._add(text + "\n")

    def note(self, text: str) -> None:
        self._notes.append(text)

    complain = note

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        self._add("".join("\t".join(row) + "\n" for row in rows))

    async def confirm(self, question: str) -> bool:
        return False

    def ended(self, facts: dict[str, Any]) -> None:
        document = {"ok": facts["code"] == 0, **facts, "text": self._text, "notes": self._notes}
        self._text, self._notes = "", []
        _write(json.dumps(document, ensure_ascii=False) + "\n")


def _size() -> tuple[int, int]:
    size = shutil.get_terminal_size()
    return size.columns, size.lines


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _write_err(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
