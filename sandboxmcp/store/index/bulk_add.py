"""Many files stored in few transactions: a small file costs less than the transaction, the flush and the statements of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.store.index.adding import Adding, Ready

_MOST_FILES = 250
_MOST_BYTES = 4 << 20
"""About half a second of writing, for which other processes wait."""


class Together:
    """Files on their way into the store: each is captured at once, and stored with those that follow."""

    def __init__(self, adding: Adding) -> None:
        self._adding = adding
        self._entries: list[Source | Ready] = []
        self._written = 0
        """So many of the first entries are stored."""
        self._bytes = 0

    @property
    def sources(self) -> list[Source]:
        """What is stored by now, in the order in which it was added; `unchanged` where it was before."""
        return [one for one in self._entries if isinstance(one, Source)]

    def add(self, new: NewSource, file: Path) -> Source | None:
        """Reads a file. The source, if it is stored already; the others follow.

        Raises:
            UsageError: it cannot be read.
            StoreError: the store cannot be written. What was added since the last transaction is not in it.
        """
        entry = self._adding.prepared(new, file)
        self._entries.append(entry)
        if isinstance(entry, Source):
            return entry
        self._bytes += entry.draft.bytes
        if self._bytes >= _MOST_BYTES or len(self._entries) - self._written >= _MOST_FILES:
            self.write()
        return None

    def write(self) -> None:
        """Stores what was only captured."""
        waiting = [place for place in range(self._written, len(self._entries)) if isinstance(self._entries[place], Ready)]
        sources = self._adding.stored(self._waiting())
        for place, source in zip(waiting, sources, strict=True):
            self._entries[place] = source
        self._written, self._bytes = len(self._entries), 0

    def drop(self) -> None:
        """Forgets what was only captured."""
        self._adding.drop(self._waiting())

    def _waiting(self) -> list[Ready]:
        return [one for one in self._entries[self._written :] if isinstance(one, Ready)]


@contextmanager
def together(adding: Adding) -> Iterator[Together]:
    """What is added inside the block is stored by its end; not what was only captured when the block is left by an exception."""
    files = Together(adding)
    try:
        yield files
        files.write()
    finally:
        files.drop()
