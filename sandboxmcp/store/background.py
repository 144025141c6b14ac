"""One thing done on another thread while its starter goes on: what waits for the disk, or lets go of Python's lock for long.

A statement of SQLite that writes a thousand rows by itself runs beside Python; one that is given its rows one by one waits for
Python's lock at every one of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """At most one call at a time. Not shared by threads."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, call: Callable[[], None]) -> None:
        """Waits for the call before, then starts this one. Raises what that raised."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(call,), name="sandboxmcp-index")
        self._thread.start()

    def wait(self) -> None:
        """Until nothing runs. Raises what the call raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            self._error = error
