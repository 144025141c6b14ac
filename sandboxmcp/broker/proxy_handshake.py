"""How a client inside a box asks for a connection: SOCKS5 with the name left to us, or HTTP CONNECT. Each greeting names one
target.

Sources: RFC 1928 (SOCKS5), RFC 9110 section 9.3.6 (CONNECT).
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

_MOST_HEAD = 16 << 10


class Garbled(Exception):
    """The client does not speak the protocol."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the client asked for, and how to answer it."""

    host: str
    port: int
    granted: bytes
    refused: bytes
    unreachable: bytes


Greeting = Callable[[socket.socket], Target]
"""Reads one request from a client. Raises Garbled, OSError."""


def socks5(client: socket.socket) -> Target:
    """The target of a SOCKS5 client; no authentication, CONNECT only."""
    version, count = _exactly(client, 2)
    methods = _exactly(client, count)
    if version != 5 or 0 not in methods:
        raise Garbled
    client.sendall(b"\5\0")
    version, command, _, kind = _exactly(client, 4)
    if version != 5 or command != 1:
        client.sendall(_socks_reply(7))
        raise Garbled
    if kind == 1:
        host = socket.inet_ntop(socket.AF_INET, _exactly(client, 4))
    elif kind == 4:
        host = socket.inet_ntop(socket.AF_INET6, _exactly(client, 16))
    elif kind == 3:
        host = _exactly(client, _exactly(client, 1)[0]).decode("ascii", "replace")
    else:
        raise Garbled
    (port,) = struct.unpack("!H", _exactly(client, 2))
    return Target(host, port, _socks_reply(0), _socks_reply(2), _socks_reply(4))


def _socks_reply(code: int) -> bytes:
    return bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0))


def http_connect(client: socket.socket) -> Target:
    """The target of an HTTP client's CONNECT. Plain requests to be forwarded are refused: only tunnels, so TLS stays end to end.

    A client waits for the answer, so nothing follows the head that would be lost here.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(4096)
        head += piece
        if not piece or len(head) > _MOST_HEAD:
            raise Garbled
    words = head.split(b"\r\n", 1)[0].decode("ascii", "replace").split(" ")
    host, _, port = words[1].rpartition(":") if len(words) == 3 else ("", "", "")
    if words[0] != "CONNECT" or not host or not port.isdecimal() or len(port) > 5:
        client.sendall(_http(405, "only CONNECT is allowed: use https"))
        raise Garbled
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return Target(
        host,
        int(port),
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        _http(403, "refused by the sandbox's rules"),
        _http(502, "could not connect"),
    )


def _http(status: int, words: str) -> bytes:
    return f"HTTP/1.1 {status} {words}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def _exactly(client: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        piece = client.recv(count - len(got))
        if not piece:
            raise Garbled
        got += piece
    return got
