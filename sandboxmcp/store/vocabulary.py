"""The words that the store has seen: what repairs a mistyped word, completes a partial one, and names what a source is about.

A word's `uses` counts its occurrences in all passages, so that forgetting passages forgets their words too. The trigram table holds
words, not texts: it stays small, and its candidates are checked by edit distance before anything is searched.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sandboxmcp.store.words import STOP_WORDS, kept_words

if TYPE_CHECKING:
    from sqlite3 import Connection

_MOST_WORDS = 400_000
"""Distinct words of one source that are held in memory; beyond it those seen once are dropped."""
_TERM_CANDIDATES = 200
_SHORTEST_REPAIRED = 5
_TWO_EDITS_FROM = 8
_SHORTEST_PART = 4
_CANDIDATES = 400
_TRIGRAM_FROM = 7
"""Shorter words may share no trigram with their misspelling; they are looked for by first letter and length."""


def vocabulary_of(words: Iterable[str]) -> dict[str, int]:
    """The folded words that are worth keeping, and how often each occurs."""
    counts = Counter(words)
    vocabulary: dict[str, int] = {}
    for word, text in kept_words(counts).items():
        vocabulary[text] = vocabulary.get(text, 0) + counts[word]
    return vocabulary


class Topics:
    """What a source is about: words that tell its passages apart, neither everywhere nor once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, vocabulary: Mapping[str, int]) -> None:
        self._counts.update(vocabulary)
        if len(self._counts) > _MOST_WORDS:
            self._counts = Counter({word: count for word, count in self._counts.items() if count > 1})

    def best(self, connection: Connection, passages: int, limit: int) -> tuple[str, ...]:
        """At most so many, the best first: those that other sources have as well count less."""
        least = 1 if passages < 20 else 2
        weights = {
            word: math.log(1 + count) * math.log(1 + passages / count)
            for word, count in self._counts.items()
            if count >= least and len(word) > 3 and word not in STOP_WORDS and not word[0].isdigit()
        }
        chosen = heapq.nsmallest(_TERM_CANDIDATES, weights, key=lambda word: (-weights[word], word))
        uses = uses_of(connection, chosen)
        worth = {word: weights[word] / (1 + math.log(1 + uses[word] - self._counts[word])) for word in chosen}
        return tuple(sorted(worth, key=lambda word: (-worth[word], word))[:limit])


def learn(connection: Connection, words: Mapping[str, int]) -> None:
    """Counts so many more occurrences of each of the words. Statements that take all of them at once let go of Python's lock."""
    (known,) = connection.execute("SELECT coalesce(max(id), 0) FROM words").fetchone()
    connection.execute(
        "INSERT INTO words(word, uses) SELECT key, value FROM json_each(?) WHERE true ORDER BY key"
        " ON CONFLICT(word) DO UPDATE SET uses = uses + excluded.uses",
        (json.dumps(words, ensure_ascii=False),),
    )
    connection.execute("INSERT INTO words_fts(rowid, word) SELECT id, word FROM words WHERE id > ?", (known,))


def unlearn(connection: Connection, words: Mapping[str, int]) -> None:
    """Counts so many occurrences less; words without any are gone."""
    uses = uses_of(connection, list(words))
    connection.executemany(
        "UPDATE words SET uses = ?2 WHERE word = ?1", [(word, uses[word] - count) for word, count in words.items() if word in uses]
    )
    for word in [word for word in uses if uses[word] <= words[word]]:
        connection.execute(
            "INSERT INTO words_fts(words_fts, rowid, word) SELECT 'delete', id, word FROM words WHERE word = ?", (word,)
        )
        connection.execute("DELETE FROM words WHERE word = ?", (word,))


def uses_of(connection: Connection, words: Sequence[str]) -> dict[str, int]:
    """How often those of the words that are known occur."""
    return dict(
        connection.execute(
            "SELECT word, uses FROM words WHERE word IN (SELECT value FROM json_each(?))", (json.dumps(words, ensure_ascii=False),)
        )
    )


def completions(connection: Connection, part: str, limit: int = 8) -> list[str]:
    """Known words that begin with the part, then those that hold it; the most used first."""
    if len(part) < _SHORTEST_PART:
        return []
    rows = connection.execute(
        "SELECT word FROM words WHERE word >= ? AND word < ? AND length(word) <= ? ORDER BY uses DESC, length(word), word LIMIT ?",
        (part, part + "\U0010ffff", len(part) + 12, limit),
    )
    found = [word for (word,) in rows]
    if len(found) < limit:
        rows = connection.execute(
            "SELECT w.word FROM words_fts f JOIN words w ON w.id = f.rowid WHERE words_fts MATCH ? AND instr(w.word, ?) > 1"
            " ORDER BY w.uses DESC, length(w.word), w.word LIMIT ?",
            (" AND ".join(f'"{trigram}"' for trigram in _trigrams(part)), part, limit - len(found)),
        )
        found += [word for (word,) in rows]
    return found


def repairs(connection: Connection, word: str) -> list[str]:
    """Known words within one edit of a word (two from eight letters on, if they begin alike), nearest first, then the most used.

    Numbers and words of fewer than five letters are left alone: their neighbours are other things.
    """
    if len(word) < _SHORTEST_REPAIRED or not word.isalpha():
        return []
    most = 2 if len(word) >= _TWO_EDITS_FROM else 1
    near = []
    for candidate, uses in _candidates(connection, word, most):
        distance = edit_distance(word, candidate, most)
        if distance == 1 or (0 < distance <= most and candidate[0] == word[0]):
            near.append((distance, -uses, candidate))
    near.sort()
    return [candidate for _, _, candidate in near]


def edit_distance(one: str, other: str, most: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words; `most + 1` when more than `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    previous = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        current = [i]
        for j, facing in enumerate(other, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == facing:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        if min(current) > most:
            return most + 1
        before, previous = previous, current
    return min(previous[-1], most + 1)


def _candidates(connection: Connection, word: str, most: int) -> Iterator[tuple[str, int]]:
    low, high = len(word) - most, len(word) + most
    if len(word) >= _TRIGRAM_FROM:
        yield from connection.execute(
            "SELECT w.word, w.uses FROM words_fts f JOIN words w ON w.id = f.rowid"
            " WHERE words_fts MATCH ? AND length(w.word) BETWEEN ? AND ? ORDER BY f.rank LIMIT ?",
            (" OR ".join(f'"{trigram}"' for trigram in _trigrams(word)), low, high, _CANDIDATES),
        )
        return
    tail = word[-2:]
    yield from connection.execute(
        "SELECT word, uses FROM words WHERE word >= ? AND word < ? AND length(word) BETWEEN ? AND ?"
        " AND (substr(word, 1, 2) = ? OR substr(word, -2) = ? OR substr(word, 1, 3) = ?) ORDER BY uses DESC LIMIT ?",
        (word[0], word[0] + "\U0010ffff", low, high, word[:2], tail, word[0] + word[2] + word[1], _CANDIDATES),
    )


def _trigrams(word: str) -> list[str]:
    return sorted({word[i : i + 3] for i in range(len(word) - 2)})
