"""Any other Jupyter kernel: it binds sockets of its own inside, and the host's connections are passed on to them.

A kernel of another language takes a connection file and knows nothing of listening descriptors. So it gets addresses in a private
folder of the sandbox, and beside it runs a relay: it accepts on the listening sockets that the host passed, and copies bytes.
No folder is shared with the host, so there is nothing that the kernel could swap for a link to something of the host's.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

CHANNELS = ("shell", "iopub", "stdin", "control")
_RETRY_S = 0.02
_PIECE = 1 << 16
_MOST_CONNECTIONS = 64
"""Of one channel at once; a client needs one."""


def become(argv: list[str], listening: list[int], out: int, err: int, key: str) -> NoReturn:
    """Start the relay on the `listening` sockets, then replace this process by the kernel."""
    folder = tempfile.mkdtemp(prefix=".kernel-", dir="/tmp")
    connection_file = os.path.join(folder, "connection.json")
    ports = {f"{channel}_port": port for port, channel in enumerate((*CHANNELS, "hb"), 1)}
    facts = {"transport": "ipc", "ip": f"{folder}/k", "key": key, "signature_scheme": "hmac-sha256", "kernel_name": "", **ports}
    with open(connection_file, "w") as file:
        json.dump(facts, file)
    if os.fork() == 0:
        try:
            relay(listening, [f"{folder}/k-{port}" for port in range(1, len(CHANNELS) + 1)])
        finally:
            os._exit(0)
    for target, fd in ((1, out), (2, err)):
        os.dup2(fd, target)
    argv = [word.replace("{connection_file}", connection_file) for word in argv]
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())
        os._exit(127)


def relay(listening: list[int], addresses: list[str]) -> None:
    """Pass every connection on, until killed with the item. Its own session keeps the kernel's interrupts away."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    acceptors = [
        threading.Thread(target=accept, args=(socket.socket(fileno=fd), address), daemon=True)
        for fd, address in zip(listening, addresses, strict=True)
    ]
    for thread in acceptors:
        thread.start()
    for thread in acceptors:
        thread.join()


def accept(listener: socket.socket, address: str) -> NoReturn:
    """Connect each client of one channel with the kernel's socket of that channel."""
    room = threading.Semaphore(_MOST_CONNECTIONS)
    while True:
        room.acquire()
        client, _ = listener.accept()
        threading.Thread(target=join, args=(client, address, room), daemon=True).start()


def join(client: socket.socket, address: str, room: threading.Semaphore) -> None:
    """Copy both ways until one side ends; the kernel may not have bound its socket yet."""
    kernel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with room_when_done(room), client, kernel:
        while True:
            try:
                kernel.connect(address)
                break
            except OSError:
                time.sleep(_RETRY_S)
        back = threading.Thread(target=copy, args=(kernel, client), daemon=True)
        back.start()
        copy(client, kernel)
        back.join()


@contextlib.contextmanager
def room_when_done(room: threading.Semaphore) -> Iterator[None]:
    """Give the connection's place back at its end."""
    try:
        yield
    finally:
        room.release()


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Bytes from one socket to the other, then the end of them."""
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
