"""Taking out of the index what no search looks at any more: older versions of files, and what is left of forgotten sources.

A source that was deleted in one piece would first write as much to the log as it takes, which a full disk has no room for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxmcp.store.index.catalogue import record
from sandboxmcp.store.index.indexer import NOTHING_INDEXED, unindex

if TYPE_CHECKING:
    from sqlite3 import Connection

_STEP = 500
"""Passages that are taken out together: about a quarter of a megabyte of text."""


def swept(connection: Connection) -> bool:
    """Does one step of it; says whether there may be more."""
    row = connection.execute(
        "SELECT id, first_passage, last_passage FROM sources WHERE replaced_by IS NOT NULL AND (passages > 0 OR replaced_by = id)"
    ).fetchone()
    if row is None:
        return False
    source, first, last = row
    start = max(first, last - _STEP + 1)
    unindex(connection, start, last)
    if start > first:
        connection.execute(
            "UPDATE sources SET last_passage = ?2, passages = ?2 - first_passage + 1 WHERE id = ?1", (source, start - 1)
        )
        return True
    connection.execute("DELETE FROM chunks WHERE source_id = ?", (source,))
    record(connection, source, NOTHING_INDEXED)
    connection.execute("DELETE FROM sources WHERE id = ? AND replaced_by = id", (source,))
    return True
