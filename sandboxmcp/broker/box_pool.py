"""Boxes in which curl has started and waits for its orders: most of what a small request costs is their start.

curl reads its options from its standard input (`-K -`, curl(1)), so nothing of the request need be known when it starts. A box is
used once. The next one is started behind an answer, by a thread that lives as long as all of them (bubblewrap dies with the
thread that started it), and ended when nobody has wanted it for a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import threading
from collections.abc import Sequence

from sandboxmcp.broker.box import DOOR, Box
from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.policy.programs.order import Option
from sandboxmcp.sandbox.process import start_sandbox

CURL = "/usr/bin/curl"
_FIRST = (CURL, "-q", "-s", "-S", "-g", "--noproxy", "", "--proxy", f"socks5h://localhost{DOOR}/s", "-K", "-")
"""An empty value cannot be said in a file of options."""
_BOX_BYTES = 16 << 20
_MOST_STDERR = 256 << 10
_MOST_ORDERS = 1 << 20
_GRACE_S = 5.0
_IDLE_S = 60.0
_MOST_WAITING = 2
"""Some 10 MB each."""
_LIMITS = (
    "prlimit --pid $$ --core=1:1 2>/dev/null || ulimit -c 0; "
    "ulimit -t 3600; ulimit -n 256; ulimit -v 4194304; ulimit -p 64 2>/dev/null || ulimit -u 64"
)
"""One option a call, and `-p` before `-u`: dash knows no other way. Why 1 byte of core: see `bwrap.REFUSED_LIMITS`."""
_RUN = (
    f'mark=$1; shift; {_LIMITS}; "$@"; code=$?; '
    'if [ -e /tmp/headers ]; then printf "%s" "$mark" >&2; cat /tmp/headers >&2; fi; exit $code'
)
_ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord("\v"): "\\v"}
_EMPTY: dict[str, Option | None] = {
    "--data-raw": ("--data-binary", "@/dev/null"),
    "--referer": None,
    "--user-agent": ("--header", "User-Agent:"),
}
"""What an option with an empty value comes to, in other words."""


def orders(options: Sequence[Option]) -> bytes:
    """The options as a file of curl's: each on a line of its own, whatever is in its value."""
    lines = []
    for option in options:
        said = _EMPTY[option[0]] if option[1:] == ("",) else option
        if said is not None:
            lines.append(" ".join([said[0], *(f'"{value.translate(_ESCAPES)}"' for value in said[1:])]))
    return "\n".join([*lines, ""]).encode(errors="surrogateescape")


class WaitingBox:
    """One box, its curl waiting, the door that its requests will come through."""

    def __init__(self, box: Box) -> None:
        """Started by the calling thread, with which it ends.

        Raises:
            SandboxUnavailable: its sandbox does not start. OSError: no descriptors are left.
        """
        self.mark = f"\x1e{secrets.token_hex(8)}\x1e"
        """Stands in curl's stderr between what it says and what its headers were; a server cannot guess it."""
        self._held = contextlib.ExitStack()
        try:
            place, self.door = self._held.enter_context(box.door())
            orders_r, self._orders = os.pipe2(os.O_CLOEXEC)
            self.body, body_w = os.pipe2(os.O_CLOEXEC)
            said_r, said_w = os.pipe2(os.O_CLOEXEC)
            self._said = Said(said_r)
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._orders, fcntl.F_SETPIPE_SZ, _MOST_ORDERS)
            command = ["/bin/sh", "-c", _RUN, "sh", self.mark, *_FIRST]
            profile = box.profile(place, {}, _BOX_BYTES, bare=True)
            try:
                self.process = start_sandbox(profile, command, streams=(orders_r, body_w, said_w))
            finally:
                for theirs in (orders_r, body_w, said_w):
                    os.close(theirs)
            self._held.callback(self.process.end)
        except BaseException:
            self._held.close()
            raise

    def give(self, options: Sequence[Option]) -> None:
        """Its orders, after which it runs.

        Raises:
            OSError: it has ended.
        """
        fd, self._orders = self._orders, -1
        with os.fdopen(fd, "wb") as pipe:
            pipe.write(orders(options))

    def said(self) -> bytes:
        """What came on its stderr, when it has ended."""
        return self._said.text()

    def end(self) -> None:
        """End the box and forget its door. Safe to call twice."""
        for fd in (self._orders, self.body):
            if fd >= 0:
                os.close(fd)
        self._orders = self.body = -1
        self._held.close()


class Spares:
    """Keeps boxes waiting, once a first request has come. Close it with the session."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._changed = threading.Condition()
        self._waiting: list[WaitingBox] = []
        self._wanted = False
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def number(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def take(self) -> WaitingBox | None:
        """One that waits, now the caller's; None when there is none."""
        while True:
            with self._changed:
                if not self._waiting:
                    return None
                box = self._waiting.pop(0)
            if box.process.alive():
                return box
            box.end()

    def refill(self) -> None:
        """Have more of them started; returns at once."""
        with self._changed:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="sandboxmcp-spares")
                self._thread.start()
            self._wanted = True
            self._changed.notify()

    def close(self) -> None:
        """End those that wait, and the thread: boxes that it started end with it."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(2 * _GRACE_S)
        self._end_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._closed and not self._wanted:
                    self._changed.wait(_IDLE_S if self._waiting else None)
                if self._closed:
                    return
                wanted, self._wanted = self._wanted, False
            if not wanted:
                self._end_all()  # nobody has come for a while
                continue
            with contextlib.suppress(SandboxUnavailable, OSError):  # the next request starts its own, and says what is wrong
                self._fill()

    def _fill(self) -> None:
        while len(self._waiting) < _MOST_WAITING and not self._closed:
            made = WaitingBox(self._box)
            with self._changed:
                self._waiting.append(made)
                self._changed.notify_all()

    def _end_all(self) -> None:
        with self._changed:
            ending, self._waiting = self._waiting, []
        for box in ending:
            box.end()


class Said:
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
