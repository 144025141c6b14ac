"""The number of parts that a text may be cut into: so many for free, and more for every byte of it. Pure.

Every section and every passage costs a row in several tables of the index. A text of four-byte headings would cost a hundred times
as much as prose of the same size. Parts are counted and not seconds, so that equal texts are cut alike on every day.
"""

from __future__ import annotations

BYTES_A_PART = 32
"""Sections and passages of ordinary texts have a hundred bytes and more."""
FREE_SECTIONS = 20_000
FREE_PASSAGES = 50_000


class Allowance:
    """So many parts for free, and one more for every 32 bytes that were cut."""

    def __init__(self, free: int) -> None:
        self._room = free * BYTES_A_PART

    @property
    def spent(self) -> bool:
        """Were the parts too many?"""
        return self._room < 0

    def take(self, size: int) -> bool:
        """Count a part of `size` bytes. False: this and earlier ones were too many."""
        self._room += size - BYTES_A_PART
        return self._room >= 0


class Steps:
    """What one text may still be cut into."""

    def __init__(self) -> None:
        self.sections = Allowance(FREE_SECTIONS)
        self.passages = Allowance(FREE_PASSAGES)
        self.is_plain = False
        """Its sections were too many, so that the rest was cut as plain lines."""
