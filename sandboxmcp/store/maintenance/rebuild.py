"""The index of a store built anew from the captures that its sources name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.text import shown
from sandboxmcp.store.captures.captures import Capture, Captures
from sandboxmcp.store.chunking.kinds import SAMPLE_BYTES, Form, is_picture, recognise_form
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.index.indexer import emptied

if TYPE_CHECKING:
    from sqlite3 import Connection


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair found: sources indexed anew, handles of those whose capture is lost, what SQLite said of its file."""

    sources: int
    lost: tuple[str, ...]
    damage: tuple[str, ...]


def index_anew(connection: Connection, captures: Captures, index: Callable[[int, Capture, Form | None], None]) -> Repaired:
    """Empties the index and fills it by `index`, called for each live source; those whose capture is lost leave the catalogue."""
    damage = [row for (row,) in connection.execute("PRAGMA quick_check(5)") if row != "ok"]
    emptied(connection)
    lost: list[str] = []
    live = list(connection.execute("SELECT id, handle, digest, kind, mime FROM sources WHERE replaced_by IS NULL ORDER BY id"))
    for source, handle, digest, kind, mime in live:
        try:
            with captures.open(digest) as capture:
                sample = shown(b"".join(capture.read(0, SAMPLE_BYTES)))
                index(source, capture, None if is_picture(mime) else recognise_form(sample, kind))
        except StoreError:
            lost.append(handle)
    catalogue.disown(connection, lost)
    return Repaired(len(live) - len(lost), tuple(lost), tuple(damage))
