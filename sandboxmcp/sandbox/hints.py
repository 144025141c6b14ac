"""Which of our limits a script probably met, told from what the operating system made it say. Pure; a hint, never a decision."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SIGNS: tuple[tuple[str, str], ...] = (
    (r"Too many open files", "limits.descriptors"),
    (r"File too large|File size limit exceeded", "limits.file"),
    (r"No space left on device", "limits.tmpfs"),
    (r"can't start new thread|fork: (retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]", "limits.processes"),
)
_BY_SIGNAL = {"SIGXFSZ": "limits.file", "SIGXCPU": "limits.cpu"}


def limit_hint(stderr_tail: str, ended_by: str, limits: Mapping[str, int]) -> str:
    """A sentence that names the limit and its value, or nothing. `ended_by` is the signal's name, or empty."""
    name = _BY_SIGNAL.get(ended_by) or next((limit for sign, limit in _SIGNS if re.search(sign, stderr_tail)), "")
    return f"it probably met {name} ({limits[name]:,}); raise it if that is meant" if name in limits else ""
