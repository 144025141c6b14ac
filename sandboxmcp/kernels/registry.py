"""Which named kernels run, for other processes of the same user: a connection file each, in a private folder.

    data_dir/kernels/SESSION-NAME.json  a Jupyter connection file, and what else a client should know
    data_dir/kernels/SESSION.PID.door   the socket on which the session takes requests (tools/kernel_rpc.py)

A file goes with its kernel. Those of a process that was killed are removed by whoever looks next: a process is known by its
number and the time it was started, so that a number used again is no other's. Whoever can read the folder is the user anyway;
code in a sandbox does not see it.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandboxmcp.core.processes import start_mark

OURS = "sandboxmcp"
"""The key in a connection file under which our own facts stand; Jupyter's clients skip it."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A named kernel of a living process."""

    name: str
    language: str
    pid: int
    workspace: str
    door: Path
    """Where its owner takes requests."""
    file: Path
    """Its connection file."""


class Registry:
    """The entries of one session; a process may have several."""

    def __init__(self, data_dir: Path, workspace: Path, session: str) -> None:
        self.folder = data_dir / "kernels"
        self.door = self.folder / f"{session}.{os.getpid()}.door"
        self._session = session
        self._workspace = str(workspace)
        self._files: set[Path] = set()

    def add(self, name: str, language: str, connection: dict[str, Any]) -> None:
        """Tell others of a kernel. That they cannot be told is no reason to do without it."""
        facts = {"name": name, "language": language, "pid": os.getpid(), "started": start_mark(os.getpid()), "door": str(self.door)}
        text = json.dumps({**connection, OURS: {**facts, "workspace": self._workspace}})
        file = self._file(name)
        with contextlib.suppress(OSError):
            prepare(self.folder)
            file.unlink(missing_ok=True)
            with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "w") as stream:
                stream.write(text)
            self._files.add(file)

    def remove(self, name: str) -> None:
        """The kernel has ended."""
        self._drop(self._file(name))

    def close(self) -> None:
        """All of them have."""
        for file in list(self._files):
            self._drop(file)

    def _file(self, name: str) -> Path:
        return self.folder / f"{self._session}-{name}.json"

    def _drop(self, file: Path) -> None:
        self._files.discard(file)
        with contextlib.suppress(OSError):
            file.unlink()


def prepare(folder: Path) -> None:
    """The folder, there and private."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def shared_kernels(data_dir: Path) -> list[Shared]:
    """The named kernels of all living processes, by name; what dead ones left is removed. Blocking."""
    found = [kernel for file in (data_dir / "kernels").glob("*.json") if (kernel := _read(file)) is not None]
    for door in (data_dir / "kernels").glob("*.door"):
        if not os.path.exists(f"/proc/{door.stem.rpartition('.')[2]}"):
            with contextlib.suppress(OSError):
                door.unlink()
    return sorted(found, key=lambda kernel: (kernel.name, kernel.pid))


def _read(file: Path) -> Shared | None:
    """The entry, or None: half written, or of a process that has ended."""
    try:
        facts = json.loads(file.read_text())[OURS]
        pid, started = int(facts["pid"]), facts["started"]
        kernel = Shared(str(facts["name"]), str(facts["language"]), pid, str(facts["workspace"]), Path(facts["door"]), file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if start_mark(pid) == started:
        return kernel
    with contextlib.suppress(OSError):
        file.unlink()
    return None
