"""Writes a source's chunks, passages and words into the open transaction, and takes them out again. Memory stays flat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from sandboxmcp.core.words import Kept, Pieces, words_in, words_of_each
from sandboxmcp.store.background import Background
from sandboxmcp.store.chunking.cutting import Cut
from sandboxmcp.store.chunking.parts import Passage
from sandboxmcp.store.search.rank import TITLE_WEIGHT
from sandboxmcp.store.search.vocabulary import Candidates, Topics, Vocabulary, best_terms, learn, unlearn

if TYPE_CHECKING:
    from sqlite3 import Connection

_BATCH = 1_000
_CACHE_KIB = 16_000
_LEARNT_TOGETHER = 50_000
"""Distinct words that wait until they are learnt."""
_WORTH_A_THREAD = 400
"""Passages that are left when a source ends, and are written while its words are weighed."""
_TERMS = 60


_Row = tuple[int, int, int, int, bool, int, str, str]
"""Id, chunk, first and last line, is it partial, words, text, pieces."""


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


class _Begun:
    """The source that is being written."""

    def __init__(self, source: int, chunk: int, passage: int) -> None:
        self.source = source
        self.before = (chunk, passage)
        self.words = 0
        self.topics = Topics()

    def indexed(self, chunk: int, passage: int) -> Indexed:
        """What it came to, without its terms."""
        return Indexed(chunk - self.before[0], passage - self.before[1], self.words, self.before[1] + 1, passage, ())


class Indexer:
    """Writes sources one after the other. `pieces` and `kept` are the store's memory of words.

    While Python reads and splits the next thousand passages, SQLite indexes the last thousand on another thread: nobody else uses
    the connection before that has ended, which the end of the `with` block waits for too. Small sources are written together.
    """

    def __init__(self, connection: Connection, pieces: Pieces, kept: Kept) -> None:
        self._connection = connection
        self._pieces = pieces
        (self._chunk,) = connection.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()
        (self._passage,) = connection.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()
        self._begun = _Begun(0, self._chunk, self._passage)
        self._ended: list[tuple[int, Indexed, Candidates]] = []
        self._chunk_rows: list[tuple[int, int, str, int, int]] = []
        self._waiting: list[tuple[int, int, Passage]] = []
        """Passages whose words are not looked at yet: the chunk of each, what its title counts, and itself."""
        self._rows: list[_Row] = []
        """Those that are not written yet."""
        self._vocabulary = Vocabulary(kept)
        self._unlearnt: dict[str, int] = {}
        self._indexing = Background()

    def __enter__(self) -> Indexer:
        self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._indexing.wait()
        finally:
            self._connection.execute("PRAGMA cache_size = -2000")  # SQLite's own default: idle connections keep no more

    def begin(self, source: int) -> None:
        """What is added from now on is of this source."""
        self._begun = _Begun(source, self._chunk, self._passage)

    def add(self, cuts: Iterable[Cut]) -> None:
        """Writes some chunks."""
        waiting, source = self._waiting, self._begun.source
        for title, first, last, passages in cuts:
            self._chunk += 1
            self._chunk_rows.append((self._chunk, source, title, first, last))
            titled = TITLE_WEIGHT * len(words_in(title))
            waiting += [(self._chunk, titled, passage) for passage in passages]
            if len(waiting) >= _BATCH:
                self._look_at_words()
                if len(self._vocabulary) > _LEARNT_TOGETHER:
                    self._take_words()
                self._indexing.start(self._written())

    def end(self) -> None:
        """Everything of the source was added."""
        self._look_at_words()
        self._take_words()
        if len(self._rows) >= _WORTH_A_THREAD:
            self._indexing.start(self._written(learnt_together=_WORTH_A_THREAD))
        found = self._begun.indexed(self._chunk, self._passage)
        self._ended.append((self._begun.source, found, self._begun.topics.candidates(found.passages)))

    def finish(self) -> list[tuple[int, Indexed]]:
        """Writes what is waiting, and says what was written of each source."""
        self._written(learnt_together=0)()
        terms = best_terms(self._connection, [candidates for _, _, candidates in self._ended], _TERMS)
        return [(source, replace(found, terms=best)) for (source, found, _), best in zip(self._ended, terms, strict=True)]

    def _written(self, *, learnt_together: int = _LEARNT_TOGETHER) -> Callable[[], None]:
        """Writes what is waiting, and returns what is to be done with it that needs nothing of Python.

        Words are learnt when there are more than `learnt_together`.
        """
        self._indexing.wait()
        self._connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", self._chunk_rows)
        self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self._rows)
        written = (self._passage - len(self._rows) + 1, self._passage)
        self._chunk_rows.clear()
        self._rows.clear()
        words: dict[str, int] = {}
        if len(self._unlearnt) > learnt_together:
            words, self._unlearnt = self._unlearnt, {}
        return partial(_index, self._connection, written, words)

    def _take_words(self) -> None:
        words = self._vocabulary.taken()
        self._begun.topics.add(words)
        if not self._unlearnt:
            self._unlearnt = words
            return
        for word, count in words.items():
            self._unlearnt[word] = self._unlearnt.get(word, 0) + count

    def _look_at_words(self) -> None:
        """The passages that are waiting become rows. Their words are looked at together: a text repeats its words."""
        split = words_of_each([passage.text for _, _, passage in self._waiting])
        self._vocabulary.add(chain.from_iterable(split))
        identifiers = self._pieces.meet(self._vocabulary)
        for (chunk, count, passage), words in zip(self._waiting, split, strict=True):
            text, pieces = passage.text, ""
            count += len(words)
            if "_" in text or not identifiers.isdisjoint(words):
                pieces = self._pieces.beside(text, words)
                beside = pieces.split()
                self._vocabulary.add(beside)
                count += len(beside)
            self._passage += 1
            self._begun.words += count
            self._rows.append((self._passage, chunk, passage.first, passage.last, passage.partial, count, text, pieces))
        self._waiting.clear()


def _index(connection: Connection, passages: tuple[int, int], words: Mapping[str, int]) -> None:
    connection.execute(
        "INSERT INTO passages_fts(rowid, title, body, pieces) SELECT id, title, body, pieces FROM passage_text"
        " WHERE id BETWEEN ? AND ?",
        passages,
    )
    if words:
        learn(connection, words)


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
    rows = connection.execute("SELECT body, pieces FROM passages WHERE id BETWEEN ? AND ?", (first, last))
    vocabulary = Vocabulary(Kept())
    vocabulary.add(word for body, pieces in rows for word in (*words_in(body), *pieces.split()))
    unlearn(connection, vocabulary.taken())
    connection.execute(
        "INSERT INTO passages_fts(passages_fts, rowid, title, body, pieces)"
        " SELECT 'delete', id, title, body, pieces FROM passage_text WHERE id BETWEEN ? AND ?",
        (first, last),
    )
    connection.execute("DELETE FROM passages WHERE id BETWEEN ? AND ?", (first, last))
