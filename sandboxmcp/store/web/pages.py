"""Small tables beside the sources: what was fetched under which label, and deletions that wait a minute to be confirmed."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from sandboxmcp.core.database import Database
from sandboxmcp.core.text import storable

PREVIEW_S = 60.0


@dataclass(frozen=True, slots=True)
class Page:
    """One fetched URL under one label; the two together are what a cache goes by, so that URLs under one label never collide."""

    project: str
    label: str
    url: str
    handle: str
    fetched_at: float
    """Seconds since the epoch; also set when the server said that nothing changed."""
    etag: str = ""
    modified: str = ""
    """The server's `ETag` and `Last-Modified`, word for word, for the next conditional request."""


class Pages:
    """The table of fetched pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, project: str, label: str, url: str) -> Page | None:
        """What is stored of this URL; None as well when its source was deleted."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT p.* FROM pages p JOIN sources s ON s.handle = p.handle"
                " WHERE p.project = ? AND p.label = ? AND p.url = ? AND s.replaced_by IS NULL",
                (storable(project), label, url),
            ).fetchone()
        return None if row is None else Page(*row)

    def put(self, page: Page) -> None:
        """Remembers a page; pages whose sources are gone are taken out on the way."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM pages WHERE handle NOT IN (SELECT handle FROM sources)")
            connection.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?)", astuple(page))


class Previews:
    """The table of deletions that were shown and not yet confirmed. A token works once, for a minute, in its project."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, project: str, handles: Sequence[str], now: float | None = None, runs: str | None = None) -> str:
        """A new token for deleting these sources; `runs`: which runs of the journal go with them, as whoever deletes writes it."""
        token = secrets.token_hex(4)
        now = time.time() if now is None else now
        with self._database.writing(freeing=True) as connection:
            connection.execute("DELETE FROM previews WHERE expires_at < ?", (now,))
            connection.execute(
                "INSERT INTO previews VALUES (?, ?, ?, ?, ?)",
                (token, storable(project), now + PREVIEW_S, json.dumps(list(handles)), runs),
            )
        return token

    def take(self, project: str, token: str, now: float | None = None) -> tuple[list[str], str | None] | None:
        """The handles and runs behind a token, which is used up by this; None: unknown, used, too old, or another project's."""
        values = (storable(token), storable(project), time.time() if now is None else now)
        with self._database.writing(freeing=True) as connection:
            row = connection.execute(
                "SELECT handles, runs FROM previews WHERE token = ? AND project = ? AND expires_at >= ?", values
            ).fetchone()
            connection.execute("DELETE FROM previews WHERE token = ?", values[:1])
        return None if row is None else (list(json.loads(row[0])), row[1])
