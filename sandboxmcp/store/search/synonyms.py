"""Words that stand for one another in questions about programs, their output and their manuals.

From common usage, by subject, in synonyms.txt. Every word of a line there stands for the others of that line, at a low weight; a
word may be on several lines. Stemming reaches the other forms of a word, so one form of each is enough.
"""

from __future__ import annotations

from pathlib import Path

_MOST = 8
"""Words that stand for one: each is looked up in the index."""


def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for line in Path(__file__).with_name("synonyms.txt").read_text(encoding="utf-8").splitlines():
        group = line.split()
        for word in group:
            table.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return {word: tuple(others)[:_MOST] for word, others in table.items()}


SYNONYMS = _table()
"""Every word with those that stand for it, the nearest first."""
