"""Passages of a log that differ in their numbers only: the best one stands for all, and says how many there are. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable

from sandboxmcp.core.model import Hit
from sandboxmcp.store.search.snippets import template_of

_FEWEST_WORDS = 2
"""Rows of numbers are alike too, but what they say is the numbers."""
_LETTERS = 3
_NUMBERED = re.compile(r"(?<!\S)\S*?\d\S*")
_WORD = re.compile(r"[^\W\d_]+")


def folded(hits: Iterable[Hit], logs: Collection[str]) -> tuple[list[Hit], dict[tuple[str, int], list[Hit]]]:
    """The hits in their order without those whose every line was told of the same log, but for numbers, and that say most in the
    same line as an earlier one.

    And by handle and first line of those that are left what each stands for. `logs`: handles.
    """
    told: list[Hit] = []
    lines: dict[str, set[str]] = defaultdict(set)
    by_best: dict[tuple[str, str], Hit] = {}
    alike: dict[tuple[str, int], list[Hit]] = defaultdict(list)
    for hit in hits:
        templates = _templates(hit) if hit.handle in logs and not hit.partial else []
        best = hit.handle, template_of(_best_line(hit))
        if templates and best in by_best and lines[hit.handle].issuperset(templates):
            first = by_best[best]
            alike[first.handle, first.first_line].append(hit)
            continue
        told.append(hit)
        if templates:
            lines[hit.handle].update(templates)
            by_best.setdefault(best, hit)
    return told, dict(alike)


def phrase_of(hit: Hit) -> str:
    """The longest run of words without a number between them in its best line: what its repeats have in common."""
    runs = (" ".join(_WORD.findall(part)) for part in _NUMBERED.split(_best_line(hit)))
    return max(runs, key=len)


def repeats(hit: Hit, text: str) -> bool:
    """Does a text have the best line of the hit, but for numbers?"""
    template = template_of(_best_line(hit))
    return any(template_of(line) == template for line in text.split("\n"))


def _best_line(hit: Hit) -> str:
    return hit.text.split("\n")[max(hit.best_line, 0)]


def _templates(hit: Hit) -> list[str]:
    """Of each of its lines; none if one of them says too little by its words."""
    templates = [template_of(line) for line in hit.text.split("\n") if line.strip()]
    return templates if all(map(_says, templates)) else []


def _says(template: str) -> bool:
    return sum(len(word) >= _LETTERS and word.isalpha() for word in template.split()) >= _FEWEST_WORDS
