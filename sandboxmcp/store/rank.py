"""The order of candidate passages: BM25 of our own, with a small bonus for words that stand together. Pure.

Lucene's idf, k1 1.2, b 0.75, titles count twice in frequency and length. SQLite's own bm25() floors the idf of every word that
more than half of the passages hold and knows no scope, so it only chooses candidates. Proximity multiplies the score of the
best hundred by at most 1.5: as an addend it would overrule the ranking.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sandboxmcp.store.words import folded

TITLE_WEIGHT = 2
OUTER_WEIGHT = 0.5
HEADINGS_BETWEEN = " › "
_K1 = 1.2
_B = 0.75
_PROXIMITY = 0.5
_PROXIMITY_DEPTH = 100
_WORD_LETTERS = 6
"""Letters of a typical word with its blank: distances are measured in letters and counted in words."""

Stems = Callable[[Iterable[str]], Mapping[str, str]]
"""Words to their stems, as the index stems them."""


@dataclass(frozen=True, slots=True)
class Term:
    """A stem that is looked for, its weight in the query and the number of passages in scope that hold it."""

    stem: str
    weight: float
    passages: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage that may answer, as it is indexed. `words` counts them, titles twice."""

    id: int
    title: str
    body: str
    pieces: str
    words: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score; `best_line` is the index of the line in its body that says most."""

    candidate: Candidate
    score: float
    best_line: int


def ranked(candidates: Sequence[Candidate], terms: Sequence[Term], passages: int, mean_words: float, stems: Stems) -> list[Ranked]:
    """The candidates, best first; equals stay in the order given.

    `passages` and `mean_words` describe the scope: how many passages it has and how long they are on average.
    """
    worth = {term.stem: term.weight * _idf(term.passages, passages) for term in terms}
    finder = _Finder(worth, stems)
    order = [_scored(candidate, worth, finder, max(mean_words, 1.0)) for candidate in candidates]
    order.sort(key=lambda scored: -scored.score)
    near = [scored.with_proximity(len(worth)) for scored in order[:_PROXIMITY_DEPTH]]
    near.sort(key=lambda scored: -scored.score)
    return [Ranked(s.candidate, s.score, s.best_line(worth)) for s in near + order[_PROXIMITY_DEPTH:]]


def _idf(holding: int, passages: int) -> float:
    return math.log(1 + (max(passages, holding) - holding + 0.5) / (holding + 0.5))


class _Finder:
    """Finds the terms in a text without stemming all of it: only words that begin like a stem are stemmed."""

    def __init__(self, wanted: Iterable[str], stems: Stems) -> None:
        self._wanted = set(wanted)
        # Porter may change the last two letters of what it leaves (happy: happi, sensibility: sensibl).
        heads = {stem if len(stem) < 3 else stem[: max(2, len(stem) - 2)] for stem in self._wanted}
        alternatives = "|".join(sorted(map(re.escape, heads)))
        self._word = re.compile(rf"(?<![^\W_])(?:{alternatives})[^\W_]*")
        self._stems = stems

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """(start, end, stem) of every term in the text, in order."""
        found = [(match.start(), match.end(), match.group()) for match in self._word.finditer(folded(text))]
        if not found:
            return []
        stems = self._stems({word for _, _, word in found})
        return [(start, end, stems[word]) for start, end, word in found if stems[word] in self._wanted]


@dataclass(slots=True)
class _Scored:
    candidate: Candidate
    score: float
    places: list[tuple[int, int, str]]

    def with_proximity(self, terms: int) -> _Scored:
        """The score raised by how near different terms stand to each other, on average over the query's neighbours."""
        closest: dict[tuple[str, str], float] = {}
        for (_, end, one), (start, _, other) in zip(self.places, self.places[1:], strict=False):
            if one != other:
                pair = (one, other) if one < other else (other, one)
                nearness = _WORD_LETTERS / (_WORD_LETTERS + max(0, start - end - 1))
                closest[pair] = max(closest.get(pair, 0.0), nearness)
        if closest:
            self.score *= 1 + _PROXIMITY * min(1.0, sum(closest.values()) / max(1, terms - 1))
        return self

    def best_line(self, worth: Mapping[str, float]) -> int:
        ends = [match.start() for match in re.finditer("\n", self.candidate.body)]
        held: dict[int, set[str]] = {}
        for start, _, stem in self.places:
            held.setdefault(bisect.bisect_left(ends, start), set()).add(stem)
        # Sorted before they are added: floats added in another order may differ in the last place.
        return max(held, key=lambda line: (sum(sorted(worth[stem] for stem in held[line])), -line), default=0)


def _scored(candidate: Candidate, worth: Mapping[str, float], finder: _Finder, mean_words: float) -> _Scored:
    places = finder.find(candidate.body)
    counts: dict[str, float] = {}
    for _, _, stem in places:
        counts[stem] = counts.get(stem, 0) + 1
    for _, _, stem in finder.find(candidate.pieces):
        counts[stem] = counts.get(stem, 0) + 1
    for index, heading in enumerate(reversed(candidate.title.split(HEADINGS_BETWEEN))):
        for _, _, stem in finder.find(heading):
            counts[stem] = counts.get(stem, 0) + (OUTER_WEIGHT if index else TITLE_WEIGHT)
    norm = _K1 * (1 - _B + _B * candidate.words / mean_words)
    score = sum(worth[stem] * count * (_K1 + 1) / (count + norm) for stem, count in sorted(counts.items()))
    return _Scored(candidate, score, places)
