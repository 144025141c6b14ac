"""Which of our limits a script probably met, told from what programs wrote to its stderr. Pure; a hint, never a decision."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sandboxmcp.core.reasons import Reason

_SIGNS: tuple[tuple[str, str], ...] = (
    (r"Too many open files", "limits.descriptors"),
    (r"File too large|File size limit exceeded", "limits.file"),
    (r"No space left on device", "limits.tmpfs"),
    (r"can't start new thread|fork: (retry: )?Resource temporarily unavailable|BlockingIOError: \[Errno 11\]", "limits.processes"),
)
_NO_ROOM = re.compile(r"No space left on device|Disk quota exceeded|\bENOSPC\b|\[Errno 28\]")
_BY_SIGNAL = {"SIGXFSZ": "limits.file", "SIGXCPU": "limits.cpu"}
_UNRESOLVED = re.compile(
    r"^(?!curl: |wget: ).*(?:Could not resolve host|Temporary failure in name resolution|Name or service not known"
    r"|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|Network is unreachable)",
    re.MULTILINE,
)
"""What programs say for want of a network. Our own curl and wget speak of the world outside."""
_GIT_NOT_WRITTEN = re.compile(
    r"^(?:fatal|error|warning|hint|remote): .*(?:\.git\b|'refs/|_HEAD|temporary file|object|index\.lock).*"
    r"(?:Read-only file system|Device or resource busy)",
    re.MULTILINE,
)
"""What git says where it cannot write a repository."""
_GIT_MASKED = re.compile(r"unable to unlink (?:old )?'[^'\n]*': Device or resource busy")
"""A checkout or merge that stopped at a masked file, which is a mountpoint."""
_GIT_SILENT = re.compile(r"\bgit\b[^\n;|&]*\bstash\b(?!\s+(?:list|show))")
"""Commands that end with a failure and no word there."""


def network_hint(stderr_tail: str, brokered: Collection[str]) -> Reason | None:
    """For a script that wanted a network. `brokered`: the programs that are let out."""
    return Reason("no_network", {"let_out": sorted(brokered)}) if _UNRESOLVED.search(stderr_tail) else None


def no_network(brokered: Collection[str]) -> str:
    """That there is none, and which programs are let out nevertheless."""
    let_out = f"; let out, in the forms that the policy names: {', '.join(sorted(brokered))}" if brokered else ""
    reading = any(name.startswith("git") for name in brokered)
    more = "; the user's pack research adds git, pip, npm and others for reading" if brokered and not reading else ""
    return f"there is no network in the sandbox{let_out}{more}"


def git_hint(stderr_tail: str, code: str, *, writable: bool) -> Reason | None:
    """For git commands that could not write the project's repository. `writable`: scripts may write it."""
    if _GIT_MASKED.search(stderr_tail):
        return Reason("git_masked")
    silent = not writable and not stderr_tail and _GIT_SILENT.search(code)
    if not silent and not _GIT_NOT_WRITTEN.search(stderr_tail):
        return None
    return Reason("git_partly_writable" if writable else "git_read_only")


def says_no_room(stderr_tail: str) -> bool:
    """Whether a program says that a disk is full."""
    return _NO_ROOM.search(stderr_tail) is not None


def limit_hint(stderr_tail: str, ended_by: str, limits: Mapping[str, int]) -> Reason | None:
    """The limit and its value. `ended_by` is the signal's name, or empty."""
    name = _BY_SIGNAL.get(ended_by) or next((limit for sign, limit in _SIGNS if re.search(sign, stderr_tail)), "")
    return Reason("probable_limit", {"limit": name, "value": limits[name]}) if name in limits else None
