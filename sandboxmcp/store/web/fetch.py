"""Gets a URL for the host: over the gate that judges every name and address, redirects judged again, sizes and times bounded.

Threat: a page that sends the fetcher to this machine or its network, answers without end, drips, or unpacks to gigabytes.
The socket that the gate opened is the one that is spoken over, so there is no second look-up; that is also why this speaks
HTTP with the standard library's client, which takes an open socket. No cookies, no credentials, no proxy from the environment.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from sandboxmcp.broker.gate import Gate, Refused, Unreachable
from sandboxmcp.core.errors import UsageError
from sandboxmcp.policy.programs.order import Refusal
from sandboxmcp.policy.programs.urls import checked_url

MOST_BYTES = 32 << 20
"""Of one page, unpacked; more is better downloaded into the workspace by curl."""
_MOST_REDIRECTS = 10
_ATTEMPTS = 3
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_LONGEST_WAIT_S = 10.0
_SILENCE_S = 20.0
_PIECE = 64 << 10
_TOO_LONG = "it takes longer than network.time_s allows"
_ACCEPT = "text/markdown, text/html;q=0.9, application/json;q=0.8, text/*;q=0.8, application/pdf;q=0.7, */*;q=0.3"

JudgeUrl = Callable[[str], str]
"""Why the policy does not want this URL fetched; empty when it has nothing against it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a server answered in the end. `content` is None when it said that nothing changed (304)."""

    url: str
    content: bytes | None
    mime: str
    charset: str
    etag: str
    modified: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One URL, and what is known of it from before, word for word as the server gave it."""

    url: str
    etag: str = ""
    modified: str = ""


class _Again(Exception):
    """It may work a moment later."""

    def __init__(self, why: str, wait_s: float | None = None) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class _Answered(Exception):
    """The server itself says no."""


class Fetcher:
    """Fetches over one gate. Any thread; `wait` sleeps between attempts."""

    def __init__(
        self,
        gate: Gate,
        judge: JudgeUrl,
        *,
        domains: tuple[str, ...] = (),
        tls: ssl.SSLContext | None = None,
        wait: Callable[[float], None] = time.sleep,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._gate = gate
        self._judge = judge
        self._domains = domains
        self._tls = tls or ssl.create_default_context()
        self._wait = wait
        self._most_bytes = min(most_bytes, gate.budget.allowance.size)

    def fetch(self, asked: Asked) -> Fetched:
        """The page, after redirects and at most two more attempts.

        Raises:
            UsageError: it may not or cannot be fetched; says why.
        """
        deadline = time.monotonic() + self._gate.budget.allowance.time_s
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._follow(asked, deadline)
            except _Again as again:
                wait_s = min(again.wait_s if again.wait_s is not None else 0.5 * 2**attempt, _LONGEST_WAIT_S)
                if attempt == _ATTEMPTS or time.monotonic() + wait_s > deadline:
                    raise UsageError(f"{asked.url} cannot be fetched: {again}", "Try again later.") from None
                self._wait(wait_s)
            except _Answered as answered:
                raise UsageError(f"{asked.url} cannot be fetched: {answered}") from None
            except (Refused, Refusal) as refused:
                raise UsageError(f"{asked.url} may not be fetched: {refused}") from None
        raise AssertionError("the last attempt returns or raises")

    def _follow(self, asked: Asked, deadline: float) -> Fetched:
        url = checked_url(asked.url)
        for _ in range(_MOST_REDIRECTS + 1):
            if why := self._judge(url) or self._gate.budget.begin():
                raise Refused(why)
            found = self._get(url, asked, deadline)
            if isinstance(found, Fetched):
                return found
            following = checked_url(_joined(url, found))
            if url.startswith("https:") and not following.startswith("https:"):
                raise Refused(f"it redirects from https to {following[:200]}")
            url = following
        raise Refused(f"more than {_MOST_REDIRECTS} redirects")

    def _get(self, url: str, asked: Asked, deadline: float) -> Fetched | str:
        """The answer, or where it redirects to."""
        try:
            with closing(self._connected(url)) as sock, _cut_off(sock, deadline):
                self._greeted(sock)
                response = _response(sock, url, asked)
                return self._answer(url, response, sock, deadline)
        except Unreachable as failure:
            raise _Again(str(failure)) from None
        except (OSError, http.client.HTTPException) as error:
            if time.monotonic() >= deadline:
                raise Refused(_TOO_LONG) from None
            raise _Again(f"{type(error).__name__}: {str(error)[:200]}" if str(error) else type(error).__name__) from None

    def _connected(self, url: str) -> socket.socket:
        parts = urlsplit(url)
        secure = parts.scheme.lower() == "https"
        host = parts.hostname or ""
        sock = self._gate.connect(host, parts.port or (443 if secure else 80), self._domains)
        sock.settimeout(_SILENCE_S)
        return self._tls.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False) if secure else sock

    @staticmethod
    def _greeted(sock: socket.socket) -> None:
        if isinstance(sock, ssl.SSLSocket):
            try:
                sock.do_handshake()
            except ssl.SSLCertVerificationError as error:
                raise Refused(f"its certificate is not trusted: {error.verify_message}") from None

    def _answer(self, url: str, response: http.client.HTTPResponse, sock: socket.socket, deadline: float) -> Fetched | str:
        status, header = response.status, response.getheader
        if status in (301, 302, 303, 307, 308) and (place := header("location")):
            return place
        if status in _AGAIN:
            raise _Again(f"the server answered {status} {response.reason[:80]}", _retry_after(header("retry-after")))
        if status not in (200, 203, 304):
            raise _Answered(f"the server answered {status} {response.reason[:80]}")
        content = None if status == 304 else b"".join(self._body(response, sock, deadline))
        kind = response.headers
        return Fetched(
            url,
            content,
            kind.get_content_type() if header("content-type") else "",
            kind.get_content_charset() or "",
            (header("etag") or "")[:500],
            (header("last-modified") or "")[:100],
        )

    def _body(self, response: http.client.HTTPResponse, sock: socket.socket, deadline: float) -> Iterator[bytes]:
        total = 0
        length = response.getheader("content-length") or ""
        if length.isdigit() and int(length) > self._most_bytes:
            raise Refused(self._too_large())
        for piece in _unpacked(_pieces(response, sock, deadline, self._spend), response.getheader("content-encoding") or ""):
            total += len(piece)
            if total > self._most_bytes:
                raise Refused(self._too_large())
            yield piece

    def _spend(self, count: int) -> None:
        if why := self._gate.budget.spend(count):
            raise Refused(why)

    def _too_large(self) -> str:
        return f"it has more than {self._most_bytes:,} bytes; download it with curl -o and index the file"


@contextlib.contextmanager
def _cut_off(sock: socket.socket, deadline: float) -> Iterator[None]:
    """The connection ends at the deadline, whatever is being waited for: a silence is bounded by its own timeout, and a server that
    says a letter now and then, in the handshake, a header or the length of a chunk, is never silent."""

    def cut() -> None:
        with contextlib.suppress(OSError):  # the plain method: a TLS socket's own forgets its state while another thread reads
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _joined(url: str, place: str) -> str:
    try:
        return urljoin(url, place)
    except ValueError as error:
        raise Refused(f"it redirects to {place[:200]!r}, which is no URL: {error}") from None


def _response(sock: socket.socket, url: str, asked: Asked) -> http.client.HTTPResponse:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "")
    connection.sock = sock
    headers = {"Host": parts.netloc, "User-Agent": "sandboxmcp", "Accept": _ACCEPT, "Accept-Encoding": "gzip, deflate"}
    headers |= {"If-None-Match": asked.etag} if asked.etag else {}
    headers |= {"If-Modified-Since": asked.modified} if asked.modified else {}
    connection.request(
        "GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), headers=headers | {"Connection": "close"}
    )
    return connection.getresponse()


def _pieces(
    response: http.client.HTTPResponse, sock: socket.socket, deadline: float, spend: Callable[[int], None]
) -> Iterator[bytes]:
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Refused(_TOO_LONG)
        sock.settimeout(min(_SILENCE_S, left))
        piece = response.read1(_PIECE)
        if not piece:
            if time.monotonic() >= deadline:  # cut off, which looks like an end
                raise Refused(_TOO_LONG)
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return
        spend(len(piece))
        yield piece


def _unpacked(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    """The body without its content coding, in pieces that stay small whatever the ratio."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        yield from pieces
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise Refused(f"the server sent an unknown content coding {coding[:40]!r}")
    inflate = zlib.decompressobj(47)  # gzip or zlib, by its own header
    try:
        for piece in pieces:
            while piece:
                if part := inflate.decompress(piece, _PIECE * 4):
                    yield part
                piece = inflate.unconsumed_tail
        yield inflate.flush()
    except zlib.error as error:
        raise Refused(f"what the server sent does not unpack: {error}") from None


def _retry_after(value: str | None) -> float | None:
    return float(value) if value and value.isdigit() else None
