"""Everything that sandboxmcp raises on purpose.

    SandboxmcpError              exit code
    ├── UsageError                   2   an argument, a setting or a handle is wrong; says which and how to mend it
    ├── DeniedError                  3   the policy refused; carries the verdict
    ├── SandboxUnavailable           4   no sandbox, so no kernel; carries cause and remedy
    │   └── KernelError              4   a kernel died or never answered; carries what it wrote to stderr
    ├── KernelGone                   1   a named kernel ended before a call's turn in it came; nothing of the call ran
    ├── StoreError                   5   the store cannot be opened, read or written
    │   ├── DiskFull                     5   there is no room left for it
    │   └── ReadOnlyStore                5   its folder or its disk may only be read
    └── BrokenPack                   6   a policy pack does not load; carries file and line

A script that fails is a result and a verdict is a value: neither is raised by the rooms below `cli`.
"""

from __future__ import annotations

from pathlib import Path


class SandboxmcpError(Exception):
    """A failure that its reader can act on: `what` happened and the `fix`, each one sentence."""

    exit_code = 1

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what.rstrip('.')}. {self.fix}".rstrip() if self.fix else self.what


class UsageError(SandboxmcpError):
    """The caller's argument, setting or handle is wrong."""

    exit_code = 2


class DeniedError(SandboxmcpError):
    """The policy's verdict is deny (or an ask that nobody can answer)."""

    exit_code = 3


class SandboxUnavailable(SandboxmcpError):
    """The operating system gives us no sandbox. Nothing is run instead."""

    exit_code = 4


class KernelError(SandboxUnavailable):
    """A kernel (or the launcher that forks kernels) died or never answered."""

    def __init__(self, what: str, fix: str = "", stderr: str = "") -> None:
        super().__init__(what, fix)
        self.stderr = stderr

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}\nIt wrote: {self.stderr.strip()}" if self.stderr.strip() else said


class KernelGone(SandboxmcpError):
    """The named kernel, with its variables, ended before the turn of a call that wants no other came. Nothing of it ran."""

    def __init__(self, kernel: str) -> None:
        super().__init__(f"the kernel {kernel} ended while this waited for its turn; nothing of it ran")


class StoreError(SandboxmcpError):
    """The store cannot be opened, read or written."""

    exit_code = 5


class DiskFull(StoreError):
    """The disk has no room for what was to be written. What was there before still is, and can be read and deleted."""


class ReadOnlyStore(StoreError):
    """The store may be read and searched, not written."""


class BrokenPack(SandboxmcpError):
    """A policy pack does not load; nothing runs until it is mended. Line 0: there is no such file."""

    exit_code = 6

    def __init__(self, file: Path, line: int, what: str, fix: str = "") -> None:
        super().__init__(f"{file}:{line}: {what}" if line else what, fix or "Mend the pack; nothing runs until it loads.")
        self.file = file
        self.line = line
        self.problem = what
