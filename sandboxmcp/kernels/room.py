"""Full disks, looked for before and after each script: one that fills a disk and ends well has lost something.

A program that does not look at the results of its writes ends with exit code 0 on a full disk (perl's print, C's fprintf). Seen is
a disk that is still full when the script has ended. A script that has deleted what was not whole has left no loss behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sandboxmcp.core.model import Outcome
from sandboxmcp.core.reasons import Reason
from sandboxmcp.sandbox.hints import says_no_room
from sandboxmcp.sandbox.usage import full_folders


class Room:
    """The disks of one sandbox. Use from one thread."""

    def __init__(self, init: int, workspace: Path) -> None:
        """`init`: the host's number of its first process; `workspace`: where on the host lands what scripts write there."""
        self._init = init
        self._workspace = workspace
        self._begun = 0

    def begin(self, *, alone: bool) -> Callable[[Outcome, str], Outcome]:
        """A script begins; `alone`: no other runs. Returns what gives its outcome with what it lost, once it has ended.

        Where the disk was full before, or others ran at the same time, the loss is a script's only if its stderr speaks of it.
        """
        self._begun += 1
        number, before = self._begun, full_folders(self._init, self._workspace)

        def end(outcome: Outcome, stderr_tail: str) -> Outcome:
            now = full_folders(self._init, self._workspace)
            new = now - before if alone and number == self._begun else frozenset[str]()
            lost = now if says_no_room(stderr_tail) else new
            if not lost or outcome.status not in ("ok", "failed"):
                return outcome
            project = str(self._workspace)
            full = Reason("disk_full", {"folders": sorted(lost - {project}), "project": project in lost})
            return replace(outcome, status="failed", reasons=(*outcome.reasons, full))

        return end
