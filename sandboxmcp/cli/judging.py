"""Files and notebooks as pieces of code to judge, each with the place where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxmcp.cli.scripts import language_of, script_text
from sandboxmcp.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of code: a file, or a cell of a notebook (numbered from 1)."""

    file: str
    code: str
    language: str
    cell: int | None = None

    @property
    def title(self) -> str:
        return self.file if self.cell is None else f"{self.file} cell {self.cell}"


def pieces_of(file: str, language: str | None) -> Iterator[Piece]:
    """A file as one piece, a notebook as its code cells.

    Raises:
        UsageError: it cannot be read, or is no notebook although it is called one.
    """
    text = script_text(file)
    if Path(file).suffix != ".ipynb":
        yield Piece(file, text, language or language_of(file, text, "shell"))
        return
    try:
        book = json.loads(text)
        spoken = language or _language(book)
        cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        sources = [cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"]) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{file} is no notebook: {type(error).__name__}", "Give a script, or a notebook of version 4.") from None
    yield from (Piece(file, source, spoken, number) for number, source in enumerate(sources, 1))


def _language(book: Any) -> str:
    metadata = book.get("metadata", {})
    kernel, about = metadata.get("kernelspec", {}), metadata.get("language_info", {})
    return str(kernel.get("language") or about.get("name") or "python").lower()
