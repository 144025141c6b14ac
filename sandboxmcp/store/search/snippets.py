"""Ranked passages as snippets: whole lines, neighbours joined, repeats of one template after everything else. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from sandboxmcp.core.model import Hit
from sandboxmcp.core.words import HEADINGS_BETWEEN

_VARIABLE = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+")
_NOT_WORDS = re.compile(r"[\W_]+")
_TEMPLATE_READ = 300
_TEMPLATE_LENGTH = 140
JOINED_BYTES = 800
_SMALL_LETTERS = 80
"""A text of no more is shown whole."""

T = TypeVar("T")


def template_of(line: str) -> str:
    """What a line has in common with its repeats: no numbers, hashes, punctuation or case."""
    return _template(line[:_TEMPLATE_READ])


@lru_cache(maxsize=8_192)
def _template(line: str) -> str:
    """Lines are asked for more than once in a search, and by the next one."""
    return _NOT_WORDS.sub(" ", _VARIABLE.sub("0", line.lower())).strip()[:_TEMPLATE_LENGTH]


def window(text: str, first: int, last: int, title: str = "") -> tuple[int, str, int]:
    """The lines from index `first` to `last`; and how many are left out before and after them.

    From the beginning of the text if that names its section: an option's text without the option answers nothing.
    """
    if len(text) <= _SMALL_LETTERS:
        return 0, text, 0
    lines = text.split("\n")
    heading = title.rpartition(HEADINGS_BETWEEN)[2]
    if heading and (heading in lines[0] or lines[0].strip() in heading):
        first = 0
    return first, "\n".join(lines[first : last + 1]), len(lines) - last - 1


def repeats_last(items: Iterable[T], best_line: Callable[[T], str]) -> list[T]:
    """The items in their order, but those whose best line repeats the template of an earlier one come after all others."""
    seen: set[str] = set()
    first: list[T] = []
    again: list[T] = []
    for item in items:
        template = template_of(best_line(item))
        (again if template in seen else first).append(item)
        seen.add(template)
    return first + again


def neighbours_joined(hits: Sequence[Hit]) -> list[Hit]:
    """Hits whose lines follow on each other in one source and that also follow on each other in rank, as one."""
    joined: list[Hit] = []
    for hit in hits:
        merged = _merged(joined[-1], hit) if joined else None
        if merged is None:
            joined.append(hit)
        else:
            joined[-1] = merged
    return joined


def _merged(one: Hit, other: Hit) -> Hit | None:
    if one.handle != other.handle or one.partial or other.partial or len(one.text) + len(other.text) > JOINED_BYTES:
        return None
    early, late = (one, other) if one.first_line < other.first_line else (other, one)
    if early.last_line + 1 != late.first_line:
        return None
    return replace(
        one,
        first_line=early.first_line,
        last_line=late.last_line,
        text=f"{early.text}\n{late.text}",
        passages=one.passages + other.passages,
        best_line=one.best_line if one is early or one.best_line < 0 else one.first_line - early.first_line + one.best_line,
    )
