"""Processes that read what a server may not be held up by: large texts, and whatever came from outside.

Readers of HTML, PDF and code have inputs of a few kilobytes that take them minutes, nothing ends a thread, and an expression that
runs holds Python's lock. A worker has a time, a memory, and an environment in which nothing is secret; it is started by module
name with `-P`, so that no file of the working folder is imported. Started when it is first needed, and kept for a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from sandboxmcp.core.errors import StoreError

LENGTH = struct.Struct("<I")
"""Before every message and every frame."""
END = 0xFFFFFFFF
"""In place of a length: nothing follows."""
_AT_ONCE = 2
_PASSED = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "VIRTUAL_ENV")
_PATIENCE = 4
"""The processor may be shared: so many times its processor time may an order take."""
_START_S = 60.0
_MOST_REPLY = 1 << 20


class Lost(Exception):
    """A worker ended without having done its order: it took too long or too much memory, or a reader failed."""


class Workers:
    """At most two worker processes. Any thread may give orders; it waits for its turn."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._alive: set[_Worker] = set()
        self._closed = False

    def run(
        self, order: Mapping[str, Any], pieces: Iterable[bytes], file: BinaryIO, *, cpu_s: float, most_bytes: int
    ) -> dict[str, Any]:
        """Has an order done: it reads the pieces and writes to the file, at most so many bytes. Returns what it replies.

        Raises:
            Lost. StoreError: it was closed. Whatever reading the pieces raises; the worker is then ended.
        """
        message = json.dumps({**order, "cpu_s": cpu_s, "most_bytes": most_bytes}).encode()
        with self._turns:
            try:
                return self._done(message, pieces, file, cpu_s)
            except Lost:
                if self._closed:
                    raise StoreError("The store is closed", "Open it again.") from None
                raise

    @property
    def alive(self) -> int:
        """How many there are."""
        with self._lock:
            return len(self._alive)

    def close(self) -> None:
        """Ends all workers, those at work too."""
        self._closed = True
        self._idle.clear()
        with self._lock:
            alive = list(self._alive)
        for worker in alive:
            self._end(worker)

    def _done(self, message: bytes, pieces: Iterable[bytes], file: BinaryIO, cpu_s: float) -> dict[str, Any]:
        worker = self._begun(message, file, cpu_s)
        try:
            for piece in pieces:
                worker.send(LENGTH.pack(len(piece)), piece)
            worker.send(LENGTH.pack(END))
            reply = worker.reply()
            if "failed" in reply:
                raise Lost(reply["failed"])
        except BaseException:
            self._end(worker)
            raise
        if reply.pop("stays", False) and not self._closed:
            self._idle.append(worker)
        else:
            self._end(worker)
        return reply

    def _begun(self, message: bytes, file: BinaryIO, cpu_s: float) -> _Worker:
        """A worker that has taken the order: an idle one, unless it has ended by now, else a new one."""
        while True:
            try:
                worker, known = self._idle.pop(), True
            except IndexError:
                worker, known = self._started(), False
            try:
                worker.begin(message, file, cpu_s)
                return worker
            except Lost:
                self._end(worker)
                if not known:
                    raise

    def _started(self) -> _Worker:
        if self._closed:
            raise Lost("no process is started any more")
        try:
            worker = _Worker()
        except OSError as error:
            raise Lost(f"no process can be started: {error.strerror}") from None
        with self._lock:
            self._alive.add(worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        worker.end()
        with self._lock:
            self._alive.discard(worker)


class _Worker:
    """One process and the socket to it."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        self._socket, theirs = socket.socketpair()
        self._deadline = 0.0
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "sandboxmcp.store.readers.worker_main", str(theirs.fileno())],
                    stdin=subprocess.PIPE,  # whose end tells it that this process is gone
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                )
            except BaseException:
                self._socket.close()
                raise

    def begin(self, message: bytes, file: BinaryIO, cpu_s: float) -> None:
        """Gives it the order and waits until it has it."""
        self._deadline = time.monotonic() + _START_S
        with self._told():
            socket.send_fds(self._socket, [LENGTH.pack(len(message))], [file.fileno()])
            self._socket.sendall(message)
        self.reply()
        self._deadline = time.monotonic() + _START_S + _PATIENCE * cpu_s

    def send(self, *parts: bytes) -> None:
        with self._told():
            for part in parts:
                self._socket.sendall(part)

    def reply(self) -> dict[str, Any]:
        with self._told():
            (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
            found = json.loads(self._exactly(min(length, _MOST_REPLY)))
        if not isinstance(found, dict):
            raise Lost("it replied something else")
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._socket.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self._wait_at_most()
            if not (part := self._socket.recv(size - len(data))):
                raise EOFError
            data += part
        return data

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            self._wait_at_most()
            yield
        except (OSError, EOFError, ValueError, struct.error) as error:
            raise Lost(str(error) or type(error).__name__) from None

    def _wait_at_most(self) -> None:
        self._socket.settimeout(max(self._deadline - time.monotonic(), 0.001))
