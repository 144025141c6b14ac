"""Before a search: files that changed since they were stored are read again, files that are gone are marked. Blocking."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import Scope
from sandboxmcp.services import Services
from sandboxmcp.tools.indexing import index_again, stamp_of

_LOOKED_AT = 5_000
"""Files that one search looks at: a look costs a few microseconds each."""
_READ_AGAIN = 200
"""Changed files that one search reads again; the next search goes on with the rest."""


@dataclass(frozen=True, slots=True)
class Refreshed:
    """How many files were read again, and how many more have changed that there was no time for."""

    again: int = 0
    waiting: int = 0


def refresh(services: Services, scope: Scope) -> Refreshed:
    """Bring the files of this project that are in scope up to date; those of other projects stay as they are.

    Raises:
        StoreError.
    """
    if scope.project != services.project:
        return Refreshed()
    changed, gone, back = [], [], []
    for file in services.store.files(scope, _LOOKED_AT):
        try:
            stamp = stamp_of(os.stat(file.path))
        except (OSError, ValueError):
            if not file.gone:
                gone.append(file.handle)
            continue
        if stamp != file.stamp:
            changed.append(file)
        elif file.gone:
            back.append(file.handle)
    if gone:
        services.store.mark_gone(gone, True)
    if back:
        services.store.mark_gone(back, False)
    for file in changed[:_READ_AGAIN]:
        with suppress(UsageError):  # unreadable by now, or moved out of the project: what was stored stays
            index_again(services, file.path, file.label)
    return Refreshed(min(len(changed), _READ_AGAIN), max(0, len(changed) - _READ_AGAIN))
