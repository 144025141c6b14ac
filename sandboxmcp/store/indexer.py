"""Writes a source's chunks, passages and words into the open transaction, and takes them out again. Memory stays flat."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandboxmcp.store.chunking.forms import chunked
from sandboxmcp.store.chunking.parts import passages_of
from sandboxmcp.store.kinds import Form
from sandboxmcp.store.lines import Line
from sandboxmcp.store.rank import TITLE_WEIGHT
from sandboxmcp.store.vocabulary import WordCount, learn, unlearn, uses_of
from sandboxmcp.store.words import Pieces, words_in

if TYPE_CHECKING:
    from sqlite3 import Connection

_BATCH = 1_000
_TERM_CANDIDATES = 200
_TERMS = 60


@dataclass(frozen=True, slots=True)
class Indexed:
    """What was written for one source."""

    chunks: int
    passages: int
    words: int
    first_passage: int
    last_passage: int
    terms: tuple[str, ...]
    """Distinctive words, the best first."""


NOTHING_INDEXED = Indexed(0, 0, 0, 0, -1, ())


class Indexer:
    """Writes the parts of one source. `pieces` is the store's memory of split identifiers."""

    def __init__(self, connection: Connection, source: int, pieces: Pieces) -> None:
        self._connection = connection
        self._source = source
        self._pieces = pieces
        (self._chunk,) = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
        (self._passage,) = connection.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()
        self._before = (self._chunk, self._passage)
        self._chunk_rows: list[tuple[int, int, str, int, int]] = []
        self._passage_rows: list[tuple[int, int, int, int, bool, int, str, str]] = []
        self._text_rows: list[tuple[int, str, str, str]] = []
        self._counts = WordCount()
        self._words = 0

    def add(self, lines: Iterable[Line], form: Form) -> None:
        """Writes the chunks of some lines."""
        for chunk in chunked(lines, form):
            self._chunk += 1
            self._chunk_rows.append((self._chunk, self._source, chunk.title, chunk.lines[0].number, chunk.lines[-1].number))
            titled = TITLE_WEIGHT * len(words_in(chunk.title))
            for passage in passages_of(chunk):
                self._passage += 1
                words = words_in(passage.text)
                distinct = set(words)
                pieces = self._pieces.beside(passage.text, distinct)
                count = titled + len(words) + pieces.count(" ") + bool(pieces)
                self._words += count
                self._passage_rows.append(
                    (self._passage, self._chunk, passage.first, passage.last, passage.partial, count, passage.text, pieces)
                )
                self._text_rows.append((self._passage, chunk.title, passage.text, pieces))
                self._counts.add(distinct, pieces)
            if len(self._passage_rows) >= _BATCH:
                self._flush()

    def finish(self) -> Indexed:
        """Writes what is waiting and the vocabulary."""
        self._flush()
        vocabulary = self._counts.vocabulary()
        learn(self._connection, vocabulary)
        chunks, passages = self._chunk - self._before[0], self._passage - self._before[1]
        return Indexed(chunks, passages, self._words, self._before[1] + 1, self._passage, self._terms(vocabulary))

    def _terms(self, vocabulary: Mapping[str, int]) -> tuple[str, ...]:
        candidates = self._counts.candidates(vocabulary, _TERM_CANDIDATES)
        uses = uses_of(self._connection, list(candidates))
        worth = {word: value / (1 + math.log(1 + uses[word] - vocabulary[word])) for word, value in candidates.items()}
        return tuple(sorted(worth, key=lambda word: (-worth[word], word))[:_TERMS])

    def _flush(self) -> None:
        self._connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", self._chunk_rows)
        self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._passage_rows)
        self._connection.executemany("INSERT INTO passages_fts(rowid, title, body, pieces) VALUES (?, ?, ?, ?)", self._text_rows)
        self._chunk_rows.clear()
        self._passage_rows.clear()
        self._text_rows.clear()


def emptied(connection: Connection) -> None:
    """Takes everything out of the index without reading it, so that a damaged one goes too; sources stay, with nothing indexed."""
    for statement in (
        "INSERT INTO passages_fts(passages_fts) VALUES ('delete-all')",
        "INSERT INTO words_fts(words_fts) VALUES ('delete-all')",
        "DELETE FROM passages",
        "DELETE FROM chunks",
        "DELETE FROM words",
        "UPDATE sources SET chunks = 0, passages = 0, words = 0, first_passage = 0, last_passage = -1, terms = '[]'",
    ):
        connection.execute(statement)


def unindex(connection: Connection, first: int, last: int) -> None:
    """Takes the passages with these ids out of the index. Their chunks must still be there."""
    counts = WordCount()
    for body, pieces in connection.execute("SELECT body, pieces FROM passages WHERE id BETWEEN ? AND ?", (first, last)):
        counts.add(set(words_in(body)), pieces)
    unlearn(connection, counts.vocabulary())
    connection.execute(
        "INSERT INTO passages_fts(passages_fts, rowid, title, body, pieces)"
        " SELECT 'delete', id, title, body, pieces FROM passage_text WHERE id BETWEEN ? AND ?",
        (first, last),
    )
    connection.execute("DELETE FROM passages WHERE id BETWEEN ? AND ?", (first, last))
