"""What the index holds of a text: its chunks with their passages. Pure, so that it is the same in the server and in a worker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sandboxmcp.store.chunking.forms import chunked
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.chunking.markup import SPELLING
from sandboxmcp.store.chunking.parts import Passage, passages_of
from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.lines import numbered_lines


class Cut(NamedTuple):
    """A chunk as it is indexed: its title, its first and last line, and its passages."""

    title: str
    first: int
    last: int
    passages: Sequence[Passage]


def cut(pieces: Iterable[bytes], first: int, form: Form, steps: Steps | None = None) -> Iterator[Cut]:
    """The chunks of some bytes that start at the line numbered `first`, lazily.

    `steps` says afterwards whether the text was too finely divided, so that a part of it is plain lines.
    Where the bytes are split into pieces matters to markup that spans pieces; captures always give the same ones.
    """
    steps = steps or Steps()
    for chunk in chunked(numbered_lines(pieces, first, SPELLING.get(form)), form, steps):
        yield Cut(chunk.title, chunk.lines[0].number, chunk.lines[-1].number, tuple(passages_of(chunk, steps)))


def packed(cuts: Sequence[Cut]) -> bytes:
    """Some chunks as one line of JSON, which a process may read from another that was led astray."""
    return json.dumps(cuts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def unpacked(line: bytes) -> Iterator[Cut]:
    """The chunks of such a line."""
    for title, first, last, passages in json.loads(line):
        yield Cut(title, first, last, [Passage(*passage) for passage in passages])
