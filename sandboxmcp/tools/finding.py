"""A query against the store, its best passages of code widened to the end of the paragraph that they begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from sandboxmcp.core.model import Hit, Scope, Source
from sandboxmcp.render.items import GONE, Found, Others
from sandboxmcp.session import Session
from sandboxmcp.tools.alike import told_once
from sandboxmcp.tools.folding import folded, phrase_of, repeats

_WIDENED = 3
"""So many of the best hits."""
_COUNTED = 5
"""So many of the hits that stand for others say how many there are in all."""
_LINES = 8
"""At most so many more lines each: a signature without its body answers little."""
_RANKED = 200
"""Passages that a search looks at more closely."""
_QUERY_TOKENS = 40
"""With less a query cannot even be answered by one cited line."""


def find(session: Session, query: str, scope: Scope, sort: Literal["relevance", "recent"] = "relevance") -> Found:
    """The query with its hits, best first. Blocking.

    Raises:
        StoreError.
    """
    query = query.encode("utf-8", "replace").decode()  # arguments of a command need not be UTF-8
    ranked = session.store.search(query, scope, sort=sort, limit=_RANKED)
    sources = session.store.get_all({hit.handle for hit in ranked})
    every = _still_there([hit for hit in ranked if hit.handle in sources], sources)  # some may have been forgotten meanwhile
    told, others = told_once(every, {handle: source.digest for handle, source in sources.items()})
    hits, alike = folded(told, {handle for handle, source in sources.items() if source.kind == "log"})
    others |= _with_counts(session, hits, others, alike)
    best = [_widened(session, hit, sources[hit.handle]) for hit in hits[:_WIDENED]]
    gone = {handle for handle, source in sources.items() if source.gone}
    shown = [_marked(hit) if hit.handle in gone else hit for hit in (*best, *hits[_WIDENED:])]
    return Found(query, tuple(shown), others, _is_capped(every))


def _with_counts(
    session: Session,
    hits: Sequence[Hit],
    others: Mapping[tuple[str, int], Others],
    alike: Mapping[tuple[str, int], Sequence[Hit]],
) -> dict[tuple[str, int], Others]:
    """How many passages the hits stand for; of the first few hits all that the index holds, not only those that were ranked."""
    counted: dict[tuple[str, int], Others] = {}
    for number, hit in enumerate(hit for hit in hits if (hit.handle, hit.first_line) in alike):
        place = hit.handle, hit.first_line
        everywhere = session.store.count(hit.handle, phrase_of(hit), partial(repeats, hit)) - 1 if number < _COUNTED else 0
        counted[place] = replace(others.get(place, Others()), alike=max(len(alike[place]), everywhere))
    return counted


def _still_there(hits: Sequence[Hit], sources: Mapping[str, Source]) -> Sequence[Hit]:
    """The hits without those of a file that is gone where another source has the same lines of the same content."""
    if not any(source.gone for source in sources.values()):
        return hits
    places = [(sources[hit.handle].digest, hit.first_line, hit.last_line) for hit in hits]
    there = {place for hit, place in zip(hits, places, strict=True) if not sources[hit.handle].gone}
    return [hit for hit, place in zip(hits, places, strict=True) if place not in there or not sources[hit.handle].gone]


def _is_capped(hits: Sequence[Hit]) -> bool:
    return sum(hit.passages for hit in hits) >= _RANKED


def affordable(queries: Sequence[str], room: int) -> int:
    """How many of the queries can be answered in so many tokens, at least the first."""
    return min(len(queries), max(1, room // _QUERY_TOKENS))


def _marked(hit: Hit) -> Hit:
    return replace(hit, label=hit.label + GONE)


def _widened(session: Session, hit: Hit, source: Source) -> Hit:
    if source.kind != "code" or hit.partial or hit.last_line >= source.lines:
        return hit
    following = session.store.read_lines(hit.handle, hit.last_line + 1, hit.last_line + _LINES)
    blank = next((index for index, line in enumerate(following) if not line.strip()), len(following))
    if not blank or not hit.text.strip():
        return hit
    return replace(hit, text="\n".join([hit.text, *following[:blank]]), last_line=hit.last_line + blank)
