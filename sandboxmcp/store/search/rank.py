"""The order of candidate passages: BM25 of our own, with a small bonus for words that stand together. Pure.

Lucene's idf, k1 1.2, b 0.75, titles count twice in frequency and length. SQLite's own bm25() floors the idf of every word that
more than half of the passages hold and knows no scope, so it only chooses candidates. Proximity multiplies the score of the
best hundred by at most 1.5: as an addend it would overrule the ranking.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sandboxmcp.core.words import HEADINGS_BETWEEN, folded
from sandboxmcp.store.search.snippets import template_of

TITLE_WEIGHT = 2
_PART_WEIGHTS = (TITLE_WEIGHT, 0.5, 1, 1)
"""What a word counts in the innermost heading, the headings around it, the body, and the pieces beside it."""
_K1 = 1.2
_B = 0.75
_HEADING_ALONE = 0.7
"""What a passage counts that only the headings over it were found by: others stand under them as well."""
_SUPPORT = 1.0
"""What a passage's source as a whole counts beside the passage."""
_DOCUMENT_WORDS = 4_000
"""A source of more words is about many things, such as a log: there a passage speaks for itself."""
_ALIKE = 0.3
"""What further words in place of one word of the query count, beside the best of them: five synonyms are no five answers."""
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
    stands_for: str = ""
    """The query's word that it is looked for in place of; terms of one word count once, by the best of them."""


class Candidate(NamedTuple):
    """A passage that may answer, as it is indexed. `words` counts them, titles twice."""

    id: int
    title: str
    body: str
    pieces: str
    words: int
    source: int = 0
    source_words: int = 0
    """Of all passages of its source together."""


@dataclass(slots=True, unsafe_hash=True)  # not frozen: as for hits
class Ranked:
    """A candidate with its score; `best_line` is the index of the line in its body that says most."""

    candidate: Candidate
    score: float
    best_line: int
    telling: tuple[int, int] | None = None
    """Indexes of the first and the last line in its body to show for the query's words; None when only its title has any."""


def ranked(candidates: Sequence[Candidate], terms: Sequence[Term], passages: int, mean_words: float, stems: Stems) -> list[Ranked]:
    """The candidates, best first; equals stay in the order given.

    `passages` and `mean_words` describe the scope: how many passages it has and how long they are on average.
    """
    worth = {term.stem: term.weight * _idf(term.passages, passages) for term in terms}
    stands_for = {term.stem: term.stands_for or term.stem for term in terms}
    mean = max(mean_words, 1.0)
    order = _looked_through(candidates, worth, stems)
    for scored in order:
        scored.score = _score(_sums(scored.own, scored.titles), scored.candidate.words / mean, worth, stands_for)
    order.sort(key=lambda scored: -scored.score)
    for place, scored in enumerate(order):
        if place < _PROXIMITY_DEPTH and len(scored.own) > 1:
            scored.score *= 1 + _PROXIMITY * _nearness(scored.places, len(worth))
        if not scored.own:
            scored.score *= _HEADING_ALONE
    _add_support(order, worth, stands_for)
    order.sort(key=lambda scored: -scored.score)
    return [_ranked(scored, worth) for scored in order]


def _ranked(scored: _Scored, worth: Mapping[str, float]) -> Ranked:
    lines = {place.line for place in scored.places if place.part == _BODY}
    if len(lines) < 2:  # which is true of most, and needs no comparing
        line = min(lines) if lines else _line_of_pieces(scored, worth)
        return Ranked(scored.candidate, scored.score, line, (line, line) if lines else None)
    held = _by_line(scored.places, worth)
    best_line = max(held, key=lambda line: (held[line], -line), default=0)
    return Ranked(scored.candidate, scored.score, best_line, _telling(held, scored.candidate.body))


def _line_of_pieces(scored: _Scored, worth: Mapping[str, float]) -> int:
    """The line that says most where its words are parts of longer ones: in identifiers, and in scripts without blanks."""
    if not scored.own or "\n" not in scored.candidate.body:
        return 0
    heads = {stem[:-1] if len(stem) > 2 else stem: worth[stem] for stem in scored.own}
    lines = folded(scored.candidate.body).replace("_", "").split("\n")
    held = [sum(value for head, value in heads.items() if head in line) for line in lines]
    return held.index(max(held))


def _idf(holding: int, passages: int) -> float:
    return math.log(1 + (max(passages, holding) - holding + 0.5) / (holding + 0.5))


class _Place(NamedTuple):
    """Where a term stands: in which part of the candidate, on which of its lines, from where to where."""

    part: int
    """0: the innermost heading, 1: those around it, 2: the body, 3: the pieces beside it."""
    line: int
    """Of the body; 0 in other parts."""
    start: int
    end: int
    stem: str


_BODY = 2
_BETWEEN = "\0"
"""Shown text has no NUL."""
_LETTERS = re.compile(r"[^\W_]*")


@dataclass(slots=True)
class _Scored:
    candidate: Candidate
    places: list[_Place] = field(default_factory=list)
    own: dict[str, float] = field(default_factory=dict)
    """How often each stem stands in its body and the pieces beside it."""
    titles: dict[str, float] = field(default_factory=dict)
    """The same for the headings over it, by their weights."""
    score: float = 0.0


def _looked_through(candidates: Sequence[Candidate], wanted: Mapping[str, float], stems: Stems) -> list[_Scored]:
    """Every candidate with the places of the wanted stems in it, in order, and how often each stands there.

    All candidates are read as one text, and only words that begin like a stem are stemmed: going through them one by one takes
    several times as long.
    """
    texts = list(map(_text, candidates))
    text = _BETWEEN.join(texts)
    if text.isascii():
        text = text.lower()
    else:
        texts = list(map(folded, texts))
        text = _BETWEEN.join(texts)
    begins = list(itertools.accumulate(map(len, texts), lambda begin, length: begin + length + 1, initial=0))
    found = [(text[start:end], start, end) for start, end in _words_like(wanted, text)]
    known = stems({word for word, _, _ in found})
    seen = list(map(_Scored, candidates))
    for word, start, end in found:
        if (stem := known[word]) in wanted:
            number = bisect_right(begins, start) - 1
            begin = begins[number]
            part = text.count(_BETWEEN, begin, start)
            line = text.count("\n", text.rfind(_BETWEEN, begin, start), start) if part == _BODY else 0
            one = seen[number]
            one.places.append(_Place(part, line, start, end, stem))
            counts = one.own if part >= _BODY else one.titles
            counts[stem] = counts.get(stem, 0.0) + _PART_WEIGHTS[part]
    return seen


def _text(candidate: Candidate) -> str:
    """The parts of a candidate, in their order."""
    outer, _, heading = candidate.title.rpartition(HEADINGS_BETWEEN)
    return _BETWEEN.join((heading, outer, candidate.body, candidate.pieces))


def _words_like(stems: Iterable[str], text: str) -> Iterator[tuple[int, int]]:
    """Where words begin and end that may have one of the stems, in order.

    Porter leaves a word's beginning alone but for the last letter of the stem (happy: happi, sensibility: sensibl). To look for
    one beginning after the other takes a tenth of the time of one expression for all of them, which is new for every query.
    """
    starts: set[int] = set()
    for head in {stem[:-1] if len(stem) > 2 else stem for stem in stems}:
        start = text.find(head)
        while start >= 0:
            if not text[start - 1 : start].isalnum():
                starts.add(start)
            start = text.find(head, start + len(head))
    for start in sorted(starts):
        yield start, _LETTERS.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing as well


def _score(counts: Mapping[str, float], length: float, worth: Mapping[str, float], stands_for: Mapping[str, str]) -> float:
    """BM25 of a text with so many of each stem; `length` counts its words in those of an average text."""
    norm = _K1 * (1 - _B + _B * length)
    if len(counts) == 1:
        ((stem, count),) = counts.items()
        return worth[stem] * count * (_K1 + 1) / (count + norm)
    best: dict[str, float] = {}
    every = 0.0
    for stem, count in sorted(counts.items()):
        value = worth[stem] * count * (_K1 + 1) / (count + norm)
        every += value
        best[stands_for[stem]] = max(best.get(stands_for[stem], 0.0), value)
    once = sum(best.values())
    return once + _ALIKE * (every - once)


def _sums(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    if not one or not other:
        return one or other
    return {stem: one.get(stem, 0.0) + other.get(stem, 0.0) for stem in one.keys() | other.keys()}


def _add_support(order: Sequence[_Scored], worth: Mapping[str, float], stands_for: Mapping[str, str]) -> None:
    """Adds to every passage what its source says as a whole, so that of many sources the one about the question comes first.

    To a passage of a long source it adds as much of its own score: else every line of a page that says one word often would
    come before the line of a log that says all of them.
    """
    if len({scored.candidate.source for scored in order}) < 2:
        return
    candidates = (scored.candidate for scored in order)
    words = {one.source: one.source_words for one in candidates if one.source_words <= _DOCUMENT_WORDS}
    counts: dict[int, dict[str, float]] = {source: {} for source in words}
    titles: dict[int, dict[str, float]] = {source: {} for source in words}
    for scored in order:
        if scored.candidate.source not in words:
            continue
        own, over = counts[scored.candidate.source], titles[scored.candidate.source]
        for stem, count in scored.own.items():
            own[stem] = own.get(stem, 0.0) + count
        for stem, count in scored.titles.items():
            over[stem] = max(over.get(stem, 0.0), count)
    mean = max(sum(words.values()) / max(1, len(words)), 1.0)
    support = {
        source: _score(_sums(own, titles[source]), words[source] / mean, worth, stands_for) for source, own in counts.items()
    }
    for scored in order:
        scored.score += _SUPPORT * support.get(scored.candidate.source, scored.score)


def _nearness(places: Sequence[_Place], terms: int) -> float:
    """From 0 to 1: how near different terms stand to each other in the body, on average over the query's neighbours."""
    closest: dict[tuple[str, str], float] = {}
    for one, other in itertools.pairwise(places):
        if one.stem != other.stem and one.part == other.part == _BODY:
            pair = (one.stem, other.stem) if one.stem < other.stem else (other.stem, one.stem)
            between = max(0, other.start - one.end - 1)
            closest[pair] = max(closest.get(pair, 0.0), _WORD_LETTERS / (_WORD_LETTERS + between))
    return min(1.0, sum(closest.values()) / max(1, terms - 1))


def _telling(held: Mapping[int, float], body: str) -> tuple[int, int]:
    """The first and the last line with a word of the query; of lines with one template only the one that says most counts."""
    lines = body.split("\n")
    by_template: dict[str, int] = {}
    for line in sorted(held, key=lambda line: (-held[line], line)):
        by_template.setdefault(template_of(lines[line]), line)
    return min(by_template.values()), max(by_template.values())


def _by_line(places: Sequence[_Place], worth: Mapping[str, float]) -> dict[int, float]:
    """What the different words on each line of the body are worth."""
    held: dict[int, dict[str, float]] = {}
    for place in places:
        if place.part == _BODY:
            held.setdefault(place.line, {})[place.stem] = worth[place.stem]
    return {line: sum(words.values()) for line, words in held.items()}
