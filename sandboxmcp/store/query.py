"""A question in a person's words becomes weighted search words. Pure; the store adds what only its vocabulary knows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sandboxmcp.store.kin import KIN
from sandboxmcp.store.words import STOP_WORDS, folded, pieces_of, words_in

Role = Literal["word", "piece", "glued", "kin", "repair"]

PIECE_WEIGHT = 0.8
GLUED_WEIGHT = 0.8
KIN_WEIGHT = 0.4
PARTICLE_WEIGHT = 0.5
_PARTICLES = frozenset("out up off down away".split())
"""They belong to the verb before them and say little by themselves: "timed out", "shut down"."""
_LONGEST_QUERY = 64
"""Words of a query that are looked at; no question needs more and each costs a look into the index."""
_LONGEST_WORD = 64


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

    Stop words are left out unless there is nothing else. Empty for a query without letters and digits.
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
    for word in raw:
        text = folded(word)
        yield Word(text, PARTICLE_WEIGHT if text in _PARTICLES and len(raw) > 1 else 1.0)
        for piece in pieces_of(word):
            yield Word(folded(piece), PIECE_WEIGHT, "piece", text)
    for first, second in itertools.pairwise(raw):
        yield Word(folded(first + second)[:_LONGEST_WORD], GLUED_WEIGHT, "glued", folded(first))
    for word in raw:
        for kin in KIN.get(folded(word), ()):
            yield Word(kin, KIN_WEIGHT, "kin", folded(word))
