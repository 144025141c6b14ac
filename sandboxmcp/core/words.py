"""Tokenisation for index, query and ranking: words of letters and digits, folded, with the pieces of identifiers beside the whole.

A word here is what SQLite's unicode61 tokenizer calls a token: a run of letters and digits, so `get_user_name` is three.
Kept pure: no database, no stemming (the tokenizer of the index does that).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

_WORD = re.compile(r"[^\W_]+")
_BETWEEN = {code: " " for code in range(128) if not chr(code).isalnum()}
"""Blanks for all ASCII that is no word: texts of ASCII are split three times faster so."""
_APART = "\0"
"""No shown text holds it."""
_BETWEEN_TEXTS = {code: blank for code, blank in _BETWEEN.items() if chr(code) != _APART}
_SNAKE = re.compile(r"(?<![^\W_])[^\W_]++(?:_[^\W_]++)+")
_PIECE = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff\u0300-\u036f]+")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_NOT_KEPT = re.compile(r"\d+|(?=[a-f]*\d)[0-9a-f]{8,}")
_LONGEST_SPLIT = 64
"""Longer runs are encoded data, not identifiers."""
_CACHE_WORDS = 100_000

HEADINGS_BETWEEN = " › "
"""Joins the headings over a passage, outermost first."""

STOP_WORDS = frozenset(
    """a about all also am an and any are as at be been being but by can could did do does for from had has have he her here his
    how i if in into is it its just may me might more most must my no not of on only or other our shall she should so some such
    than that the their then there these they this to very was we were what when where which who whom whose why will with would
    you your""".split()
)
"""Words that carry grammar rather than content; a query of nothing else is searched as it stands."""


def words_in(text: str) -> list[str]:
    """The words of a text, in order, in their own case."""
    return text.translate(_BETWEEN).split() if text.isascii() else _WORD.findall(text)


def words_of_each(texts: Sequence[str]) -> list[list[str]]:
    """The words of each of many shown texts: those of ASCII are cleaned together, which costs a quarter less."""
    together = _APART.join(texts)
    if not together.isascii():
        return [words_in(text) for text in texts]
    return [text.split() for text in together.translate(_BETWEEN_TEXTS).split(_APART)] if texts else []


def folded(text: str) -> str:
    """Lower case, Latin letters without diacritics: what unicode61 (remove_diacritics 2) compares. Other scripts keep theirs."""
    low = text.lower()
    return low if low.isascii() else _ACCENTED.sub(_plain, low)


def _plain(match: re.Match[str]) -> str:
    return _ACCENTS.sub("", unicodedata.normalize("NFD", match.group()))


def pieces_of(word: str) -> tuple[str, ...]:
    """The parts of an identifier (`HTTPServerError`: HTTP, Server, Error) or the character pairs of CJK; empty for plain words."""
    if word.isascii():
        if len(word) > _LONGEST_SPLIT or (word[1:].islower() and word.isalpha()) or word.isdigit():
            return ()
        parts = _PIECE.findall(word) if not _NOT_KEPT.fullmatch(word.lower()) else []  # the letters of a hash say nothing
        return tuple(part for part in parts if len(part) > 1) if len(parts) > 1 else ()
    return tuple(run[i : i + 2] for run in _CJK_RUN.findall(word) for i in range(len(run) - 1) if len(run) > 2)


def glued(text: str) -> list[str]:
    """snake_case identifiers as one word each (`get_user_name`: getusername), so that both spellings meet."""
    if "_" not in text:
        return []
    return [whole.replace("_", "") for whole in _SNAKE.findall(text) if len(whole) <= _LONGEST_SPLIT]


class Pieces(dict[str, str]):
    """What to index beside a text: the pieces of each word that was asked for, joined by blanks. Shared by threads."""

    def __init__(self) -> None:
        super().__init__()
        self._met: tuple[set[str], set[str]] = set(), set()
        """Words that `meet` was asked for, and those of them that have pieces."""

    def beside(self, text: str, words: Iterable[str]) -> str:
        """The pieces of a text's identifiers and its snake_case ones as a whole, joined by blanks; `words` are the text's."""
        return " ".join((*dict.fromkeys(filter(None, map(self.__getitem__, words))), *glued(text)))

    def meet(self, words: Iterable[str]) -> AbstractSet[str]:
        """A set that holds those of the words that have pieces, and others."""
        met, having = self._met
        if len(met) > _CACHE_WORDS:
            met, having = self._met = set(), set()
        new = [word for word in words if word not in met]
        # Plain words, which is what most new ones are, are told here: a call for each would cost as much again.
        others = [word for word in new if not (word.isascii() and word[1:].islower() and word.isalpha())]
        having.update([word for word in others if self[word]])  # first: another thread trusts what is met
        met.update(new)
        return having

    def __missing__(self, word: str) -> str:
        pieces = " ".join(pieces_of(word))
        _remember(self, {word: pieces})
        return pieces


class Kept(dict[str, str]):
    """The folded form of words that a person may mistype or abbreviate, "" for others: numbers, hashes, not 3 to 40 characters."""

    def meet(self, words: Iterable[str]) -> None:
        """Remembers the plain ones of the words together."""
        new = [word for word in words if word not in self and word.isascii() and word.islower() and word.isalpha()]
        _remember(self, {word: word for word in new if 3 <= len(word) <= 40})

    def __missing__(self, word: str) -> str:
        text = folded(word)
        kept = text if 3 <= len(text) <= 40 and not _NOT_KEPT.fullmatch(text) else ""
        _remember(self, {word: kept})
        return kept


def _remember(known: dict[str, str], more: dict[str, str]) -> None:
    if len(known) > _CACHE_WORDS:
        known.clear()
    known.update(more)
