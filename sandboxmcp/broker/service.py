"""The broker's service for one sandbox: it takes the shims' connections, each served by a thread of its own.

The socket was made listening inside the sandbox and passed out (see kernels/guest/launcher.py), so no socket of the host's is
visible inside, and none of the sandbox's items can put itself in its place.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from typing import Any

from sandboxmcp.broker.broker import Broker
from sandboxmcp.broker.curl_run import Fetching, Result, exit_code
from sandboxmcp.broker.frames import Broken, Shim, TooLong
from sandboxmcp.broker.program_run import ProgramRun
from sandboxmcp.broker.url_fetch import Engine
from sandboxmcp.policy.programs.brokered_programs import Brokered, read_fetch, read_program
from sandboxmcp.policy.programs.order import Refusal

_MOST_CONNECTIONS = 256
_REFUSED = 2


class Service:
    """Serves one listening socket until closed."""

    def __init__(self, broker: Broker, listener: socket.socket) -> None:
        self._broker = broker
        self._listener = listener
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._room = threading.Semaphore(_MOST_CONNECTIONS)
        self._threads: set[threading.Thread] = set()
        self._closed = False
        self._acceptor = threading.Thread(target=self._accept, daemon=True, name="sandboxmcp-broker")
        self._acceptor.start()

    def stop(self) -> None:
        """Take no more requests and let go of those that there are; returns at once."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        for one in (self._listener, *connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop, and return when nothing of any request is left. Safe to call twice."""
        self.stop()
        with self._lock:
            threads = list(self._threads)
        for thread in (self._acceptor, *threads):
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            self._room.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True, name="sandboxmcp-request")
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._connections.add(connection)
                self._threads.add(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(Broken):
                self._answer(Shim(connection))
        except Exception as error:  # whatever one request comes to, the others go on
            print(f"sandboxmcp: a brokered request failed: {error!r}", file=sys.stderr)
        finally:
            with self._lock:
                self._connections.discard(connection)
                self._threads.discard(threading.current_thread())
            self._room.release()

    def _answer(self, shim: Shim) -> None:
        try:
            fields = shim.request()
        except TooLong:
            shim.finish(_REFUSED, err="sandbox: the arguments are too long\n")
            return
        request = _Request(self._broker, shim, fields)
        result = request.carried_out()
        if result is None:
            shim.step_aside()
        else:
            shim.finish(result.code, result.out, result.err)


class _Request:
    """One call of a shim, from its first frame to its line in the log."""

    def __init__(self, broker: Broker, shim: Shim, fields: list[bytes]) -> None:
        self._broker = broker
        self._shim = shim
        self._fields = fields
        self._name = fields[0].decode(errors="replace")[:64]
        self._shape = ""

    def carried_out(self) -> Result | None:
        """The result, in the log already; None when the program is to be run inside.

        Raises:
            Broken: the shim is gone. That is in the log too.
        """
        started = time.monotonic()
        result = Result(code=_REFUSED)
        try:
            self._broker.audit.open()
            with self._broker.turns:
                carried = self._carry_out()
            if carried is None:
                return None
            result = carried
        except OSError as error:
            result.refusal = f"the log of requests cannot be written: {error.strerror}"
            result.err = f"{self._name}: (sandbox) {result.refusal}\n"
            return result
        except Refusal as refusal:
            result = Result(
                code=exit_code(self._name, refusal.code), err=f"{self._name}: (sandbox) {refusal}\n", refusal=str(refusal)
            )
        except Broken:
            self._log(Result(code=-1, refusal=""), started, "the shim ended first")
            raise
        self._log(result, started)
        return result

    def _carry_out(self) -> Result | None:
        if self._shim.gone():
            raise Broken("the shim is gone")
        try:
            name, stdout, stderr, *argv = [field.decode() for field in self._fields]
        except ValueError:
            raise Refusal("the arguments are not UTF-8") from None
        program = self._broker.programs.get(name)
        if program is None:
            raise Refusal(f"{name[:64]!r} is not brokered here: the policy packs in force allow {self._known()}")
        return self._fetch(program, argv, stdout, stderr) if program.fetches else self._run(program, argv)

    def _known(self) -> str:
        return ", ".join(sorted(self._broker.programs)) or "nothing"

    def _fetch(self, program: Brokered, argv: list[str], stdout: str, stderr: str) -> Result:
        order = read_fetch(program, argv, stdout, stderr)
        self._shape = order.shape
        engine = Engine(self._broker.box, self._broker.gate, program.hosts, self._broker.spares)
        return Fetching(program.program, self._shim, engine, self._broker.gate).run(order)

    def _run(self, program: Brokered, argv: list[str]) -> Result | None:
        order = read_program(program, argv)
        if order is None:
            return None
        self._shape = order.shape
        run = ProgramRun(program, self._shim, self._broker.box, self._broker.gate, self._broker.interpreter)
        return run.run(order, self._broker.environment)

    def _log(self, result: Result, started: float, note: str = "") -> None:
        facts: dict[str, Any] = {
            "session": self._broker.session,
            "program": self._name,
            "shape": self._shape,
            "hosts": result.hosts,
            "verdict": "deny" if result.refusal else "allow",
            "reason": result.refusal or note,
            "exit_code": result.code,
            "bytes_on_the_wire": result.passed,
            "bytes_written": result.written,
            "seconds": round(time.monotonic() - started, 3),
        }
        self._broker.audit.add("broker", facts)
