"""The other end of a box's only way out: takes its connections, asks the gate for each, copies bytes and counts them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from sandboxmcp.broker.gate import Gate, Refused, Unreachable
from sandboxmcp.broker.proxy_handshake import Garbled, Greeting, Target
from sandboxmcp.policy.programs.order import Family

_PIECE = 256 << 10
_GREETING_S = 30.0
_MOST_CONNECTIONS = 64
"""At once, of one box; more wait in the listening socket."""
_MOST_HOSTS = 100
"""Remembered for the log; what a box asks for has no end."""


class Relay:
    """Serves one listening socket until closed. What it refused, reached and passed stands in its attributes."""

    def __init__(
        self,
        listener: socket.socket,
        greeting: Greeting,
        gate: Gate,
        domains: tuple[str, ...] = (),
        most_bytes: int | None = None,
        family: Family = "any",
    ) -> None:
        self._listener = listener
        self._greeting = greeting
        self._gate = gate
        self._domains = domains
        self._most_bytes = most_bytes
        self._family: Family = family
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._room = threading.Semaphore(_MOST_CONNECTIONS)
        self._closed = False
        self.hosts: list[str] = []
        """`name:port` of the targets that were asked for, each once."""
        self.refusals: list[str] = []
        """Why targets were refused, or cut off."""
        self.failures: list[Unreachable] = []
        self.passed = 0
        """Bytes, both ways."""
        self._thread = threading.Thread(target=self._accept, daemon=True, name="sandboxmcp-relay")
        self._thread.start()

    def close(self) -> None:
        """Take no more connections and end those that there are."""
        with self._lock:
            self._closed = True
            ending = list(self._open)
        for one in (self._listener, *ending):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._listener.close()
        self._thread.join(5)

    def _accept(self) -> None:
        while True:
            self._room.acquire()
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True, name="sandboxmcp-relay").start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, self._held(client):
                client.settimeout(_GREETING_S)
                target = self._greeting(client)
                upstream = self._connected(client, target)
                if upstream is not None:
                    with upstream, self._held(upstream):
                        client.sendall(target.granted)
                        client.settimeout(None)
                        self._copy_both_ways(client, upstream)
        except (Garbled, OSError):
            return
        finally:
            self._room.release()

    @contextlib.contextmanager
    def _held(self, one: socket.socket) -> Iterator[None]:
        """Known to `close` for as long as it is used."""
        with self._lock:
            if self._closed:
                raise OSError("closed")
            self._open.add(one)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(one)

    def _connected(self, client: socket.socket, target: Target) -> socket.socket | None:
        host = f"{target.host[:255]}:{target.port}"
        if host not in self.hosts and len(self.hosts) < _MOST_HOSTS:
            self.hosts.append(host)
        try:
            return self._gate.connect(target.host, target.port, self._domains, self._family)
        except Refused as refused:
            self.refusals[_MOST_HOSTS:] = [str(refused)]
            client.sendall(target.refused)
        except Unreachable as failure:
            self.failures[_MOST_HOSTS:] = [failure]
            client.sendall(target.unreachable)
        return None

    def _copy_both_ways(self, client: socket.socket, upstream: socket.socket) -> None:
        up = threading.Thread(target=self._copy, args=(client, upstream), daemon=True, name="sandboxmcp-relay")
        up.start()
        self._copy(upstream, client)
        # The client hears the end of the body; when it has gone too, its own half ends.
        up.join()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE):
                if why := self._spend(len(piece)):
                    self.refusals.append(why)
                    for one in (source, sink):
                        one.shutdown(socket.SHUT_RDWR)
                    return
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _spend(self, count: int) -> str:
        with self._lock:
            self.passed += count
            most = self._most_bytes
            if most is not None and self.passed > most:
                return f"more than {most:,} bytes for one request; raise network.size"
        return self._gate.budget.spend(count)
