"""A program with shapes, run in its box: no project, no network but the relay's tunnel, results unpacked inside the sandbox."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import secrets
import select
import shutil
import socket
import stat
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from sandboxmcp.broker.box import Box
from sandboxmcp.broker.curl_run import Result
from sandboxmcp.broker.frames import Broken, Shim
from sandboxmcp.broker.gate import Gate
from sandboxmcp.broker.output import not_a_file
from sandboxmcp.broker.proxy_handshake import http_connect
from sandboxmcp.broker.relay import Relay
from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.text import in_gib
from sandboxmcp.policy.programs.brokered_programs import Brokered
from sandboxmcp.policy.programs.order import Refusal
from sandboxmcp.policy.programs.shapes import INPUTS, RESULTS, ProgramOrder
from sandboxmcp.sandbox.bwrap import GUEST, Bind
from sandboxmcp.sandbox.cgroup import make_control_group
from sandboxmcp.sandbox.installations import Interpreter
from sandboxmcp.sandbox.process import SandboxProcess, start_sandbox
from sandboxmcp.sandbox.usage import memory_of, page_tables, tree

_MOST_INPUT = 1 << 20
_PIECE = 1 << 20
_NO_CONNECTION, _TOO_SLOW, _KILLED = 7, 28, 137
_START_S = 20.0
_THOROUGHLY_EVERY = 10
_NAMES_ENCODING = re.compile(r"coding[:=]")
_PERIOD_S = 0.1
"""Memory is looked at so often, where no control group holds it."""


class ProgramRun:
    """One order under way."""

    def __init__(self, program: Brokered, shim: Shim, box: Box, gate: Gate, interpreter: Interpreter) -> None:
        self._program = program
        self._shim = shim
        self._box = box
        self._gate = gate
        self._interpreter = interpreter

    def run(self, order: ProgramOrder, server_environment: Mapping[str, str]) -> Result:
        """Run it to its end. Its output goes where the script's goes.

        Raises:
            Refusal: an input cannot be read, or there is nothing left of the budget.
            Broken: the shim is gone; nothing is left running.
        """
        if why := self._gate.budget.begin():
            raise Refusal(why, _NO_CONNECTION)
        with contextlib.ExitStack() as held:
            inputs = self._inputs(order)
            streams = self._streams(order, held)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            held.enter_context(ours)
            process = self._start(server_environment, self._folder_of(inputs, held), theirs, streams)
            try:
                return self._serve(order, process, ours)
            finally:
                process.end()

    def _inputs(self, order: ProgramOrder) -> dict[str, bytes]:
        """What the script's files hold, read once, a megabyte at most."""
        found: dict[str, bytes] = {}
        for inside, path in order.inputs.items():
            try:
                _, (fd,) = self._shim.ask("input", path, descriptors=1)
            except OSError as error:
                raise Refusal(f"cannot read {path[:200]}: {error}") from None
            with os.fdopen(fd, "rb", buffering=0) as file:
                if problem := not_a_file(fd):
                    raise Refusal(f"cannot read {path[:200]}: {problem}")
                content = file.read(_MOST_INPUT + 1) or b""
            if len(content) > _MOST_INPUT:
                raise Refusal(f"cannot read {path[:200]}: it has more than {_MOST_INPUT:,} bytes")
            if problem := _input_problem(content, order.input_line):
                raise Refusal(f"cannot pass {path[:200]} on: {problem}")
            found[inside] = content
        return found

    def _folder_of(self, inputs: Mapping[str, bytes], held: contextlib.ExitStack) -> Path | None:
        """A folder of ours with the inputs in it, for as long as the box runs."""
        if not inputs:
            return None
        folder = self._box.folder / f"inputs-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o755)
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        for inside, content in inputs.items():
            (folder / Path(inside).name).write_bytes(content)
        return folder

    def _streams(self, order: ProgramOrder, held: contextlib.ExitStack) -> tuple[int, int, int]:
        try:
            _, fds = self._shim.ask("streams", descriptors=3)
        except OSError as error:
            raise Broken(str(error)) from None
        for fd in fds:
            held.callback(os.close, fd)
            if stat.S_ISDIR(os.fstat(fd).st_mode) or stat.S_ISBLK(os.fstat(fd).st_mode):
                raise Refusal("a standard stream is no file, pipe or device of characters")
        stdin, stdout, stderr = fds
        return stdin, stdout, stderr

    def _start(
        self,
        server_environment: Mapping[str, str],
        inputs: Path | None,
        control: socket.socket,
        streams: tuple[int, int, int],
    ) -> SandboxProcess:
        seen = {name: server_environment[name] for name in self._program.environment if name in server_environment}
        profile = self._box.profile(None, {**seen, **self._program.fixed}, self._gate.budget.allowance.size)
        guest = Bind(str(data_folder("kernels") / "guest"), GUEST)
        profile = replace(profile, binds=(*profile.binds, guest, *([Bind(str(inputs), INPUTS)] if inputs else [])))
        command = [self._interpreter.executable, "-I", "-S", f"{GUEST}/box.py", str(control.fileno())]
        group = make_control_group(self._box.limits.memory, self._box.limits.processes)
        try:
            return start_sandbox(profile, command, [control], group, streams)
        except SandboxUnavailable as error:
            raise Refusal(f"its box did not start: {error}", _NO_CONNECTION) from None
        finally:
            control.close()

    def _serve(self, order: ProgramOrder, process: SandboxProcess, control: socket.socket) -> Result:
        allowance = self._gate.budget.allowance
        archive_r, archive_w = os.pipe2(os.O_CLOEXEC) if order.results is not None else (-1, -1)
        message = {
            "argv": [*self._program.run, *order.argv],
            "limits": self._box.limits.named,
            "environment": {},
            "results": RESULTS if order.results is not None else "",
            "lines": list(order.streams),
        }
        try:
            socket.send_fds(control, [json.dumps(message).encode()], [archive_w] if archive_w >= 0 else [])
        finally:
            if archive_w >= 0:
                os.close(archive_w)
        relay = Relay(_listener(control), http_connect, self._gate, self._program.hosts, allowance.size)
        result = Result()
        try:
            self._pump(order, process, archive_r, result)
        finally:
            relay.close()
            if archive_r >= 0:
                os.close(archive_r)
            result.hosts, result.passed = list(dict.fromkeys(relay.hosts)), relay.passed
        if relay.refusals and result.code:
            result.refusal = relay.refusals[-1]
            result.err += f"{self._program.program}: (sandbox) {result.refusal}\n"
        return result

    def _pump(self, order: ProgramOrder, process: SandboxProcess, archive: int, result: Result) -> None:
        """Wait for the end, passing results on as they come."""
        allowance = self._gate.budget.allowance
        deadline = time.monotonic() + allowance.time_s
        sink = -1
        ended = os.pidfd_open(process.init_pid) if process.init_pid else -1
        rounds = 0
        try:
            while True:
                watched = [self._shim.fileno(), *([ended] if archive < 0 else [archive])]
                left = deadline - time.monotonic()
                readable, _, _ = select.select(watched, [], [], min(_PERIOD_S, max(0.0, left)))
                rounds += 1
                if why := self._too_large(process, thoroughly=rounds % _THOROUGHLY_EVERY == 0):
                    result.code, result.err = _KILLED, f"{self._program.program}: (sandbox) {why}\n"
                    return
                if not readable and left > 0:
                    continue
                if not readable:
                    result.code, result.err = (
                        _TOO_SLOW,
                        f"{self._program.program}: (sandbox) it took more than {allowance.time_s:g} s\n",
                    )
                    return
                if self._shim.fileno() in readable:
                    raise Broken("the shim is gone")
                if archive >= 0:
                    piece = os.read(archive, _PIECE)
                    if piece:
                        sink = sink if sink >= 0 else self._unpacker(order.results or ".")
                        result.written += _write_all(sink, piece)
                        continue
                break
            code = process.wait(30.0)
            result.code = code if code >= 0 else 128 - code
            if sink >= 0:
                os.close(sink)
                sink = -1
                self._shim.ask("unpacked")
        except OSError as error:
            result.code, result.err = 1, f"{self._program.program}: (sandbox) the results could not be unpacked: {error}\n"
        finally:
            for fd in (sink, ended):
                if fd >= 0:
                    os.close(fd)

    def _too_large(self, process: SandboxProcess, *, thoroughly: bool) -> str:
        """Why it must end; empty while its memory is within the limit, or a control group sees to that.

        `thoroughly`: files without a name count too, which no process need have mapped.
        """
        if process.init_pid is None or process.group is not None:
            return ""
        limit, processes = self._box.limits.memory, list(tree(process.init_pid))
        if not thoroughly and sum(one.resident + page_tables(one.pid) for one in processes) <= limit:
            return ""
        if sum(memory_of(one.pid, with_files=True) for one in processes) <= limit:
            return ""
        return f"it took more memory than {in_gib(limit)}; raise limits.memory"

    def _unpacker(self, folder: str) -> int:
        _, (fd,) = self._shim.ask("unpack", folder, descriptors=1)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError("the shim passed no pipe")
        return fd


def _listener(control: socket.socket) -> socket.socket:
    """The listening socket that the box has made: its address is in the box, its connections are ours."""
    ready, _, _ = select.select([control], [], [], _START_S)
    said: bytes = b""
    fds: list[int] = []
    if ready:
        said, fds, _, _ = socket.recv_fds(control, 64, 1, socket.MSG_CMSG_CLOEXEC)
    if said != b"listening" or len(fds) != 1:
        for fd in fds:
            os.close(fd)
        raise Refusal("its box did not start", _NO_CONNECTION)
    return socket.socket(fileno=fds[0])


def _input_problem(content: bytes, pattern: str) -> str:
    """What is wrong with a file of the script's; empty when every line is of the form that its shape allows."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    if content.startswith(codecs.BOM_UTF8) or any(map(_NAMES_ENCODING.search, lines[:2])):
        return "it names an encoding, by which its reader would find other lines in it (PEP 263)"
    for number, line in enumerate(lines, 1):
        if not re.fullmatch(pattern, line):
            return f"line {number} is not of a form that is allowed: {line[:80]!r}"
    return ""


def _write_all(fd: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return len(data)
