"""The steps of the store's schema, in their order. Each package brings its own; a step is only ever added, at the end.

A step is named by its package and what it brings, and by the function that takes it, which is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite_utils


class Migration(NamedTuple):
    """One step; runs inside a transaction together with the record of it having run."""

    name: str
    function: str | Callable[[sqlite_utils.Database], None]
    """The function, or where it is: `package.module:name`."""

    def __call__(self, database: sqlite_utils.Database) -> None:
        if not isinstance(self.function, str):
            return self.function(database)
        module, _, name = self.function.partition(":")
        take: Callable[[sqlite_utils.Database], None] = getattr(import_module(module), name)
        return take(database)


_STORE = "sandboxmcp.store.schema:"
MIGRATIONS: tuple[Migration, ...] = (
    Migration("store.sources", _STORE + "sources"),
    Migration("store.changes", _STORE + "changes"),
    Migration("store.occurrences", _STORE + "occurrences"),
    Migration("store.unranked_trigrams", _STORE + "unranked_trigrams"),
    Migration("store.cut_by", _STORE + "cut_by"),
    Migration("store.preview_scope", _STORE + "preview_scope"),
    Migration("journal.runs", "sandboxmcp.journal.schema:runs"),
)
"""Stores of earlier versions have counted their steps: the first so many of these."""
