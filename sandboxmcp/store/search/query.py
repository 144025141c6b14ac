"""A question in a person's words becomes weighted search words. Pure; the store adds what only its vocabulary knows."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sandboxmcp.core.words import STOP_WORDS, folded, pieces_of, words_in
from sandboxmcp.store.search.synonyms import SYNONYMS

Role = Literal["word", "piece", "glued", "kin", "repair"]

PIECE_WEIGHT = 0.8
GLUED_WEIGHT = 0.8
KIN_WEIGHT = 0.4
RESPELT_WEIGHT = 0.9
PARTICLE_WEIGHT = 0.5
_PARTICLES = frozenset("out up off down away".split())
"""They belong to the verb before them and say little by themselves: "timed out", "shut down"."""
_LONGEST_QUERY = 64
"""Words of a query that are looked at; no question needs more and each costs a look into the index."""
_LONGEST_WORD = 64
_OUR = "(arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rum|vap)"
_RESPELLINGS = tuple(
    (re.compile(british), re.compile(american), american_form, british_form)
    for british, american, american_form, british_form in (
        (r"is(e[drs]?|ers|ing|ations?)$", r"iz(e[drs]?|ers|ing|ations?)$", r"iz\1", r"is\1"),  # serialise, serialize
        (r"ys(e[drs]?|ing)$", r"yz(e[drs]?|ing)$", r"yz\1", r"ys\1"),  # analyse, analyze
        (rf"^{_OUR}our", rf"^{_OUR}or", r"\1or", r"\1our"),  # colour, color
        (r"ll(ed|ing|er)$", r"(?<=[aeiou])l(ed|ing|er)$", r"l\1", r"ll\1"),  # cancelled, canceled
        (r"^(cen|fi|li|thea)tre", r"^(cen|fi|li|thea)ter", r"\1ter", r"\1tre"),  # centre, center
        (r"^(catal|dial|anal|prol)ogue", r"^(catal|dial|anal|prol)og(?!ue)", r"\1og", r"\1ogue"),  # catalogue, catalog
        (r"^(lic|def|off|pret)ence", r"^(lic|def|off|pret)ense", r"\1ense", r"\1ence"),  # licence, license
    )
)
_SHORTEST_RESPELT = 6


@dataclass(frozen=True, slots=True)
class Word:
    """One thing to look for. `text` is letters and digits only, so no search syntax can hide in it."""

    text: str
    weight: float = 1.0
    role: Role = "word"
    origin: str = ""
    """For everything but `word`: the query's word that it stands for."""


def query_words(query: str) -> tuple[Word, ...]:
    """What to look for, each text once at its highest weight: the words, identifier pieces, glued neighbours, near synonyms.

    What a long question says again and again counts more. Stop words are left out unless there is nothing else. Empty for a query
    without letters and digits.
    """
    found: dict[str, Word] = {}
    for word in _all_words(query):
        if word.text not in found or found[word.text].weight < word.weight:
            found[word.text] = word
    return tuple(found.values())


def match_any(words: list[str]) -> str:
    """The FTS5 expression that matches passages with any of the words. Quoted: FTS5's operators are words as well."""
    return " OR ".join(f'"{word}"' for word in words)


def _all_words(query: str) -> Iterator[Word]:
    raw = [word[:_LONGEST_WORD] for word in words_in(query)[: 4 * _LONGEST_QUERY]]
    raw = ([word for word in raw if folded(word) not in STOP_WORDS] or raw)[:_LONGEST_QUERY]
    said = Counter(map(folded, raw))
    for word in raw:
        text = folded(word)
        weight = PARTICLE_WEIGHT if text in _PARTICLES and len(raw) > 1 else 1.0
        yield Word(text, weight * (1 + math.log(said[text])))
        for other in _respelt(text):
            yield Word(other, RESPELT_WEIGHT, "piece", text)
        for piece in pieces_of(word):
            yield Word(folded(piece), PIECE_WEIGHT, "piece", text)
    for first, second in itertools.pairwise(raw):
        yield Word(folded(first + second)[:_LONGEST_WORD], GLUED_WEIGHT, "glued", folded(first))
    for word in raw:
        for kin in SYNONYMS.get(folded(word), ()):
            yield Word(kin, KIN_WEIGHT, "kin", folded(word))


def _respelt(word: str) -> Iterator[str]:
    """The word as the other side of the Atlantic spells it; what is no word there is not in the index either."""
    if len(word) < _SHORTEST_RESPELT or not word.isascii():
        return
    for british, american, american_form, british_form in _RESPELLINGS:
        if (other := british.sub(american_form, word)) != word or (other := american.sub(british_form, word)) != word:
            yield other
