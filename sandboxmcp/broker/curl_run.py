"""An order of curl or wget carried out: every output looked at first, then each URL in turn, with retries, and one exit code."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass, field

from sandboxmcp.broker.frames import Broken, Shim
from sandboxmcp.broker.gate import Gate
from sandboxmcp.broker.output import WRITE_ERROR, Output
from sandboxmcp.broker.url_fetch import Engine, Fetched, Limits
from sandboxmcp.policy.programs.order import Download, FetchOrder, Refusal
from sandboxmcp.policy.programs.urls import host_of

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""What curl(1) calls transient."""
_TIMED_OUT, _NO_CONNECTION, _NO_HOST, _HTTP_ERROR = 28, 7, 6, 22
_MOST_WAIT_S = 60.0
_OF_WGET = {6: 4, 7: 4, 28: 4, 97: 4, 35: 5, 60: 5, 22: 8, 47: 8, 3: 1, 23: 3}
"""curl's exit codes as wget's own (wget(1), EXIT STATUS)."""


@dataclass(slots=True)
class Result:
    """What the shim ends with, and what the log is told."""

    code: int = 0
    out: str = ""
    err: str = ""
    hosts: list[str] = field(default_factory=list)
    passed: int = 0
    written: int = 0
    refusal: str = ""
    """Of the rules or the budget; empty when the request was let out, whatever became of it."""


def exit_code(program: str, code: int) -> int:
    """An exit code of curl's as the program's own."""
    return _OF_WGET.get(code, code if code <= 2 else 1) if program == "wget" else code


class Fetching:
    """One order under way."""

    def __init__(self, program: str, shim: Shim, engine: Engine, gate: Gate) -> None:
        self._program = program
        self._shim = shim
        self._engine = engine
        self._gate = gate
        self._result = Result()

    def run(self, order: FetchOrder) -> Result:
        """Fetch everything.

        Raises:
            Broken: the shim is gone.
        """
        result = self._result
        result.hosts = [host_of(download.url) for download in order.downloads]
        outputs: list[Output] = []
        try:
            places = [(one, Output(self._shim, one.output, order.existing, order.create_folders)) for one in order.downloads]
            outputs += [output for _, output in places]
            wanted = [(download, output) for download, output in places if not output.check()]
            if order.headers_to is not None:
                outputs.append(Output(self._shim, order.headers_to, "replace", order.create_folders))
                outputs[-1].check()
            for download, output in wanted:
                self._one(order, download, output, outputs[-1] if order.headers_to is not None else None)
        except Refusal as refusal:
            self._say(refusal.code, str(refusal), always=True, show=True)
            result.refusal = str(refusal)
        finally:
            for output in outputs:
                result.written += output.written
                output.close()
        result.code = exit_code(self._program, result.code)
        return result

    def _one(self, order: FetchOrder, download: Download, output: Output, headers: Output | None) -> None:
        fetched = self._with_retries(order, download, output)
        self._result.out += fetched.write_out if order.write_out is not None else ""
        if fetched.code == 0:
            self._leave_empty_file(output, order)
        elif order.remove_on_error:
            output.remove()
        if headers is not None and (fetched.headers or fetched.code == 0):
            os.write(headers.open(), fetched.headers)
        if fetched.code:
            self._say(fetched.code, fetched.said, always=fetched.by_us, show=order.show_errors)
            if fetched.by_us:
                self._result.refusal = fetched.said

    def _leave_empty_file(self, output: Output, order: FetchOrder) -> None:
        """A body without bytes still makes the file; with -f, an HTTP error does not come here."""
        if not output.written and not (order.fail and order.head):
            output.open()

    def _with_retries(self, order: FetchOrder, download: Download, output: Output) -> Fetched:
        started = time.monotonic()
        left = min(self._gate.budget.allowance.time_s, order.max_seconds or float("inf"))
        for attempt in range(order.retries.count + 1):
            if why := self._gate.budget.begin():
                return Fetched(_NO_CONNECTION, why, by_us=True)
            limits = Limits(min(self._gate.budget.allowance.size, order.max_bytes or 1 << 62), max(0.1, left))
            fetched = self._engine.fetch(self._shim, order, download, output, limits)
            self._result.passed += fetched.passed
            self._result.hosts += [host for host in fetched.hosts if host not in self._result.hosts]
            left -= time.monotonic() - started
            delay = order.retries.delay_s if order.retries.delay_s is not None else float(1 << min(attempt, 6))
            over = time.monotonic() - started + delay > min(order.retries.within_s or _MOST_WAIT_S, left)
            if attempt == order.retries.count or over or not self._again(order, fetched):
                return fetched
            if self._gone_within(delay):
                raise Broken("the shim is gone")
            output.start_over()
        raise AssertionError("the last attempt returns")

    @staticmethod
    def _again(order: FetchOrder, fetched: Fetched) -> bool:
        if fetched.by_us or fetched.code == WRITE_ERROR:
            return False
        if fetched.status in _AGAIN or fetched.code in (_TIMED_OUT, _NO_HOST):
            return True
        return bool(fetched.code) and (order.retries.any_error or (order.retries.refused_too and fetched.code == _NO_CONNECTION))

    def _gone_within(self, seconds: float) -> bool:
        return bool(select.select([self._shim.fileno()], [], [], seconds)[0])

    def _say(self, code: int, what: str, *, always: bool, show: bool) -> None:
        self._result.code = code
        if always:
            self._result.err += f"{self._program}: (sandbox) {what}\n"
        elif show and what:
            self._result.err += what.replace("curl: ", f"{self._program}: ") + "\n"
