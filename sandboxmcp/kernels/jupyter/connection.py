"""The four sockets of a kernel, bound and listening on the host before the kernel exists.

Their paths lie in a private folder of the host that no sandbox sees; the kernel gets the listening descriptors. So a kernel can
neither replace a socket by a link nor reach another kernel's, and a client may connect at once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from pathlib import Path
from typing import Any

from sandboxmcp.core.folders import PrivateFolder

CHANNELS = ("shell", "iopub", "stdin", "control")
"""In the order in which the launcher takes them; jupyter_client numbers ports from 1 in the same order, heartbeat last."""


class SocketFolder:
    """A 0700 folder for socket paths, short enough for the 107 bytes that a unix address holds."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        usable = len(base) < 60 and os.path.isdir(base) and os.access(base, os.W_OK)
        self._folder = PrivateFolder(Path(base if usable else "/tmp"))

    @property
    def path(self) -> Path:
        return self._folder.path

    def remove(self) -> None:
        self._folder.remove()


class KernelSockets:
    """Listening sockets for one kernel, and the connection facts that a client needs."""

    def __init__(self, folder: SocketFolder, again: KernelSockets | None = None) -> None:
        """`again`: the removed ones of the same kernel before a restart; clients go on with their addresses and key."""
        self.base: str = str(folder.path / secrets.token_hex(4)) if again is None else again.base
        self.key: str = secrets.token_hex(32) if again is None else again.key
        """Signs messages; it is known inside the kernel too, so it keeps strangers out, not the kernel's own code."""
        self._sockets: list[socket.socket] = []
        for port in range(1, len(CHANNELS) + 1):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            self._sockets.append(one)
            one.bind(f"{self.base}-{port}")
            one.listen(16)

    @property
    def descriptors(self) -> list[int]:
        return [one.fileno() for one in self._sockets]

    @property
    def info(self) -> dict[str, Any]:
        """As jupyter_client wants it from a provisioner: its connection files have the key as text, this as bytes."""
        ports = {f"{channel}_port": port for port, channel in enumerate((*CHANNELS, "hb"), 1)}
        return {"transport": "ipc", "ip": self.base, "key": self.key.encode(), "signature_scheme": "hmac-sha256", **ports}

    def release(self) -> None:
        """Close the host's copies, once the kernel has its own."""
        for one in self._sockets:
            one.close()

    def remove(self) -> None:
        """Forget the addresses."""
        self.release()
        for port in range(1, len(CHANNELS) + 1):
            with contextlib.suppress(OSError):
                os.unlink(f"{self.base}-{port}")
