"""What was captured and could not be added becomes sources later: what killed processes left, and what this one was refused.

At the start, and again while something is left of it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import SandboxmcpError, StoreError
from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.store.captures.captures import Captures
from sandboxmcp.store.captures.content import Content
from sandboxmcp.store.captures.incoming import Incoming, Left
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.index.adding import Adding, Mask
from sandboxmcp.store.index.deletion import Deleting

_RETRY_S = 30.0


class Adopting:
    """Adds to one store what lies in the folders of processes that are gone."""

    def __init__(
        self, database: Database, captures: Captures, incoming: Incoming, adding: Adding, deleting: Deleting, mask: Mask | None
    ) -> None:
        self._database = database
        self._captures = captures
        self._incoming = incoming
        self._adding = adding
        self._deleting = deleting
        self._mask = mask
        self._busy = threading.Lock()
        self._tried_at = 0.0
        self._left = 0
        self._owed: list[tuple[NewSource, Path]] = []

    @property
    def left(self) -> int:
        """Files that could not be added when that was last tried."""
        return self._left + len(self._owed)

    def owe(self, captured: Iterable[tuple[NewSource, Path]]) -> None:
        """See Store.owe."""
        self._owed += captured
        self._tried_at = time.monotonic()

    def adopt(self) -> list[Source]:
        """See Store.adopt."""
        adopted: list[Source] = []
        killed = left = 0
        for one in () if self._database.read_only else self._incoming.left_behind():
            killed += 1
            for file in one.files:
                try:
                    adopted += self._adopted(one, file)
                except SandboxmcpError:
                    left += file.exists()
        self._left, self._tried_at = left, time.monotonic()
        adopted += self._paid()
        if killed:
            self._deleting.delete_captures(self._captures.digests())
        return adopted

    def adopt_late(self, *, at_once: bool = False) -> None:
        """See Store.adopt_late."""
        if self.left and (at_once or time.monotonic() - self._tried_at > _RETRY_S) and self._busy.acquire(blocking=False):
            try:
                with contextlib.suppress(StoreError):
                    self.adopt()
            finally:
                self._busy.release()

    def _paid(self) -> list[Source]:
        """What this process owed and could add by now."""
        paid: list[Source] = []
        while self._owed:
            new, file = self._owed[0]
            try:
                paid.append(self._adding.add(new, file, consume=True))
            except StoreError:
                break
            except SandboxmcpError:  # the file is gone
                pass
            self._owed.pop(0)
        return paid

    def _adopted(self, left: Left, file: Path) -> list[Source]:
        """The source that a file has become; none when it was added before, by a process killed before it could delete it."""
        digest = Content(file, self._mask).digest()
        with self._database.reading() as connection:
            known = catalogue.has_content(connection, digest, left.project, left.session)
        if known:
            file.unlink()
            return []
        new = NewSource(f"recovered:{file.name}", "execute", left.project, left.session)
        return [self._adding.add(new, file, consume=True)]
