"""The worker process: cuts texts and reads pages, one order after the other, within a time and a memory.

It gets orders over a socket, each with a file to write to; what it is given to read follows in frames. It ends when nothing was
ordered for a minute, when it has grown large, after a fault, and with the process that started it.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from sandboxmcp.core.errors import UsageError
from sandboxmcp.store.chunking.cutting import cut, packed
from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.readers.page_text import page_text, plain_page
from sandboxmcp.store.readers.worker import END, LENGTH

_MOST_MEMORY = 2 << 30
_KEPT_MEMORY = 256 << 20
"""What a worker may hold and still be kept."""
_IDLE_S = 60.0
_TOGETHER = 200
"""Chunks that are written at once."""


def main() -> None:
    """Serves the socket whose descriptor is the first argument."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is meant for the server, which ends this process
    _end_with(sys.stdin.fileno())
    _at_most(resource.RLIMIT_AS, _MOST_MEMORY)
    _at_most(resource.RLIMIT_CORE, 0)
    while select.select([connection], [], [], _IDLE_S)[0]:
        if not _serve(connection):
            return


def _end_with(lifeline: int) -> None:
    """The kernel ends this process (SIGIO) when the other end of this pipe is closed, even in the middle of a long expression."""
    with contextlib.suppress(OSError):  # a kernel without it: then the closed socket ends it after its order
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _serve(connection: socket.socket) -> bool:
    """Does one order. False: there is no other one, or this process should do none."""
    head, descriptors, _, _ = socket.recv_fds(connection, LENGTH.size, 1)
    if len(head) < LENGTH.size or not descriptors:
        return False
    with os.fdopen(descriptors[0], "wb") as file:
        order = json.loads(_exactly(connection, LENGTH.unpack(head)[0]))
        _send(connection, {})
        _limit(order["cpu_s"], order["most_bytes"])
        try:
            reply = _ORDERS[order["order"]](order, _frames(connection), file)
            file.flush()
        except Exception as error:
            _send(connection, {"failed": type(error).__name__})
            return False
    small = _memory() <= _KEPT_MEMORY
    _send(connection, reply | {"stays": small})
    return small


def _memory() -> int:
    """Bytes that this process holds now (proc(5), statm). The most that it held would include what its parent held at its start."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _limit(cpu_s: float, most_bytes: int) -> None:
    """Processor time from now on, after which the kernel ends this process, and the size of what it writes."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime + cpu_s) + 1
    _at_most(resource.RLIMIT_CPU, end)
    _at_most(resource.RLIMIT_FSIZE, most_bytes)


def _at_most(limit: int, most: int) -> None:
    """The soft limit, which the next order may raise again."""
    _, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _cut(order: dict[str, Any], pieces: Iterator[bytes], file: BinaryIO) -> dict[str, Any]:
    steps = Steps()
    cuts = cut(pieces, order["first"], order["form"], steps)
    while some := list(itertools.islice(cuts, _TOGETHER)):
        file.write(packed(some))
    return {"plain": steps.is_plain}


def _page(order: dict[str, Any], pieces: Iterator[bytes], file: BinaryIO) -> dict[str, Any]:
    content = b"".join(pieces)
    read = plain_page if order["plain"] else page_text
    try:
        text, mime = read(content, order["mime"], order["charset"], order["url"])
    except UsageError as error:
        return {"refused": error.what, "fix": error.fix}
    file.write(text.encode(errors="surrogatepass"))
    return {"mime": mime}


_ORDERS = {"cut": _cut, "page": _page}


def _frames(connection: socket.socket) -> Iterator[bytes]:
    while (length := LENGTH.unpack(_exactly(connection, LENGTH.size))[0]) != END:
        yield _exactly(connection, length)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = connection.recv(size, socket.MSG_WAITALL) if size else b""
    if len(data) < size:
        raise EOFError
    return data


def _send(connection: socket.socket, reply: dict[str, Any]) -> None:
    data = json.dumps(reply).encode()
    connection.sendall(LENGTH.pack(len(data)) + data)


if __name__ == "__main__":
    main()
