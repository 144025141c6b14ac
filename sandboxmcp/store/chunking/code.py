"""Source code by its symbols: a function, a method or a class is a section, named by the path to it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.chunking.output import OutputOutline
from sandboxmcp.store.chunking.parts import Chunk
from sandboxmcp.store.chunking.sections import sections
from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.chunking.symbols import Symbol, symbols_of
from sandboxmcp.store.lines import Line

_MOST_BYTES = 1 << 20
"""Code is parsed as a whole; more of it is generated, or data."""


def code_chunks(lines: Iterable[Line], steps: Steps) -> Iterator[Chunk]:
    """The chunks of some code; without symbols if it is too long to be parsed."""
    rest = iter(lines)
    held, size = list[Line](), 0
    for line in rest:
        held.append(line)
        size += line.size + 1
        if size > _MOST_BYTES:
            return sections(chain(held, rest), OutputOutline(), steps)
    symbols = symbols_of(_joined(held))
    return sections(held, SymbolOutline(symbols, held[0].number) if symbols else OutputOutline(), steps)


def _joined(lines: Sequence[Line]) -> str:
    """The text again: parts of one line without an end between them."""
    return "".join(("\n" if i and line.number != lines[i - 1].number else "") + line.text for i, line in enumerate(lines))


class SymbolOutline(Outline):
    """Headings that were found beforehand, by the numbers of their lines."""

    def __init__(self, symbols: Sequence[Symbol], first: int) -> None:
        super().__init__()
        self._at: dict[int, Heading] = {}
        for symbol in symbols:
            self._at.setdefault(symbol.last + 1 + first, Heading(symbol.depth + 1, ""))
        for symbol in symbols:
            self._at[symbol.first + first] = Heading(symbol.depth + 1, symbol.name)

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        return self._at.pop(line.number, None)
