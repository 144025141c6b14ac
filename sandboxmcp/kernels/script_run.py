"""One script under way, and how its end is read: from the kernel's answer, else from its process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.core.model import Outcome, Script, Status, StreamCapture
from sandboxmcp.core.reasons import Reason
from sandboxmcp.kernels.capture import ItemCapture
from sandboxmcp.kernels.jupyter.displayed import Displayed
from sandboxmcp.kernels.jupyter.live_kernel import LiveKernel, Reply
from sandboxmcp.kernels.launcher import Item

HEED_S = 3.0
"""How long what is interrupted may take to heed it before it is ended."""
_LONG_BITS = 64
"""Of a C long: a number of more ends the interpreter with -1."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A script whose turn has come, for whoever wants to follow it."""

    stem: Path
    """What the names of its stream files begin with: `.out` and `.err` grow while it runs."""
    interrupt: Callable[[], None]
    """Sends it what Ctrl-C would."""


class Running:
    """A script under way."""

    def __init__(self, script: Script, item: Item, capture: ItemCapture, kernel: LiveKernel | None, prelude: str = "") -> None:
        """`prelude` is run before the script, unseen."""
        self._script = script
        self.item = item
        self._capture = capture
        self.kernel = kernel
        self._prelude = prelude
        self.folder = ""
        """A folder inside that is the script's own; to be removed after it."""
        self.opened_since = 0
        """When it began, as the masked copies count (sandbox/workspace/masked_copies.py)."""
        self._ending: asyncio.TimerHandle | None = None
        self._displayed = Displayed(capture.stem)
        self._reply = Reply(displayed=self._displayed)
        self.begun = Begun(capture.stem, self._interrupt)
        self.out_of_memory = 0
        """Processes that the system had killed for memory in its sandbox before it began."""
        self.with_room: Callable[[Outcome, str], Outcome] = lambda outcome, _: outcome
        """Gives the outcome with what a full disk lost of it, once it has ended (kernels/room.py)."""

    def _interrupt(self) -> None:
        """Ctrl-C: one that does not heed it is ended a little later, as a named kernel is."""
        self.item.signal(signal.SIGINT)
        self._ending = asyncio.get_running_loop().call_later(
            HEED_S, self.item.kill, Reason("interrupt_unheeded", {"waited_s": HEED_S})
        )

    async def finished(self) -> None:
        """Wait until the script has ended by itself."""
        if self.kernel is not None:
            await execute_both(self.kernel, self._prelude, self._script.code, self._reply)
        else:
            await asyncio.shield(self.item.ended)

    @property
    def over(self) -> bool:
        """Whether it has ended by itself, as far as it says."""
        return bool(self._reply.status) or self.item.ended.done()

    async def outcome(self, status: Status | None, wall_s: float) -> Outcome:
        """What became of the item; `status` when it did not end by itself. Nothing that it started is left then.

        A kernel that has answered has ended its children itself; its own end is waited for only where the script left threads.
        """
        if self._reply.status and self.kernel is not None and not self.kernel.has_more_threads:
            self.item.kill()
        else:
            await self.item.killed()
        out, err = await self._capture.finish()
        if self._ending is not None:
            self._ending.cancel()
        exit_code, why = None, None
        if status is None:
            status, exit_code, why = end_of(self._reply, self.item)
        elif status == "timeout":
            why = Reason("timeout", {"timeout_s": self._script.timeout_s}, "raise_timeout")
        lost = lost_of(self._displayed, out, err)
        reasons = (*((why,) if why else ()), *not_kept(self._reply), *lost)
        status = with_losses(status, lost)
        return Outcome(self._script, status, exit_code, wall_s, out, err, tuple(self._displayed.artifacts), reasons)


async def execute_both(kernel: LiveKernel, prelude: str, code: str, reply: Reply) -> None:
    """Run a script after what prepares it. A preparation that fails is the script's failure: what it wrote is on its stderr."""
    if prelude:
        prepared = Reply()
        await kernel.execute(prelude, prepared, silent=True)
        if prepared.status != "ok":
            reply.status, reply.name, reply.value = prepared.status, prepared.name, prepared.value
            return
    await kernel.execute(code, reply)


def not_kept(reply: Reply) -> list[Reason]:
    """What became of displayed results beyond a cap."""
    shown = reply.displayed
    found = []
    if shown is not None and shown.dropped:
        found.append(Reason("results_dropped", {"dropped": shown.dropped, "kept": len(shown.artifacts)}))
    return [*found, Reason("results_incomplete")] if reply.incomplete else found


def lost_of(displayed: Displayed, *streams: StreamCapture) -> list[Reason]:
    """How much of what a script displayed and printed could not be written down, and why."""
    found = [Reason("results_lost", {"lost": displayed.lost, "trouble": displayed.trouble})] if displayed.lost else []
    lost = [one for one in streams if one.trouble]
    size = sum(one.lost for one in lost)
    return [*found, Reason("output_lost", {"bytes": size, "trouble": lost[0].trouble})] if lost else found


def with_losses(status: Status, lost: Sequence[Reason]) -> Status:
    """The status of a run of which something was lost: it is never `ok`, since what is there is not all."""
    return "failed" if lost and status == "ok" else status


def end_of(reply: Reply, item: Item) -> tuple[Status, int | None, Reason | None]:
    """Status, exit code and reason of a script that is over: from the kernel's answer, else from how its process ended."""
    code = item.ended.result() if item.ended.done() else None
    if reply.status:
        if reply.status == "ok":
            return "ok", 0, None
        exit_code = _system_exit_code(reply.value) if reply.name == "SystemExit" else 1
        return ("ok", 0, None) if exit_code == 0 else ("failed", exit_code, None)
    if code in (None, -signal.SIGKILL) and item.why:
        return "killed", None, item.why
    if code is None:
        return "killed", None, Reason("sandbox_ended")
    if code == -signal.SIGKILL:
        return "killed", None, Reason("sigkill")
    if code < 0:
        with contextlib.suppress(ValueError):
            return "failed", 128 - code, Reason("signal", {"signal": signal.Signals(-code).name})
    return ("ok", 0, None) if code == 0 else ("failed", code if code >= 0 else 128 - code, None)


def _system_exit_code(value: str) -> int:
    """As the interpreter has it: nothing is 0, a number is itself (its low byte), any other thing is 1."""
    if value in ("", "None"):
        return 0
    try:
        number = int(value)
    except ValueError:
        return 1
    return number & 0xFF if number.bit_length() < _LONG_BITS else 255
