"""The protocol between the shim and the broker. The shim is inside the sandbox: nothing that it says is believed.

A frame is its length (4 bytes, big-endian) and fields joined by NUL; NUL is what no argument can hold, and a shim that needs no
JSON starts in half the time. The shim begins: PROGRAM, kind of stdout, kind of stderr, argv… The broker answers with operations;
each is answered in turn by one frame, which is `ok` (with a descriptor where one was asked for) or `no` and the reason:

    check PATH EXISTING FOLDERS      could this be written? answered ok, ok + `there`, or no
    open PATH EXISTING FOLDERS       open it for writing, pass the descriptor
    stdout                           pass standard output
    input PATH                       open it for reading, pass the descriptor
    streams                          pass stdin, stdout and stderr
    remove PATH                      take a partial output away again
    unpack FOLDER                    pass the end of a pipe that a tar archive is written to
    unpacked                         say whether that went well

and last, unanswered: `exit CODE STDOUT STDERR`, or `local`: run the program yourself.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct

_MOST_BYTES = 256 << 10
_ANSWER_S = 10.0
_MOST_FDS = 4


class Broken(Exception):
    """The shim is gone, too slow, or does not speak the protocol; nobody is left to answer."""


class TooLong(Exception):
    """A frame beyond the limit."""


class Shim:
    """One connected shim."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(_ANSWER_S)

    def request(self) -> list[bytes]:
        """The first frame.

        Raises:
            Broken, TooLong
        """
        fields, fds = self._receive(0)
        _close(fds)
        return fields

    def ask(self, *fields: str, descriptors: int = 0) -> tuple[list[str], list[int]]:
        """The answer to an operation: what follows `ok`, and exactly so many descriptors, which are the caller's to close.

        Raises:
            OSError: the shim says no; its message is the reason.
            Broken: it answers nothing sensible.
        """
        self._send(fields)
        try:
            answer, fds = self._receive(descriptors)
        except TooLong:
            raise Broken("a frame that is too long") from None
        said = [field.decode(errors="replace") for field in answer]
        if said[0] == "ok" and len(fds) == descriptors:
            return said[1:], fds
        _close(fds)
        if said[0] == "no":
            raise OSError(_clean(said[1] if len(said) > 1 else "it gives no reason"))
        raise Broken("an answer of another form")

    def finish(self, code: int, out: str = "", err: str = "") -> None:
        """The last word. A shim that is gone does not hear it."""
        with contextlib.suppress(Broken):
            self._send(("exit", str(code), out.replace("\0", ""), err.replace("\0", "")))

    def step_aside(self) -> None:
        """Tell the shim to run the real program inside, where there is no network."""
        with contextlib.suppress(Broken):
            self._send(("local",))

    def gone(self) -> bool:
        """Whether it has closed its end; it has nothing to say unasked."""
        ready, _, _ = select.select([self._connection], [], [], 0)
        return bool(ready)

    def fileno(self) -> int:
        return self._connection.fileno()

    def _send(self, fields: tuple[str, ...]) -> None:
        payload = b"\0".join(field.encode(errors="surrogateescape") for field in fields)
        try:
            self._connection.sendall(struct.pack("!I", len(payload)) + payload)
        except OSError as error:
            raise Broken(str(error)) from None

    def _receive(self, descriptors: int) -> tuple[list[bytes], list[int]]:
        """A frame and the descriptors beside its first byte. With none expected, the kernel throws away what is sent."""
        fds: list[int] = []
        try:
            if descriptors:
                head, fds, _, _ = socket.recv_fds(self._connection, 4, min(descriptors, _MOST_FDS), socket.MSG_CMSG_CLOEXEC)
            else:
                head = self._connection.recv(4)
            head += self._exactly(4 - len(head)) if head else b""
            if len(head) < 4:
                raise Broken("it is gone")
            (length,) = struct.unpack("!I", head)
            if length > _MOST_BYTES:
                raise TooLong
            return self._exactly(length).split(b"\0"), fds
        except OSError as error:
            _close(fds)
            raise Broken(str(error)) from None
        except (Broken, TooLong):
            _close(fds)
            raise

    def _exactly(self, count: int) -> bytes:
        got = bytearray()
        while len(got) < count:
            piece = self._connection.recv(count - len(got))
            if not piece:
                raise Broken("it is gone")
            got += piece
        return bytes(got)


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _clean(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:500]
