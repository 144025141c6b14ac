"""One URL fetched by the real curl in its box, body into an output, with the limits that curl itself does not keep.

What curl says of itself (errors, write-out) comes on its stderr between marks that a server cannot guess.
"""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass

from sandboxmcp.broker.box import Box
from sandboxmcp.broker.box_pool import Spares, WaitingBox
from sandboxmcp.broker.frames import Broken, Shim
from sandboxmcp.broker.gate import Gate
from sandboxmcp.broker.output import WRITE_ERROR, Output
from sandboxmcp.broker.proxy_handshake import socks5
from sandboxmcp.broker.relay import Relay
from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.policy.programs.order import Download, FetchOrder, Option
from sandboxmcp.sandbox.process import SandboxProcess

_PIECE = 1 << 20
_GRACE_S = 5.0
_PROXY_FAILED, _NO_HOST, _NO_CONNECTION, _TOO_BIG, _TOO_SLOW = 97, 6, 7, 63, 28


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


def options_for(order: FetchOrder, download: Download, limits: Limits, mark: str) -> list[Option]:
    """The options of the real curl, beside those that it has started with. Every one is ours or has been checked."""
    protocols = "=" + ",".join(order.schemes)
    shown = (order.write_out or "").replace("%{filename_effective}", download.output.replace("%", "%%"))
    options: list[Option] = [("--proto", protocols), ("--proto-redir", protocols)]
    options += [("--max-time", f"{limits.time_s:.3f}"), ("--max-filesize", str(limits.size))]
    if order.max_redirects:
        options += [("--location",), ("--max-redirs", str(order.max_redirects))]
    options += [("--fail",)] * order.fail + [("--head",)] * order.head + list(order.options)
    if order.headers_to is not None:
        options.append(("--dump-header", "/tmp/headers"))
    options.append(("--write-out", f"%{{stderr}}{mark}%{{http_code}}{mark}{shown}{mark}"))
    return [*options, ("--output", "-"), ("--url", download.url)]


class Engine:
    """Runs curl for one session."""

    def __init__(self, box: Box, gate: Gate, domains: tuple[str, ...] = (), spares: Spares | None = None) -> None:
        self._box = box
        self._gate = gate
        self._domains = domains
        self._spares = spares

    def fetch(self, shim: Shim, order: FetchOrder, download: Download, output: Output, limits: Limits) -> Fetched:
        """Fetch one URL once. Blocks; to be called from a thread that lives until it returns.

        Raises:
            Refusal: the output cannot be written.
            Broken: the shim is gone; nothing is left running.
        """
        try:
            box = (self._spares.take() if self._spares is not None else None) or WaitingBox(self._box)
        except (SandboxUnavailable, OSError) as error:
            return Fetched(_NO_CONNECTION, f"the box of curl did not start: {error}", by_us=True)
        try:
            relay = Relay(box.door, socks5, self._gate, self._domains, family=order.family)
            try:
                box.give(options_for(order, download, limits, box.mark))
                ended = _pump(shim, box.process, box.body, output, limits)
            except BrokenPipeError:
                ended = Fetched(_NO_CONNECTION, "the box of curl has ended", by_us=True)
            finally:
                relay.close()
            return _explained(_told(ended, box.said(), box.mark), relay)
        finally:
            box.end()
            if self._spares is not None:
                self._spares.refill()


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
