"""Which process a number means: numbers are used again, so a process is known by its number and the time it was started."""

from __future__ import annotations

from pathlib import Path


def start_mark(pid: int) -> str:
    """When the process was started, in clock ticks since boot (proc(5), stat, field 22); "" when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
