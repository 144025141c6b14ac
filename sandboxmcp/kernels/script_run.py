"""One script under way, and how its end is read: from the kernel's answer, else from its process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.core.model import Outcome, Script, Status, StreamCapture
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
            HEED_S, self.item.kill, f"it did not heed an interrupt for {HEED_S:g} s"
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
        exit_code, reasons = None, []
        if status is None:
            status, exit_code, reason = end_of(self._reply, self.item)
            reasons = [reason]
        elif status == "timeout":
            reasons = [f"timed out after {self._script.timeout_s:g} s; raise timeout_s, or run less"]
        lost = lost_of(self._displayed, out, err)
        reasons += [*not_kept(self._reply), *lost]
        status = with_losses(status, lost)
        reason = "; ".join(filter(None, reasons))
        return Outcome(self._script, status, exit_code, wall_s, out, err, tuple(self._displayed.artifacts), reason)


async def execute_both(kernel: LiveKernel, prelude: str, code: str, reply: Reply) -> None:
    """Run a script after what prepares it. A preparation that fails is the script's failure: what it wrote is on its stderr."""
    if prelude:
        prepared = Reply()
        await kernel.execute(prelude, prepared, silent=True)
        if prepared.status != "ok":
            reply.status, reply.name, reply.value = prepared.status, prepared.name, prepared.value
            return
    await kernel.execute(code, reply)


def not_kept(reply: Reply) -> list[str]:
    """What became of displayed results beyond a cap, each in a sentence's part."""
    shown = reply.displayed
    dropped = shown is not None and shown.dropped and f"{shown.dropped} displayed results beyond the first {len(shown.artifacts)}"
    parts = [f"{dropped} were not kept"] if dropped else []
    return [*parts, "what it displayed last did not come, or not whole; save it to a file instead"] if reply.incomplete else parts


def lost_of(displayed: Displayed, *streams: StreamCapture) -> list[str]:
    """How much of what a script displayed and printed could not be written down, and why, each in a sentence's part."""
    parts = [f"{displayed.lost} displayed results were lost: {displayed.trouble}"] if displayed.lost else []
    lost = [one for one in streams if one.trouble]
    size = sum(one.lost for one in lost)
    return [*parts, f"{size:,} B of output were lost: {lost[0].trouble}"] if lost else parts


def with_losses(status: Status, lost: Sequence[str]) -> Status:
    """The status of a run of which something was lost: it is never `ok`, since what is there is not all."""
    return "failed" if lost and status == "ok" else status


def end_of(reply: Reply, item: Item) -> tuple[Status, int | None, str]:
    """Status, exit code and reason of a script that is over: from the kernel's answer, else from how its process ended."""
    code = item.ended.result() if item.ended.done() else None
    if reply.status:
        if reply.status == "ok":
            return "ok", 0, ""
        exit_code = _system_exit_code(reply.value) if reply.name == "SystemExit" else 1
        return ("ok", 0, "") if exit_code == 0 else ("failed", exit_code, "")
    if code in (None, -signal.SIGKILL) and item.why:
        return "killed", None, f"killed: {item.why}"
    if code is None:
        return "killed", None, "the sandbox ended under it; a script may have killed its launcher"
    if code == -signal.SIGKILL:
        return "killed", None, "killed by SIGKILL: by itself, by another script of this sandbox, or for memory"
    if code < 0:
        with contextlib.suppress(ValueError):
            return "failed", 128 - code, f"ended by {signal.Signals(-code).name}"
    return ("ok", 0, "") if code == 0 else ("failed", code if code >= 0 else 128 - code, "")


def _system_exit_code(value: str) -> int:
    """As the interpreter has it: nothing is 0, a number is itself (its low byte), any other thing is 1."""
    if value in ("", "None"):
        return 0
    try:
        number = int(value)
    except ValueError:
        return 1
    return number & 0xFF if number.bit_length() < _LONG_BITS else 255
