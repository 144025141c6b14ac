"""One URL fetched by the real curl in its box, body into an output, with the limits that curl itself does not keep.

What curl says of itself (errors, write-out) comes on its stderr between marks that a server cannot guess.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.sandbox.broker.box import DOOR, Box
from sandboxmcp.sandbox.broker.frames import Broken, Shim
from sandboxmcp.sandbox.broker.gate import Gate
from sandboxmcp.sandbox.broker.greetings import socks5
from sandboxmcp.sandbox.broker.order import Download, FetchOrder
from sandboxmcp.sandbox.broker.output import WRITE_ERROR, Output
from sandboxmcp.sandbox.broker.relay import Relay
from sandboxmcp.sandbox.process import SandboxProcess, start_sandbox

CURL = "/usr/bin/curl"
_BOX_BYTES = 16 << 20
_PIECE = 1 << 20
_MOST_STDERR = 256 << 10
_GRACE_S = 5.0
_PROXY_FAILED, _NO_HOST, _NO_CONNECTION, _TOO_BIG, _TOO_SLOW = 97, 6, 7, 63, 28
_LIMITS = "ulimit -c 0; ulimit -t 3600; ulimit -n 256; ulimit -v 4194304; ulimit -p 64 2>/dev/null || ulimit -u 64"
"""One option a call, and `-p` before `-u`: dash knows no other way."""
_RUN = f'{_LIMITS}; exec "$@"'
_RUN_WITH_HEADERS = f'mark=$1; shift; {_LIMITS}; "$@"; code=$?; printf "%s" "$mark" >&2; cat /tmp/headers >&2; exit $code'


@dataclass(slots=True)
class Fetched:
    """What became of one download."""

    code: int
    """curl's exit code."""
    said: str = ""
    """What curl, or the broker in its place, says of a failure."""
    by_us: bool = False
    """`said` is a refusal of ours, to be shown even when curl was told to be silent."""
    write_out: str = ""
    headers: bytes = b""
    status: int = 0
    """Of HTTP; 0 when there was none."""
    hosts: tuple[str, ...] = ()
    passed: int = 0
    """Bytes on the wire, both ways."""


@dataclass(frozen=True, slots=True)
class Limits:
    """For one download, the settings and the order taken together."""

    size: int
    time_s: float


def curl_argv(order: FetchOrder, download: Download, limits: Limits, mark: str) -> list[str]:
    """The real command line. Every word is ours or has been checked."""
    protocols = "=" + ",".join(order.schemes)
    shown = (order.write_out or "").replace("%{filename_effective}", download.output.replace("%", "%%"))
    argv = [CURL, "-q", "-s", "-S", "-g", "--proto", protocols, "--proto-redir", protocols, "--noproxy", ""]
    argv += ["--proxy", f"socks5h://localhost{DOOR}/s"]
    argv += ["--max-time", f"{limits.time_s:.3f}", "--max-filesize", str(limits.size)]
    if order.max_redirects:
        argv += ["-L", "--max-redirs", str(order.max_redirects)]
    argv += ["-f"] * order.fail + ["-I"] * order.head + list(order.options)
    if order.headers_to is not None:
        argv += ["-D", "/tmp/headers"]
    return [*argv, "-w", f"%{{stderr}}{mark}%{{http_code}}{mark}{shown}{mark}", "-o", "-", "--", download.url]


class Engine:
    """Runs curl for one session."""

    def __init__(self, box: Box, gate: Gate, domains: tuple[str, ...] = ()) -> None:
        self._box = box
        self._gate = gate
        self._domains = domains

    def fetch(self, shim: Shim, order: FetchOrder, download: Download, output: Output, limits: Limits) -> Fetched:
        """Fetch one URL once. Blocks; to be called from a thread that lives until it returns.

        Raises:
            Refusal: the output cannot be written.
            Broken: the shim is gone; nothing is left running.
        """
        mark = f"\x1e{secrets.token_hex(8)}\x1e"
        with self._box.door() as (place, listener):
            relay = Relay(listener, socks5, self._gate, self._domains, family=order.family)
            try:
                fetched = self._run(shim, order, download, output, limits, place, mark)
            finally:
                relay.close()
            return _explained(fetched, relay)

    def _run(
        self, shim: Shim, order: FetchOrder, download: Download, output: Output, limits: Limits, place: Path, mark: str
    ) -> Fetched:
        argv = curl_argv(order, download, limits, mark)
        command = ["/bin/sh", "-c", *((_RUN_WITH_HEADERS, "sh", mark) if order.headers_to is not None else (_RUN, "sh")), *argv]
        body_r, body_w = os.pipe2(os.O_CLOEXEC)
        said_r, said_w = os.pipe2(os.O_CLOEXEC)
        said = _Said(said_r)
        try:
            try:
                process = start_sandbox(
                    self._box.profile(place, {}, _BOX_BYTES, bare=True), command, streams=(subprocess.DEVNULL, body_w, said_w)
                )
            except SandboxUnavailable as error:
                return Fetched(_NO_CONNECTION, f"the box of curl did not start: {error}", by_us=True)
            finally:
                os.close(body_w)
                os.close(said_w)
            ended = _pump(shim, process, body_r, output, limits)
        finally:
            os.close(body_r)
            text = said.text()
        return _told(ended, text, mark)


def _pump(shim: Shim, process: SandboxProcess, body: int, output: Output, limits: Limits) -> Fetched:
    """Move the body until it ends, a limit is met, or the shim goes away. The box is gone afterwards."""
    deadline = time.monotonic() + limits.time_s + _GRACE_S
    try:
        while True:
            readable, _, _ = select.select([body, shim.fileno()], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                return Fetched(_TOO_SLOW, f"it took more than {limits.time_s:g} s", by_us=True)
            if shim.fileno() in readable:
                raise Broken("the shim is gone")
            try:
                count = output.take(body, min(_PIECE, limits.size + 1 - output.written))
            except OSError as error:
                return Fetched(WRITE_ERROR, f"cannot write {output.place[:200]}: {error.strerror}", by_us=True)
            if count == 0:
                return Fetched(_exit_code(process))
            if output.written > limits.size:
                os.ftruncate(output.open(), limits.size) if output.place not in ("-", os.devnull) else None
                return Fetched(_TOO_BIG, f"the answer is larger than {limits.size:,} bytes", by_us=True)
    finally:
        process.end()


def _exit_code(process: SandboxProcess) -> int:
    """The body has ended; the program does so too, or is made to."""
    try:
        code = process.wait(_GRACE_S)
    except Exception:
        return _TOO_SLOW
    return code if code >= 0 else 128 - code


class _Said:
    """What comes on a pipe, read by a thread of its own; the first 256 KiB are kept."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._got = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True, name="sandboxmcp-said")
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self._fd, 1 << 16):
                self._got += piece[: max(0, _MOST_STDERR - len(self._got))]
        os.close(self._fd)

    def text(self) -> bytes:
        """All of it: every writer has ended with the box."""
        self._thread.join(_GRACE_S)
        return bytes(self._got)


def _told(fetched: Fetched, text: bytes, mark: str) -> Fetched:
    """The same with what stands between the marks."""
    parts = text.split(mark.encode())
    said = parts[0]
    if len(parts) >= 4:
        fetched.status = int(parts[1]) if parts[1].isdigit() else 0
        fetched.write_out = parts[2].decode(errors="replace")
        said += parts[3]
        fetched.headers = parts[4] if len(parts) > 4 else b""
    if not fetched.by_us:
        fetched.said = said.decode(errors="replace").strip()
    return fetched


def _explained(fetched: Fetched, relay: Relay) -> Fetched:
    """The same with the relay's reasons, which are the true ones: curl knows only that its proxy failed."""
    fetched.hosts, fetched.passed = tuple(dict.fromkeys(relay.hosts)), relay.passed
    if fetched.code == 0:
        return fetched
    if relay.refusals:
        fetched.said, fetched.by_us = relay.refusals[-1], True
        fetched.code = _NO_CONNECTION if fetched.code == _PROXY_FAILED else fetched.code
    elif relay.failures and fetched.code == _PROXY_FAILED:
        failure = relay.failures[-1]
        fetched.code = _NO_HOST if failure.unresolved else _NO_CONNECTION
        fetched.said = f"curl: ({fetched.code}) {failure}"
    return fetched
