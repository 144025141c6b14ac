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
from string import ascii_lowercase
from typing import TYPE_CHECKING

from sandboxmcp.core.words import STOP_WORDS, Kept

if TYPE_CHECKING:
    from sqlite3 import Connection

_MOST_WORDS = 400_000
"""Distinct words of one source that are held in memory; beyond it those seen once are dropped."""
_TERM_CANDIDATES = 200
_LOOKED_AT = 10 * _TERM_CANDIDATES
"""Words that are weighed: some fall away for being short, common or numbers."""
_SHORTEST_REPAIRED = 5
SHORTEST_ALONE = 4
"""Letters of a word that is repaired where else nothing would be found: a near word is better than no answer."""
_TWO_EDITS_FROM = 8
_SHORTEST_PART = 4
_CANDIDATES = 4_000
"""Words that are looked at for being two edits away."""
_MEASURED = 100
_TRIGRAM_FROM = 7
"""Shorter words may share no trigram with their misspelling; they are looked for by first letter and length."""


class Vocabulary:
    """Counts the words of texts and gives the folded ones that are worth keeping; remembers which those are."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._counts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def add(self, words: Iterable[str] | Mapping[str, int]) -> None:
        """Counts words, or adds their counts."""
        self._counts.update(words)

    def taken(self) -> dict[str, int]:
        """How often each folded word occurred since the last time; the counting begins anew."""
        vocabulary: dict[str, int] = {}
        self._kept.meet(self._counts)
        for word, count in self._counts.items():
            if text := self._kept[word]:
                vocabulary[text] = vocabulary.get(text, 0) + count
        self._counts.clear()
        return vocabulary


class Topics:
    """What a source is about: words that tell its passages apart, neither everywhere nor once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, vocabulary: Mapping[str, int]) -> None:
        self._counts.update(vocabulary)
        if len(self._counts) > _MOST_WORDS:
            self._counts = Counter({word: count for word, count in self._counts.items() if count > 1})

    def candidates(self, passages: int) -> Candidates:
        """The likeliest words of a source with so many passages."""
        least = 1 if passages < 20 else 2
        words_with = Counter(self._counts.values())
        weight_of = {count: math.log(1 + count) * math.log(1 + passages / count) for count in words_with if count >= least}
        enough, telling = 0, set[int]()
        for count in sorted(weight_of, key=lambda count: -weight_of[count]):
            telling.add(count)
            enough += words_with[count]
            if enough > _LOOKED_AT:
                break
        weights = [
            (-weight_of[count], word)
            for word, count in self._counts.items()
            if count in telling and len(word) > 3 and word not in STOP_WORDS and not word[0].isdigit()
        ]
        return {word: (-weight, self._counts[word]) for weight, word in _least(weights, _TERM_CANDIDATES)}


Candidates = Mapping[str, tuple[float, int]]
"""Words with their weights and how often they occur in their source."""


def best_terms(connection: Connection, sources: Sequence[Candidates], limit: int) -> list[tuple[str, ...]]:
    """At most so many words of each source, the best first: those that other sources have as well count less."""
    uses = uses_of(connection, sorted({word for candidates in sources for word in candidates}))
    return [_best(candidates, uses, limit) for candidates in sources]


def _best(candidates: Candidates, uses: Mapping[str, int], limit: int) -> tuple[str, ...]:
    worth = [(-weight / (1 + math.log(1 + uses[word] - count)), word) for word, (weight, count) in candidates.items()]
    return tuple(word for _, word in _least(worth, limit))


def _least(weighed: list[tuple[float, str]], number: int) -> list[tuple[float, str]]:
    # Of a few, as small sources have, a heap takes longer.
    return sorted(weighed)[:number] if len(weighed) < 8 * number else heapq.nsmallest(number, weighed)


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
    given = json.dumps(words, ensure_ascii=False)
    found = connection.execute("SELECT w.word, w.uses FROM json_each(?) j CROSS JOIN words w ON w.word = j.value", (given,))
    return dict(found)


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


def repairs(connection: Connection, word: str, distance: int, shortest: int = _SHORTEST_REPAIRED) -> list[str]:
    """Known words so many edits (1 or 2) away from a word, the most used first; those two edits away begin alike.

    Numbers and words of fewer than `shortest` letters (eight for two edits) are left alone: their neighbours are other things.
    """
    if len(word) < (shortest if distance == 1 else _TWO_EDITS_FROM) or not word.isalpha():
        return []
    if distance == 1:
        near = uses_of(connection, list(_one_edit_away(word))) if word.isascii() else _within(connection, word, 1)
    else:
        far = _within(connection, word, distance)
        near = {other: uses for other, uses in far.items() if other[0] == word[0] and edit_distance(word, other, 1) > 1}
    return sorted(near, key=lambda other: (-near[other], other))


def _one_edit_away(word: str) -> set[str]:
    """Everything that one insertion, deletion, substitution or swap makes of a word of ASCII letters: a few hundred texts.

    To look them all up costs less than to measure the distances of as many candidates, however large the vocabulary is.
    """
    splits = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    made = {before + after[1:] for before, after in splits if after}
    made |= {before + after[1] + after[0] + after[2:] for before, after in splits if len(after) > 1}
    made |= {before + letter + after[1:] for before, after in splits if after for letter in ascii_lowercase}
    made |= {before + letter + after for before, after in splits for letter in ascii_lowercase}
    return made - {word}


def _within(connection: Connection, word: str, most: int) -> dict[str, int]:
    """Known words at most so many edits away, with their uses: the likeliest of those that share a trigram or the first letters."""
    trigrams = _trigrams(word)
    likely = heapq.nlargest(
        _MEASURED, _candidates(connection, word, most), key=lambda one: (sum(part in one[0] for part in trigrams), one[1])
    )
    return {other: uses for other, uses in likely if 0 < edit_distance(word, other, most) <= most}


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
            " WHERE words_fts MATCH ? AND length(w.word) BETWEEN ? AND ? LIMIT ?",
            (" OR ".join(f'"{trigram}"' for trigram in _trigrams(word)), low, high, _CANDIDATES),
        )
        return
    yield from connection.execute(
        "SELECT word, uses FROM words WHERE word >= ? AND word < ? AND length(word) BETWEEN ? AND ? ORDER BY uses DESC LIMIT ?",
        (word[0], word[0] + "\U0010ffff", low, high, _CANDIDATES),
    )


def _trigrams(word: str) -> list[str]:
    return sorted({word[i : i + 3] for i in range(len(word) - 2)})
