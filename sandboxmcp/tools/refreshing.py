"""Before a search: files that changed since they were stored are read again, files that are gone are marked. Blocking."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sandboxmcp.core.errors import StoreError, UsageError
from sandboxmcp.core.model import Scope
from sandboxmcp.policy.secrets.redactor import MASKED
from sandboxmcp.session import Session
from sandboxmcp.store.index.catalogue import StoredFile
from sandboxmcp.tools.indexing import index_again, stamp_of

_LOOKED_AT = 5_000
"""Files that one search looks at: a look costs a few microseconds each."""
_READ_AGAIN = 200
"""Changed files that one search reads again; the next search goes on with the rest."""


_ESCAPED = re.compile(r"\\u(dc[89a-f][0-9a-f])")


@dataclass(frozen=True, slots=True)
class Refreshed:
    """How many files were read again, and how many more have changed that there was no time for."""

    again: int = 0
    waiting: int = 0


def refresh(session: Session, scope: Scope) -> Refreshed:
    """Bring the files of this project that are in scope up to date; those of other projects stay as they are.

    Raises:
        StoreError: the store cannot be read.
    """
    if scope.project != session.project:
        return Refreshed()
    changed, gone, back = [], [], []
    for file in session.store.files(scope, _LOOKED_AT):
        try:
            stamp = stamp_of(os.stat(_real(file.path)))
        except (OSError, ValueError):
            if not file.gone and MASKED not in file.path:  # stored without a credential in its name: it cannot be looked at again
                gone.append(file.handle)
            continue
        if stamp != file.stamp:
            changed.append(file)
        elif file.gone:
            back.append(file.handle)
    again = 0
    with suppress(StoreError):  # a store that is full or may only be read is searched as it is
        for handles, are_gone in ((gone, True), (back, False)):
            if handles:
                session.store.mark_gone(handles, are_gone)
        if changed:
            again = _read_again(session, changed[:_READ_AGAIN])
    return Refreshed(again, len(changed) - again)


def _read_again(session: Session, files: Sequence[StoredFile]) -> int:
    with session.store.together() as batch:
        for file in files:
            with suppress(UsageError):  # unreadable by now, or moved out of the project: what was stored stays
                index_again(session, batch, _real(file.path), file.label)
    return len(files)


def _real(path: str) -> str:
    """The path that the store has escaped because it is not UTF-8 (`storable`)."""
    if "\\udc" not in path or os.path.lexists(path):
        return path
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), path)
