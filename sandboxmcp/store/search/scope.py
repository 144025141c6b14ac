"""Which part of the index a search looks at: the sources in scope as ranges of passage ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from sandboxmcp.core.model import Scope
from sandboxmcp.core.text import storable
from sandboxmcp.store.search.query import match_any

if TYPE_CHECKING:
    from sqlite3 import Connection

_COUNTED = 3_000
"""Passages with a word are counted one by one up to here."""
_SMALL = 20_000
"""Passages of a field in which every count is exact."""
_SAMPLES = 16
_SAMPLED = 8_000
_LOOKED_AT = 1_000
_TOGETHER = 6
_SPELT_AMONG = 20_000
"""Passages whose text is looked at for what a query says letter for letter."""
_MOST_RANGES = 8
"""More separate ranges than this are searched as one, with a test of every passage."""


def conditions(scope: Scope) -> tuple[str, list[Any]]:
    """The scope as SQL over `sources`, with its parameters. Sources that a newer version replaced are never in scope."""
    tests, values = ["replaced_by IS NULL"], list[Any]()
    for column in ("project", "session", "batch", "kind"):
        value = getattr(scope, column)
        if value is not None:
            tests.append(f"{column} = ?")
            values.append(storable(value))
    if scope.handles:
        tests.append(f"handle IN ({','.join('?' * len(scope.handles))})")
        values += map(storable, scope.handles)
    if scope.source is not None:
        tests.append("label LIKE ? ESCAPE '\\'")
        values.append("%" + storable(scope.source).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%")
    return " AND ".join(tests), values


@dataclass(frozen=True, slots=True)
class Field:
    """The passages that a search looks at."""

    ranges: tuple[tuple[int, int], ...]
    """First and last passage id, ascending, apart from each other."""
    passages: int
    words: int
    condition: str = ""
    """SQL that a passage in the ranges must fulfil as well, over `passages_fts`; empty when all of them are in scope."""
    values: tuple[Any, ...] = ()

    @property
    def mean_words(self) -> float:
        return self.words / self.passages if self.passages else 0.0

    def holding(self, connection: Connection, word: str, columns: str = "{title body pieces}") -> int:
        """How many passages of the ranges hold the word; with a condition that counts its neighbours in other scopes as well.

        Exact for up to a few thousand; of a more common word, samples all over the ranges are counted.
        """
        match = f'{columns} : "{word}"'
        counted = self._counted(connection, match, self.ranges, _COUNTED)
        span = sum(last - first + 1 for first, last in self.ranges)
        if counted < _COUNTED or span <= _SMALL:
            return counted if counted < _COUNTED else self._counted(connection, match, self.ranges, span)
        samples = list(self._samples(span))
        seen = sum(last - first + 1 for first, last in samples)
        return max(counted, self._counted(connection, match, samples, seen) * span // seen)

    def bodies(self, connection: Connection, word: str, columns: str, limit: int) -> list[str]:
        """Texts of at most `limit` passages that hold the word, the first ones."""
        found: list[str] = []
        for ids in self.ranges:
            rows = connection.execute(
                "SELECT p.body FROM (SELECT rowid AS id FROM passages_fts WHERE passages_fts MATCH ? AND rowid BETWEEN ? AND ?"
                " LIMIT ?) f JOIN passages p ON p.id = f.id",
                (f'{columns} : "{word}"', *ids, limit - len(found)),
            )
            found += [body for (body,) in rows]
        return found

    def _counted(self, connection: Connection, match: str, ranges: Iterable[tuple[int, int]], most: int) -> int:
        count = 0
        for ids in ranges:
            (more,) = connection.execute(
                "SELECT count(*) FROM (SELECT 1 FROM passages_fts WHERE passages_fts MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)",
                (match, *ids, most - count),
            ).fetchone()
            count += more
            if count >= most:
                break
        return count

    def _samples(self, span: int) -> Iterator[tuple[int, int]]:
        """Ranges evenly over all ranges, together about `_SAMPLED` passages."""
        for first, last in self.ranges:
            length = last - first + 1
            pieces = max(1, _SAMPLES * length // span)
            each = max(1, _SAMPLED * length // span // pieces)
            yield from ((start, min(last, start + each - 1)) for start in range(first, last + 1, -(-length // pieces)))

    def best(self, connection: Connection, words: Sequence[str], limit: int) -> list[int]:
        """Ids of at most `limit` passages with any of the words, best first by SQLite's own ranking.

        FTS5 would sort by its column `rank` with all that it knows of each passage; by an expression (`+rank`) SQLite sorts two
        numbers, and only the best of them.
        """
        found: list[tuple[float, int]] = []
        for ids in self.ranges:
            found += connection.execute(
                "SELECT rank, rowid FROM passages_fts WHERE passages_fts MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608
                f"{self.condition} ORDER BY +rank LIMIT ?",  # the condition is ours, its values are bound
                (match_any(list(words)), *ids, *self.values, limit),
            )
        return [rowid for _, rowid in sorted(found)[:limit]]

    def spelling(self, connection: Connection, text: str, words: Sequence[str], limit: int) -> list[int]:
        """Ids of at most `limit` passages that hold a text letter for letter (in small letters), the newest first.

        Looked for among the newest passages with its words, or among the newest of all if it has none.
        """
        found: list[int] = []
        match = " AND ".join(f'"{word}"' for word in words)
        table, test = ("passages_fts", "passages_fts MATCH ? AND") if words else ("passages AS passages_fts", "")
        for ids in reversed(self.ranges):
            rows = connection.execute(
                f"SELECT p.id FROM (SELECT rowid AS id FROM {table} WHERE {test} rowid BETWEEN ? AND ?"  # noqa: S608
                f"{self.condition} ORDER BY rowid DESC LIMIT {_SPELT_AMONG}) f JOIN passages p ON p.id = f.id"
                " WHERE instr(lower(p.body), ?) ORDER BY p.id DESC LIMIT ?",
                (*([match] if words else []), *ids, *self.values, text, limit - len(found)),
            )
            found += [rowid for (rowid,) in rows]
        return found

    def together(self, connection: Connection, words: Sequence[str], ranked: int, limit: int) -> list[int]:
        """Ids of at most `limit` passages that hold several of the words, the first `ranked` of which are looked for elsewhere.

        For words so common that ranking all their passages would take long: the rarer word of two bounds the work, and of many
        passages the short ones of the newest are taken. The words come rarest first.
        """
        found: dict[int, None] = {}
        for chosen in _sets(words, ranked):
            match = " AND ".join(f'"{word}"' for word in chosen)
            for ids in reversed(self.ranges):
                if len(found) < limit:
                    rows = connection.execute(
                        "SELECT p.id FROM (SELECT rowid AS id FROM passages_fts"  # noqa: S608
                        " WHERE passages_fts MATCH ? AND rowid BETWEEN ? AND ?"
                        f"{self.condition} ORDER BY rowid DESC LIMIT {_LOOKED_AT}) f JOIN passages p ON p.id = f.id"
                        " ORDER BY p.words LIMIT ?",
                        (match, *ids, *self.values, limit),
                    )
                    found.update(dict.fromkeys(rowid for (rowid,) in rows))
        return list(found)[:limit]


def _sets(words: Sequence[str], ranked: int) -> Iterator[Sequence[str]]:
    """Which words are looked for together: all, then pairs with a common word, the rarest first; alone if none is ranked."""
    if len(words) > 2:
        yield words[:_TOGETHER]
    pairs = sorted(combinations(range(len(words)), 2), key=sum)
    yield from ([words[one], words[other]] for one, other in [pair for pair in pairs if pair[1] >= ranked][:_TOGETHER])
    if not ranked:
        yield words[:1]


def field_of(connection: Connection, scope: Scope) -> Field:
    """The passages in scope: their id ranges, or their envelope with a test where the ranges are many."""
    where, values = conditions(scope)
    passages, words, first, last = connection.execute(
        f"SELECT coalesce(sum(passages), 0), coalesce(sum(words), 0), min(first_passage), max(last_passage)"  # noqa: S608
        f" FROM sources WHERE passages > 0 AND {where}",
        values,
    ).fetchone()
    if not passages:
        return Field((), 0, 0)
    (between,) = connection.execute(
        "SELECT sum(passages) FROM sources WHERE first_passage >= ? AND last_passage <= ?", (first, last)
    ).fetchone()
    if between == passages:
        return Field(((first, last),), passages, words)
    rows = connection.execute(
        f"SELECT first_passage, last_passage FROM sources WHERE passages > 0 AND {where}"  # noqa: S608
        f" ORDER BY first_passage LIMIT {_MOST_RANGES + 1}",
        values,
    )
    ranges = tuple(_joined(rows))
    if len(ranges) <= _MOST_RANGES and sum(last - first + 1 for first, last in ranges) >= passages:
        return Field(ranges, passages, words)
    test = (
        " AND EXISTS (SELECT 1 FROM passages p JOIN chunks c ON c.id = p.chunk_id JOIN sources s ON s.id = c.source_id"  # noqa: S608
        f" WHERE p.id = passages_fts.rowid AND {where})"
    )
    return Field(((first, last),), passages, words, test, tuple(values))


def _joined(ranges: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    held: tuple[int, int] | None = None
    for first, last in ranges:
        if held is not None and first == held[1] + 1:
            held = (held[0], last)
            continue
        if held is not None:
            yield held
        held = (first, last)
    if held is not None:
        yield held
