"""A query against the index: words, repaired where unknown; candidates by their rarest words; ranked; repeats last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from sqlite3 import DatabaseError
from typing import TYPE_CHECKING, Literal, NamedTuple

from sandboxmcp.core.model import Hit, Scope
from sandboxmcp.core.words import folded, words_in
from sandboxmcp.store.search.literals import exact_first, literals
from sandboxmcp.store.search.query import KIN_WEIGHT, Word, query_words
from sandboxmcp.store.search.rank import Candidate, Ranked, Stems, Term, ranked
from sandboxmcp.store.search.scope import Field, field_of
from sandboxmcp.store.search.snippets import neighbours_joined, repeats_last, window
from sandboxmcp.store.search.vocabulary import SHORTEST_ALONE, completions, repairs

if TYPE_CHECKING:
    from sqlite3 import Connection

COMPLETION_WEIGHT = 0.7
REPAIR_WEIGHT = 0.8
_CANDIDATES = 200
_POSTINGS = 5_000
"""Passages that SQLite ranks for a query. The rarest words come first. A word that would exceed this adds to the score, and
those passages are looked at that hold it together with rarer ones (`Field.together`)."""
_KIN_POSTINGS = 1_000
_SPELT = 50
"""Passages that are ranked for holding one text letter for letter."""
_MOST_REPAIRS = 2
_REPAIRS_TRIED = 8
_OWN_TEXT = "{body pieces}"
"""A word's rarity is counted here: a title stands over many passages and would make its words look common."""

Sort = Literal["relevance", "recent"]


Reorder = Callable[[str, Sequence[Ranked]], list[Ranked]]
"""Orders the best passages for a query anew."""


def search(
    connection: Connection, stems: Stems, query: str, scope: Scope, sort: Sort, limit: int, reorder: Reorder | None = None
) -> list[Hit]:
    """The best passages as hits; empty for a query without words or a scope without passages."""
    words, spelt = query_words(query), literals(query)
    field = field_of(connection, scope) if words or spelt else None
    if field is None or not field.passages:
        return []
    known = _Known(connection, stems, field)
    known.learn(words)
    chosen = dict.fromkeys(known.candidates(max(_CANDIDATES, limit)))
    for one in spelt:
        chosen.update(dict.fromkeys(field.spelling(connection, one.text, words_in(folded(one.text)), _SPELT)))
    rows = _loaded(connection, list(chosen))
    order = ranked([row.candidate for row in rows.values()], known.terms(), field.passages, field.mean_words, stems)
    if len({row.source for row in rows.values()}) > 1:
        order.sort(key=lambda one: (-one.score, -rows[one.candidate.id].source.created_at))
    if reorder is not None:
        order = reorder(query, order)
    order = exact_first(order, spelt)
    hits = [rows[one.candidate.id].hit(one) for one in repeats_last(order, _best_line)]
    if sort == "recent":
        hits.sort(key=lambda hit: -hit.created_at)
    return neighbours_joined(hits)[:limit]


@dataclass(frozen=True, slots=True)
class _Held:
    """A word that passages in scope hold."""

    text: str
    weight: float
    passages: int
    stands_for: str
    """The stem of the query's word that it is looked for in place of; its own for a word of the query."""


class _Known:
    """The words of a query that occur in scope, one per stem; where one does not, what the vocabulary offers in its place."""

    def __init__(self, connection: Connection, stems: Stems, field: Field) -> None:
        self._connection = connection
        self._stems = stems
        self._field = field
        self._held: dict[str, _Held] = {}
        self._counts: dict[str, int] = {}

    def learn(self, words: Sequence[Word]) -> None:
        served = set()
        self._stems([text for word in words for text in (word.text, word.origin) if text])  # together, they cost a third
        for word in words:
            if self._hold(word.text, word.weight, word.origin) and word.role in ("word", "piece"):
                served.add(word.origin or word.text)
        for word in words:
            if word.role == "word" and word.text not in served:
                self._stand_in(word.text)
        if not self._held:
            for word in words:
                if word.role == "word":
                    self._mend(word.text, 1, SHORTEST_ALONE)

    def terms(self) -> list[Term]:
        return [Term(stem, held.weight, held.passages, held.stands_for) for stem, held in self._held.items()]

    def candidates(self, limit: int) -> list[int]:
        """Ids of passages worth ranking: the best by the query's own words, then by those that only stand near them in meaning."""
        own = [held for held in self._held.values() if held.weight > KIN_WEIGHT]
        kin = [held for held in self._held.values() if held.weight <= KIN_WEIGHT and (held.passages <= _KIN_POSTINGS or not own)]
        found = dict.fromkeys(self._best(own, _POSTINGS, limit))
        found.update(dict.fromkeys(self._best(kin, _KIN_POSTINGS, limit // 4)))
        return list(found)

    def _best(self, held: Sequence[_Held], postings: int, limit: int) -> list[int]:
        by_rarity = sorted(held, key=lambda one: one.passages)
        chosen = _rarest(by_rarity, postings)
        found: dict[int, None] = {}
        if len(chosen) < len(held) and (not chosen or postings == _POSTINGS):
            texts = [one.text for one in by_rarity]
            found.update(dict.fromkeys(self._field.together(self._connection, texts, len(chosen), limit)))
        if chosen:
            found.update(dict.fromkeys(self._field.best(self._connection, chosen, limit)))
        return list(found)

    def _stand_in(self, text: str) -> None:
        stem = self._stems([text])[text]
        longer = completions(self._connection, stem)
        self._stems(longer)
        whole = [other for other in longer if self._hold(other, COMPLETION_WEIGHT, text)]
        if whole:
            return
        if not self._mend(text, 1):
            self._mend(text, 2)

    def _mend(self, text: str, *how: int) -> bool:
        """Look for what the word was meant to be, as `repairs` has it; says whether there was something."""
        tried = repairs(self._connection, text, *how)[:_REPAIRS_TRIED]
        self._stems(tried)
        mended = (other for other in tried if self._hold(other, REPAIR_WEIGHT, text))
        return bool(list(islice(mended, _MOST_REPAIRS)))

    def _hold(self, text: str, weight: float, origin: str = "") -> bool:
        stem = self._stems([text])[text]
        if stem not in self._counts:
            count = self._field.holding(self._connection, text, _OWN_TEXT)
            # Headings matter for what was asked; for a synonym a second look costs more than it finds.
            self._counts[stem] = count or (self._field.holding(self._connection, text) if weight > KIN_WEIGHT else 0)
        count = self._counts[stem]
        if count and (stem not in self._held or self._held[stem].weight < weight):
            self._held[stem] = _Held(text, weight, count, self._stems([origin])[origin] if origin else stem)
        return count > 0


def _rarest(by_rarity: Sequence[_Held], postings: int) -> list[str]:
    """The rarest words, as many as may be ranked together; none when already the first is in more passages."""
    together = accumulate(one.passages for one in by_rarity)
    return [one.text for one, sum_so_far in zip(by_rarity, together, strict=True) if sum_so_far <= postings]


def _best_line(one: Ranked) -> str:
    return one.candidate.body.split("\n", one.best_line + 1)[one.best_line]


class _Source(NamedTuple):
    """What a hit tells of its source."""

    handle: str
    label: str
    created_at: float
    words: int


class _Row(NamedTuple):
    """A passage as it lies in the store."""

    candidate: Candidate
    source: _Source
    first_line: int
    last_line: int
    partial: int

    def hit(self, one: Ranked) -> Hit:
        text, title = self.candidate.body, self.candidate.title
        first, last, best = self.first_line, self.last_line, one.best_line
        if one.telling is not None and not self.partial:
            before, text, after = window(text, *one.telling, title)
            first, last, best = first + before, last - after, best - before
        handle, label, created_at, _ = self.source
        return Hit(handle, label, first, last, text, one.score, title, created_at, bool(self.partial), best_line=best)


def _loaded(connection: Connection, ids: Sequence[int]) -> dict[int, _Row]:
    """The passages with these ids, in their order."""
    rows = connection.execute(
        "SELECT p.id, c.title, p.body, p.pieces, p.words, c.source_id, p.first_line, p.last_line, p.partial"
        " FROM json_each(?) j CROSS JOIN passages p ON p.id = j.value CROSS JOIN chunks c ON c.id = p.chunk_id",
        (json.dumps(ids),),
    ).fetchall()
    sources = _sources(connection, {row[5] for row in rows})
    found = {}
    for number, title, body, pieces, words, owner, first, last, partial in rows:
        source = sources[owner]
        candidate = Candidate(number, title, body, pieces, words, owner, source.words)
        found[number] = _Row(candidate, source, first, last, partial)
    if len(found) < len(ids):
        raise DatabaseError("the index is corrupt: it names passages that are not there")
    return {number: found[number] for number in ids}


def _sources(connection: Connection, ids: Iterable[int]) -> dict[int, _Source]:
    rows = connection.execute(
        "SELECT id, handle, label, created_at, words FROM sources WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {row[0]: _Source(*row[1:]) for row in rows}
