"""Asks another process of the same user: about its named kernels and its jobs. What it answers to is kernel_rpc.py's protocol."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.surface import current

LONGEST_LINE = 64 << 20
"""Bytes of one request or answer."""
_ANSWER_S = 20.0
"""What a process behind a door may take to answer."""


def connected(door: Path) -> socket.socket:
    """A connection to a door. Raises OSError: nobody is there."""
    with short_address(door) as address:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            client.connect(address)
        except BaseException:
            client.close()
            raise
    return client


def ask_owner(door: Path, pid: int, request: dict[str, Any]) -> Any:
    """What the process behind a door answers to one request. Blocking.

    Raises:
        UsageError: it does not answer, or the request cannot be met.
    """
    try:
        with connected(door) as client, client.makefile("rwb") as stream:
            client.settimeout(_ANSWER_S)
            stream.write(json.dumps({"id": 1, "surface": current().name, **request}).encode() + b"\n")
            stream.flush()
            told = json.loads(stream.readline())
    except (OSError, ValueError):
        raise UsageError(f"the server {pid} does not answer", "It may be ending; try again.") from None
    if "error" in told:
        raise UsageError(told["error"]["what"], told["error"]["fix"])
    return told["done"]


@contextlib.contextmanager
def short_address(door: Path) -> Iterator[str]:
    """The path of a door by its folder's descriptor: an address holds 107 bytes, and a path may be longer."""
    folder = os.open(door.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{door.name}"
    finally:
        os.close(folder)
