"""The append-only log: one JSON line for each thing that was judged or let out, mode 0600, never rewritten by us."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_MOST_LETTERS = 2000
"""Of one value: a line stays one write, and a hostile argument does not fill the disk."""


class AuditLog:
    """A file that lines are added to. Safe to use from several threads and processes: a line is one write in append mode."""

    def __init__(self, file: Path, mask: Callable[[str], str] | None = None) -> None:
        """`mask` takes the credentials out of every text before it is written."""
        self._file = file
        self._mask = mask
        self._lock = threading.Lock()
        self._fd: int | None = None

    def open(self) -> None:
        """Make sure that it can be written, before something happens that must be in it.

        Raises:
            OSError: it cannot.
        """
        with self._lock:
            if self._fd is None:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self._fd = os.open(self._file, flags, 0o600)

    def add(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Add one line: when, what kind of event, and its facts.

        Raises:
            OSError: it cannot be written.
        """
        self.open()
        line = {"time": round(time.time(), 3), "event": kind, **{name: self._short(value) for name, value in facts.items()}}
        data = json.dumps(line, ensure_ascii=True).encode() + b"\n"
        with self._lock:
            if self._fd is None or os.write(self._fd, data) != len(data):
                raise OSError(28, "the log could not be written whole", str(self._file))

    def close(self) -> None:
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _short(self, value: Any) -> Any:
        if isinstance(value, str):
            text = value if self._mask is None else self._mask(value)  # before it is cut: half of a credential has no shape
            return text if len(text) <= _MOST_LETTERS else text[:_MOST_LETTERS] + "…"
        if isinstance(value, list | tuple):
            return [self._short(item) for item in value[:100]]
        return value
