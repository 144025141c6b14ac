"""Which distinctive words of an output are worth a search: none that was asked for already, none with a number in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sandboxmcp.core.words import folded, words_in

_ENDINGS = frozenset("s es d ed e er ers ing ly".split())


def worth_searching(terms: Iterable[str], queries: Sequence[str]) -> list[str]:
    """The terms, in their order, without those of the queries (in any form) and without row numbers, hashes and the like."""
    asked = {folded(word) for query in queries for word in words_in(query)}
    return [term for term in terms if not any(map(str.isdigit, term)) and not any(_same(folded(term), word) for word in asked)]


def _same(one: str, other: str) -> bool:
    """Equal up to an ending: `package` and `packages`."""
    short, long = sorted((one, other), key=len)
    return one == other or (long.startswith(short) and long[len(short) :] in _ENDINGS)
