"""What one session may still spend on the network: requests and bytes, both ways. Safe to use from several threads."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of the settings."""

    requests: int = 1_000
    """In one session; 0 switches the network off."""
    bytes: int = 4 << 30
    """Of one session, sent and received together."""
    size: int = 1 << 30
    """Of one answer."""
    time_s: float = 300.0
    """Of one request, redirects and retries included."""


class Budget:
    """Counts down. One per session, whatever becomes of its sandboxes: a script that ends its own sandbox gains nothing."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance = allowance or Allowance()
        self._lock = threading.Lock()
        self._requests = 0
        self._bytes = 0

    @property
    def requests(self) -> int:
        """Requests so far."""
        return self._requests

    @property
    def bytes(self) -> int:
        """Bytes so far."""
        return self._bytes

    def begin(self) -> str:
        """Take one request. Returns why there is none left, or nothing."""
        with self._lock:
            if self._requests >= self.allowance.requests:
                return f"this session has used its {self.allowance.requests:,} network requests; raise network.requests"
            if self._bytes >= self.allowance.bytes:
                return self._no_bytes()
            self._requests += 1
            return ""

    def spend(self, count: int) -> str:
        """Take bytes that have been sent or received. Returns why no more may follow, or nothing."""
        with self._lock:
            self._bytes += count
            return self._no_bytes() if self._bytes > self.allowance.bytes else ""

    def _no_bytes(self) -> str:
        return f"this session has used its {self.allowance.bytes:,} bytes of network; raise network.bytes"
