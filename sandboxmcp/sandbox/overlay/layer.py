"""A workspace whose changes are kept aside: scripts see and change a layer over it, and a person applies or discards that.

The layer lies beside the store, one per workspace: `upper` holds what was changed (changes.py reads it), `work` is overlayfs's own.
One process at a time may mount it: the system does not define what two mounts of one layer do. While it is mounted nothing in it
is changed from outside. What is applied (applying.py) is copied out of it and then makes no difference any more; what is discarded
is moved aside as a whole, and the sandbox that has it mounted is replaced when nothing runs in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from sandboxmcp.core.errors import UsageError

_ASIDE = "aside-"
"""Before the names of folders with what was discarded while it was mounted."""
_held: dict[Path, int] = {}
"""Locks of this process, which may use a layer any number of times one after the other."""


def layer_of(data_dir: Path, workspace: Path) -> Path:
    """The folder of a workspace's layer, which need not exist."""
    return data_dir / "overlays" / hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]


def prepare(layer: Path, workspace: Path) -> Path:
    """The layer, there and ours until this process ends.

    Raises:
        UsageError: another process uses it, or it would lie inside the workspace.
    """
    if os.path.realpath(layer).startswith(os.path.realpath(workspace) + "/"):
        raise UsageError(f"the data folder lies in the workspace {workspace}, and so would its overlay", "Move data_dir elsewhere.")
    layer.mkdir(mode=0o700, parents=True, exist_ok=True)
    claim(layer)
    with changing(layer):
        for name in ("upper", "work"):
            (layer / name).mkdir(mode=0o700, exist_ok=True)
    return layer


def claim(layer: Path) -> None:
    """Raises: UsageError, another process uses the layer."""
    if layer in _held:
        return
    fd = os.open(layer / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise UsageError("the overlay of this workspace is used by another process", "Stop that server first.") from None
    _held[layer] = fd
    for aside in layer.glob(f"{_ASIDE}*"):  # nobody has them mounted any more
        _remove_all(aside)


def is_ours(layer: Path) -> bool:
    """Claim it if nobody uses it. False: another process does."""
    try:
        claim(layer)
    except UsageError:
        return False
    return True


def identity(layer: Path) -> tuple[int, int]:
    """Which `upper` it has: another one after a discard by another process."""
    status = os.stat(layer / "upper")
    return status.st_dev, status.st_ino


@contextlib.contextmanager
def changing(layer: Path) -> Iterator[None]:
    """One process at a time makes, moves and applies."""
    with open(layer / "changing", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def release(layer: Path) -> None:
    """Let others have it."""
    if (fd := _held.pop(layer, None)) is not None:
        os.close(fd)


def discard(layer: Path) -> None:
    """Forget every change. Scripts that run meanwhile go on with what they see, and what they write is forgotten too."""
    if not layer.exists():
        return
    ours = is_ours(layer)
    with changing(layer):
        if not ours:
            aside = layer / f"{_ASIDE}{secrets.token_hex(8)}"
            aside.mkdir(mode=0o700)
        for name in ("upper", "work"):
            if not ours:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(layer / name, aside / name)
            else:
                _remove_all(layer / name)
            (layer / name).mkdir(mode=0o700, exist_ok=True)


def settle(layer: Path) -> None:
    """After `apply`: forget what was applied, unless a sandbox has it mounted; there it makes no difference any more."""
    if layer.exists() and is_ours(layer):
        discard(layer)


def _remove_all(folder: Path) -> None:
    """Overlayfs makes folders that nobody may enter, and scripts may too."""
    for place, _, _ in os.walk(folder):
        os.chmod(place, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
