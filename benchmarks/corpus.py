"""Texts to index, the same in every run: made-up words whose frequencies fall as in natural language."""

from __future__ import annotations

import itertools
import random

_ONSETS, _VOWELS = "b d f g k l m n p r s t v z br st tr pl".split(), "a e i o u ai ou".split()
_WORDS = 12_000
_RARE, _COMMON = 4_000, 60
"""Query words come from between these ranks: neither in every section nor in one alone."""


class Language:
    """A vocabulary and a seeded way to speak it."""

    def __init__(self, seed: int = 5) -> None:
        self._draw = random.Random(seed)
        syllables = ["".join(pair) for pair in itertools.product(_ONSETS, _VOWELS)]
        words = {"".join(self._draw.choices(syllables, k=self._draw.choice((2, 3, 3)))): None for _ in range(2 * _WORDS)}
        self._words = list(words)[:_WORDS]
        self._weights = list(itertools.accumulate(1 / (rank + 4) for rank in range(len(self._words))))

    def words(self, count: int) -> list[str]:
        return self._draw.choices(self._words, cum_weights=self._weights, k=count)

    def queries(self, count: int) -> list[str]:
        return [" ".join(self._draw.sample(self._words[_COMMON:_RARE], self._draw.choice((2, 3)))) for _ in range(count)]

    def markdown(self, size: int) -> str:
        """Headed sections of about 90 words in lines of 15, at least `size` bytes."""
        sections: list[str] = []
        written = 0
        while written < size:
            body = self.words(90)
            lines = [" ".join(body[start : start + 15]) for start in range(0, 90, 15)]
            sections.append(f"## {' '.join(self.words(3)).title()} {len(sections)}\n\n" + "\n".join(lines) + "\n\n")
            written += len(sections[-1])
        return "".join(sections)


def log_lines(block: int, count: int) -> str:
    """Lines of a server's log, about 63 bytes each; every 97th is an error."""
    return "".join(
        f"2026-03-01T10:{n // 60 % 60:02d}:{n % 60:02d} worker-{block} request {n * 31 % 9973} "
        f"status={'ok' if n % 97 else 'ERROR'} took {n * 7 % 400}ms\n"
        for n in range(count)
    )
