"""Outputs as the broker gets them: opened inside the sandbox by the shim, passed as descriptors, believed only after a look.

Opened inside, a path means what it means to the script: no workspace is mounted elsewhere, no link of the script's leads to a
file of the host's, /tmp works, and the sandbox's own rights and quotas hold.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat

from sandboxmcp.broker.frames import Shim
from sandboxmcp.policy.programs.order import NOWHERE, STDOUT, Existing, Refusal

_FIRST = 64 << 10
_SETTINGS = frozenset(
    {
        0x9FA0, 0x62656572, 0x27E0EB, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0x62656570, 0xCAFE4A11, 0x42494E4D,
        0x19800202, 0x6E736673, 0xF97CFF8C, 0x43415D53, 0x6165676C, 0xDE5E81E4,
    }
)  # fmt: skip
"""File systems whose files are the kernel's own (linux/magic.h): proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs,
configfs, bpf, binfmt_misc, mqueue, nsfs, selinuxfs, smackfs, pstore, efivarfs. Inside, the first and mqueue can be opened."""
_libc = ctypes.CDLL(None, use_errno=True)
WRITE_ERROR = 23
"""curl's exit code for an output that cannot be written."""


class Output:
    """Where one body goes. Opened at its first byte, so that a failed request leaves the old file as it was."""

    def __init__(self, shim: Shim, place: str, existing: Existing, create_folders: bool) -> None:
        self._shim = shim
        self.place = place
        self._existing = existing
        self._folders = "folders" if create_folders else ""
        self._fd: int | None = None
        self.written = 0

    def check(self) -> bool:
        """Before anything goes out: could it be written? True when it is there already and `existing` says to leave it.

        Raises:
            Refusal: no, with the reason.
        """
        if self.place in (NOWHERE, STDOUT):
            return False
        try:
            said, _ = self._shim.ask("check", self.place, self._existing, self._folders)
        except OSError as error:
            raise Refusal(f"cannot write {self.place[:200]}: {error}", WRITE_ERROR) from None
        return said[:1] == ["there"] and self._existing == "skip"

    def open(self) -> int:
        """The descriptor, asked for once.

        Raises:
            Refusal: the shim cannot open it, or what it passed is no regular file that is open for writing only.
        """
        if self._fd is None:
            self._fd = os.open(NOWHERE, os.O_WRONLY | os.O_CLOEXEC) if self.place == NOWHERE else self._passed()
        return self._fd

    def _passed(self) -> int:
        words = ("stdout",) if self.place == STDOUT else ("open", self.place, self._existing, self._folders)
        try:
            _, (fd,) = self._shim.ask(*words, descriptors=1)
        except OSError as error:
            raise Refusal(f"cannot write {self.place[:200]}: {error}", WRITE_ERROR) from None
        try:
            if problem := descriptor_problem(fd):
                raise Refusal(f"cannot write {self.place[:200]}: {problem}", WRITE_ERROR)
        except BaseException:
            os.close(fd)
            raise
        os.set_inheritable(fd, False)
        return fd

    def take(self, source: int, most: int) -> int:
        """Move up to `most` bytes from a pipe into the output. Returns how many came; 0 at the end.

        Raises:
            OSError: it is full, or no longer to be written.
        """
        if self._fd is None:
            first = os.read(source, min(most, _FIRST))
            count = _write_all(self.open(), first) if first else 0
            self.written += count
            return count
        fd = self._fd
        try:
            count = os.splice(source, fd, most)
        except OSError as error:
            if error.errno != 22:  # EINVAL: opened for appending, or a file system or device without splice
                raise
            count = _write_all(fd, os.read(source, min(most, _FIRST)))
        self.written += count
        return count

    def start_over(self) -> None:
        """Forget what was written: another attempt follows."""
        if self._fd is not None and self.place not in (NOWHERE, STDOUT):
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            self.written = 0

    def remove(self) -> None:
        """Take a partial file away again."""
        if self._fd is not None and self.place not in (NOWHERE, STDOUT):
            self._shim.ask("remove", self.place)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def descriptor_problem(fd: int) -> str:
    """Why a descriptor from inside may not be written to; empty when it may."""
    if problem := not_a_file(fd):
        return problem
    if fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_PATH) != os.O_WRONLY:
        return "it is not open for writing only"
    return ""


def not_a_file(fd: int) -> str:
    """Why what a descriptor from inside leads to is no file to read or write; empty when it is one.

    Files of /proc look regular, and what may be written there the system's kernel decides by who writes, which would be us.
    """
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return "it is no regular file"
    found = ctypes.create_string_buffer(256)
    if _libc.fstatfs(fd, found) != 0:
        return "its file system is not known"
    return "it is a setting of the system, not a file" if int.from_bytes(found.raw[:4], "little") in _SETTINGS else ""


def _write_all(fd: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return len(data)
