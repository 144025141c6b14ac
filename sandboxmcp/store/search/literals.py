"""What a query says letter for letter: quoted phrases, and names and operators with symbols that words alone lose. Pure.

The index holds words only: `C++` is its `c`, `->` is nothing. So what holds such a text is told by looking at the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sandboxmcp.store.search.rank import Ranked

_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|`([^`\n]{1,200})`")
_WORDS_JOINED = re.compile(r"[^\W\d_]+(?:[-/.'’&][^\W\d_]+)+")
_BARE = re.compile(r"[\w']+")
_OPENING = "([{<\"'“‘`"
_CLOSING = ",;:?!\"'”’`"
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}
_MOST = 8
_LOOKED_AT = 2_000
"""Letters of a query that are looked at."""
_LONGEST = 200
_PREFERRED = 1.1
_STEP = 0.1


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in small letters. Where it is not `sure` (words joined by a mark, among other words) it is only preferred."""

    text: str
    sure: bool = True


def literals(query: str) -> tuple[Literal, ...]:
    """The literals of a query, each once, at most eight."""
    head = query[:_LOOKED_AT]
    quoted = [" ".join(filter(None, match.groups())) for match in _QUOTED.finditer(head)]
    tokens = [_bare(token) for token in _QUOTED.sub(" ", head).split()]
    found = [Literal(text.strip().lower()) for text in quoted if text.strip()]
    found += [
        Literal(f"{one} {operator} {other}".lower())
        for (one, operator), (_, other) in pairwise(pairwise(tokens))
        if _is_operator(operator)
    ]
    found += [
        Literal(token.lower(), len(tokens) == 1 or not _WORDS_JOINED.fullmatch(token)) for token in tokens if _says_more(token)
    ]
    return tuple(dict.fromkeys(one for one in found if len(one.text) <= _LONGEST))[:_MOST]


def exact_first(order: Sequence[Ranked], wanted: Sequence[Literal]) -> list[Ranked]:
    """The passages that hold what is wanted before all others, by how much of it; their scores say so too."""
    if not wanted or not order:
        return list(order)
    best = max(one.score for one in order) or 1.0
    return sorted((_with_literals(one, wanted, best) for one in order), key=lambda one: -one.score)


def _with_literals(one: Ranked, wanted: Sequence[Literal], best: float) -> Ranked:
    body = one.candidate.body.lower()
    places = {literal: at for literal in wanted if (at := body.find(literal.text)) >= 0}
    if not places:
        return one
    sure = sum(literal.sure for literal in places)
    if not sure:
        return replace(one, score=one.score * _PREFERRED)
    # Above all others, and not by much: what scores far less than the best is left out of answers.
    score = best * (1 + _STEP * (sure - 1)) + _STEP * one.score
    lines = [body.count("\n", 0, at) for literal, at in places.items() if literal.sure]
    first, last = one.telling or (lines[0], lines[0])
    return replace(one, score=score, best_line=lines[0], telling=(min(first, *lines), max(last, *lines)))


def _bare(token: str) -> str:
    """Without the marks of the sentence around it: brackets that do not belong to it, and what ends a clause."""
    token = token.rstrip(_CLOSING)
    while len(token) > 2 and _BRACKETS.get(token[-1]) == token[0] and token[0] != "<":
        token = token[1:-1]
    while token and (token[-1] in _CLOSING or (token[-1] == "." and len(token) > 1) or _stray(token)):
        token = token[:-1]
    while token and token[0] in _OPENING and not (set(_BRACKETS) & set(token)):
        token = token[1:]
    return token


def _stray(token: str) -> bool:
    opening = _BRACKETS.get(token[-1])
    return opening is not None and opening not in token and any(map(str.isalnum, token))


def _is_operator(token: str) -> bool:
    return 0 < len(token) <= 3 and not any(map(str.isalnum, token))


def _says_more(token: str) -> bool:
    """More than its words: a mark that is not only around it, or words that an underscore joins. A single mark is punctuation."""
    return len(token) > 1 and (_BARE.fullmatch(token) is None or "_" in token.strip("_'"))
