"""Lines to chunks: a section under its headings is one, and a long section is cut where it pauses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from sandboxmcp.core.words import HEADINGS_BETWEEN
from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.chunking.parts import CHUNK_BYTES, Chunk
from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.lines import Line


def sections(lines: Iterable[Line], outline: Outline, steps: Steps) -> Iterator[Chunk]:
    """The chunks of a text, lazily. When its sections are too many, the rest is plain lines."""
    chunks = _sections(lines, outline, steps)
    return _joined(chunks, outline.joins_small, outline.joins_relatives) if outline.joins_small else chunks


def _sections(lines: Iterable[Line], outline: Outline, steps: Steps) -> Iterator[Chunk]:
    # Every line of every text goes through here: what is looked up and called for each is what cutting costs.
    draft = _Draft()
    read = outline.read
    for line in lines:
        found = read(line, draft.lines)
        if found is not None:
            kept = draft.taken_back(found.starts_before)
            chunk = draft.closed(outline.path)
            if chunk.lines:
                yield chunk
            if steps.sections.take(sum(one.size + 1 for one in chunk.lines)):
                outline.enter(found)
            else:
                steps.is_plain, outline, read = True, Outline(), _no_heading
            for earlier in kept:
                draft.add(earlier)
        if outline.opens_fence:
            draft.may_end_here()
        while draft.size + line.size >= CHUNK_BYTES and draft.lines:
            yield draft.split(outline.path, outline.in_fence)
        draft.lines.append(line)
        draft.size += line.size + 1
        text = line.text
        if (not text or text.isspace()) and not outline.in_fence:
            draft.may_end_here()
    if draft.lines:
        yield draft.closed(outline.path)


def _no_heading(line: Line, before: Sequence[Line]) -> Heading | None:
    return None


@dataclass(slots=True)
class _Draft:
    """The lines of the chunk being built, and after which of them it would best end."""

    lines: list[Line] = field(default_factory=list)
    size: int = 0
    best_end: int = 0
    best_size: int = 0

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.size += line.size + 1

    def taken_back(self, number: int) -> list[Line]:
        """The last lines, which belong to what follows."""
        if not number:
            return []
        start = max(len(self.lines) - number, 0)
        kept, self.lines = self.lines[start:], self.lines[:start]
        return kept

    def may_end_here(self) -> None:
        self.best_end, self.best_size = len(self.lines), self.size

    def closed(self, title: str) -> Chunk:
        """What there is as a chunk; the next one begins."""
        chunk = Chunk(title, tuple(self.lines))
        self.lines, self.size, self.best_end, self.best_size = [], 0, 0, 0
        return chunk

    def split(self, title: str, in_fence: bool) -> Chunk:
        """Closes a full chunk at its best end, if that leaves it half full or keeps a fence whole, else where it stands."""
        end = self.best_end if self.best_size * 2 >= self.size or in_fence else 0
        end = end or len(self.lines)
        rest, self.lines = self.lines[end:], self.lines[:end]
        chunk = self.closed(title)
        for line in rest:
            self.add(line)
        return chunk


def _joined(chunks: Iterable[Chunk], small: int, relatives: bool) -> Iterator[Chunk]:
    """Neighbours that are small even together as one, under the headings that they share."""
    held: Chunk | None = None
    size, number = 0, 0
    for chunk in chunks:
        length = sum(line.size + 1 for line in chunk.lines)
        title = None
        if held is not None and size + length <= small:
            title = _title_of_related(held, chunk, number) if relatives else _shared(held.title, chunk.title)
        if held is not None and title is not None:
            number += len(held.lines) > 1
            held, size = Chunk(title, held.lines + chunk.lines), size + length
            continue
        if held is not None:
            yield held
        held, size, number = chunk, length, 0
    if held is not None:
        yield held


def _title_of_related(held: Chunk, chunk: Chunk, number: int) -> str | None:
    """The title of both together: a line and what it opens, or sections of the same one, of which `number` more are held."""
    shared = _shared(held.title, chunk.title)
    if shared == held.title:
        return chunk.title if len(held.lines) == 1 else shared if number else None
    return shared if shared == _outer(held.title) and not number else None


def _outer(title: str) -> str:
    return title.rpartition(HEADINGS_BETWEEN)[0]


def _shared(one: str, other: str) -> str:
    pairs = zip(one.split(HEADINGS_BETWEEN), other.split(HEADINGS_BETWEEN), strict=False)
    return HEADINGS_BETWEEN.join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
