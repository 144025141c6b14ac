"""stdout and stderr of one item: pipes on one side, capped files on the other, no byte in between in Python.

A thread per item splices the pipes to the files and goes on counting (and discarding) beyond the cap, so a writer never
blocks and the server's memory stays flat. The end of an item is told to it, never read from the pipe: a daemon may hold the
other end open.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import queue
import select
import struct
import termios
import threading
from pathlib import Path

import anyio

from sandboxmcp.core.model import StreamCapture

_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_PIECE = 1 << 20


class _Stream:
    """One pipe and the file it flows into."""

    def __init__(self, path: Path, cap: int, owner: int | None) -> None:
        self.path = path
        self.cap = cap
        self.total = 0
        self.kept = 0
        self.trouble = ""
        """Why less than the cap was kept: the disk is full, or cannot be written."""
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC)
        # Whoever writes may open the pipe for reading too and take what we were told is there: then we must not wait for it.
        os.set_blocking(self.read_fd, False)
        if owner is not None:
            os.fchown(self.write_fd, owner, -1)  # else a script of root's server could not reopen /dev/stdout
        with contextlib.suppress(OSError):  # beyond the user's allowance of large pipes a small one does
            fcntl.fcntl(self.write_fd, _F_SETPIPE_SZ, _PIPE_BYTES)
        self._sink = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._file = self._opened()

    def move(self) -> bool:
        """Pass on what is in the pipe now. False when it has ended."""
        room = self.cap - self.kept if not self.trouble else 0
        try:
            moved = os.splice(self.read_fd, self._file if room else self._sink, min(room, _PIECE) or _PIECE)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return True
            if not room:
                return False
            self.trouble = error.strerror or str(error)
            return True
        self.total += moved
        self.kept += moved if room else 0
        return moved > 0

    def waiting(self) -> int:
        """Bytes in the pipe."""
        return int(struct.unpack("i", fcntl.ioctl(self.read_fd, termios.FIONREAD, b"\0" * 4))[0])

    def drain(self) -> None:
        """Pass on everything that is in the pipe now."""
        while self.waiting() and self.move():
            pass

    def cut(self, path: Path) -> StreamCapture:
        """What has flowed into the file so far; from now on it flows into another one."""
        done = self.so_far()
        os.close(self._file)
        self.path, self.total, self.kept, self.trouble = path, 0, 0, ""
        self._file = self._opened()
        return done

    def so_far(self) -> StreamCapture:
        """What has flowed until now."""
        return StreamCapture(self.path, self.total, self.kept, self.trouble if self.total else "", min(self.total, self.cap))

    def _opened(self) -> int:
        """A new file at our path. Where none can be made, what flows is counted all the same, and told as lost."""
        try:
            return os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return os.dup(self._sink)

    def close_writer(self) -> None:
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def close(self) -> None:
        self.close_writer()
        for fd in (self.read_fd, self._file, self._sink):
            os.close(fd)


class ItemCapture:
    """Both streams of one item. `streams` go to the item; `finish` gives the captured files.

    A kernel that runs many scripts has one capture, which is `cut` after each of them.
    """

    def __init__(self, folder: Path, name: str, cap: int, owner: int | None = None) -> None:
        """Files `name`.out and `name`.err are made in `folder`; `cap` is in bytes, for each of them.

        `owner`: the host's number of the sandbox's user, where it is not our own.
        """
        self.stem = folder / name
        """What the names of its files begin with."""
        self._out = _Stream(folder / f"{name}.out", cap, owner)
        self._err = _Stream(folder / f"{name}.err", cap, owner)
        self._stop_r, self._stop_w = os.pipe2(os.O_CLOEXEC)
        self._cut_to: Path | None = None
        self._cuts: queue.SimpleQueue[tuple[StreamCapture, StreamCapture]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._pump, daemon=True, name="sandboxmcp-capture")
        self._thread.start()
        self._finished = False

    @property
    def streams(self) -> tuple[int, int]:
        """The writing ends, for stdout and stderr of the item."""
        return self._out.write_fd, self._err.write_fd

    def write(self, text: str, *, to_stderr: bool = False) -> None:
        """Add text to a stream from this side, for a kernel whose output comes as messages. The pipe is drained all the time."""
        left = memoryview(text.encode(errors="surrogatepass"))
        while left:
            left = left[os.write((self._err if to_stderr else self._out).write_fd, left) :]

    def close_writers(self) -> None:
        """Give up the host's copies of the writing ends, once the item has its own."""
        self._out.close_writer()
        self._err.close_writer()

    async def finish(self) -> tuple[StreamCapture, StreamCapture]:
        """What was captured of stdout and stderr, after everything that is in the pipes now has been read."""
        with anyio.CancelScope(shield=True):
            await asyncio.get_running_loop().run_in_executor(None, self._stop)
        return self._out.so_far(), self._err.so_far()

    async def cut(self, stem: Path) -> tuple[StreamCapture, StreamCapture]:
        """What was captured since the last cut; what comes later goes to files whose names begin with `stem`."""
        cutting = asyncio.get_running_loop().run_in_executor(None, self._cut, stem)
        with anyio.CancelScope(shield=True):
            await asyncio.wait({cutting})
        return cutting.result()

    def _cut(self, stem: Path) -> tuple[StreamCapture, StreamCapture]:
        self._cut_to = self.stem = stem
        os.write(self._stop_w, b"c")
        return self._cuts.get()

    def discard(self) -> None:
        """Stop, and remove the files."""
        self._stop()
        for one in (self._out, self._err):
            one.path.unlink(missing_ok=True)

    def _stop(self) -> None:
        if self._finished:
            return
        self._finished = True
        self.close_writers()
        os.write(self._stop_w, b"x")
        self._thread.join()
        for one in (self._out, self._err):
            one.close()
        os.close(self._stop_r)
        os.close(self._stop_w)

    def _pump(self) -> None:
        poll = select.poll()
        streams = {one.read_fd: one for one in (self._out, self._err)}
        for fd in (*streams, self._stop_r):
            poll.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._stop_r in ready:
                for one in streams.values():
                    one.drain()
                if os.read(self._stop_r, 1) == b"x":
                    return
                stem = self._cut_to or self.stem
                out = self._out.cut(stem.with_name(f"{stem.name}.out"))
                self._cuts.put((out, self._err.cut(stem.with_name(f"{stem.name}.err"))))
                continue
            for fd in ready:
                if not streams[fd].move():
                    poll.unregister(fd)
