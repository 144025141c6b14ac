"""One running kernel with its client and its captured streams."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import NoSuchKernel

from sandboxmcp.core.errors import KernelError, UsageError
from sandboxmcp.kernels.capture import ItemCapture
from sandboxmcp.kernels.jupyter.connection import SocketFolder
from sandboxmcp.kernels.jupyter.displayed import Displayed
from sandboxmcp.kernels.jupyter.kernelspecs import FORKED, SandboxKernelSpecManager
from sandboxmcp.kernels.jupyter.manager import SandboxKernelManager
from sandboxmcp.kernels.jupyter.provisioner import BwrapProvisioner
from sandboxmcp.kernels.launcher import Item, Launcher
from sandboxmcp.sandbox.usage import threads

_IDLE_TIMEOUT_S = 5.0
_WELCOME_S = 2.0
_NUDGE_S = 0.3
_LAST_WORDS = 4096
_BROKEN = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""What reading a message can raise that a script signed itself: it may hold anything anywhere."""


@dataclass(frozen=True, slots=True)
class KernelPlace:
    """Where kernels start and what they share."""

    launcher: Launcher
    context: zmq.asyncio.Context
    sockets: SocketFolder
    cap: int
    """Bytes kept of each stream."""
    allowed: tuple[str, ...] = ()
    """Kernelspecs of the user's that may be started too."""
    start_timeout_s: float = 30.0


@dataclass(slots=True)
class Reply:
    """What a kernel said of one execution."""

    status: str = ""
    """`ok`, `error` or `aborted`, as in the messaging protocol; empty when it ended without an answer (a crash, a kill)."""
    name: str = ""
    """The exception's class, on error."""
    value: str = ""
    incomplete: bool = False
    """Whether some of what it sent beside its answer never came."""
    messages: int = 0
    """How many came."""
    displayed: Displayed | None = None
    """Where rich results go; None: nobody wants them."""


class LiveKernel:
    """A running kernel, connected, its streams captured."""

    def __init__(self, manager: SandboxKernelManager, client: AsyncKernelClient, item: Item, capture: ItemCapture) -> None:
        self._manager = manager
        self._client = client
        self.item = item
        self.capture = capture
        spec = manager.kernel_spec
        self._threads = 0
        self._foreign = spec is not None and spec.argv[0] != FORKED
        """A kernel of others': its output comes as messages."""

    @classmethod
    async def start(cls, place: KernelPlace, stem: Path, kernel_name: str, mode: str = "script") -> LiveKernel:
        """A kernel ready to execute: one `script`, or a `session` of many. Its streams go to files that begin with `stem`.

        Raises:
            UsageError: there is no kernel of this name, or it is not allowed.
            KernelError: it died, or never answered.
        """
        connection_file = str(place.sockets.path / f"{stem.name}.json")
        specs = SandboxKernelSpecManager(place.allowed)
        manager = SandboxKernelManager(
            kernel_name=kernel_name, kernel_spec_manager=specs, context=place.context, connection_file=connection_file
        )
        capture = ItemCapture(stem.parent, stem.name, place.cap, place.launcher.process.uid)
        manager.launcher, manager.socket_folder, manager.streams = place.launcher, place.sockets, capture.streams
        manager.mode = mode
        try:
            await manager.start_kernel()
            item = manager.provisioner.item if isinstance(manager.provisioner, BwrapProvisioner) else None
            if item is None:
                raise KernelError("the kernel did not start", "Run: sandboxmcp doctor.", place.launcher.process.log)
            client: AsyncKernelClient = manager.client(context=place.context)
            client.start_channels(stdin=False, hb=False, control=False)
            kernel = cls(manager, client, item, capture)
            if not kernel._foreign:
                capture.close_writers()
            await kernel._until_connected(place)
        except NoSuchKernel:
            capture.discard()
            known = ", ".join(specs.find_kernel_specs())
            raise UsageError(f"there is no kernel {kernel_name!r}", f"Use one of: {known}; or allow it in `kernelspecs`.") from None
        except BaseException:
            capture.discard()
            if isinstance(manager.provisioner, BwrapProvisioner):
                await manager.provisioner.kill()
            raise
        return kernel

    async def _until_connected(self, place: KernelPlace) -> None:
        """Wait until our subscription is known to the kernel: what is displayed earlier would be lost."""
        waiting = asyncio.ensure_future(self._nudged() if self._foreign else self._welcomed())
        try:
            await _first(waiting, self.item.ended, timeout_s=place.start_timeout_s)
            if not waiting.done():
                how = "died at its start" if self.item.ended.done() else f"did not answer within {place.start_timeout_s:g} s"
                raise KernelError(f"the kernel {how}", "Run: sandboxmcp doctor.", await self._last_words(place))
        finally:
            waiting.cancel()
        if self._foreign:
            self.item.settled()
        else:
            # As in the guest: the first request takes paths that the later ones find warm; a silent one leaves no trace.
            await self.execute("pass", Reply(), silent=True)
        self._threads = threads(self.item.host_pid)  # looked for now, while nobody waits

    @property
    def has_more_threads(self) -> bool:
        """Whether a script has started threads that still run, or nobody can tell. They go on while the kernel lives."""
        return not self._threads or threads(self.item.host_pid) > self._threads

    async def _welcomed(self) -> None:
        """Ours says so itself (kernels/guest/publishing.py). One that does not in time is nudged, as others are."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WELCOME_S):
                while (await self._client.get_iopub_msg())["header"]["msg_type"] != "iopub_welcome":
                    pass
                return
        await self._nudged()

    async def _nudged(self) -> None:
        """Others are asked for something until an answer comes over the subscription too."""
        while True:
            self._client.kernel_info()
            with contextlib.suppress(Empty, *_BROKEN):
                await self._client.get_shell_msg(timeout=_NUDGE_S)
                await self._client.get_iopub_msg(timeout=_NUDGE_S)
                return

    async def _last_words(self, place: KernelPlace) -> str:
        """What a kernel that did not start wrote: its own stderr, or the launcher's before it had one."""
        await self.item.killed()
        _, stderr = await self.capture.finish()
        return stderr.path.read_bytes()[-_LAST_WORDS:].decode(errors="replace") or place.launcher.process.log

    async def execute(self, code: str, reply: Reply, *, silent: bool = False) -> None:
        """Run one script to its end, filling in `reply`: what was displayed is there even when we are cancelled."""
        message_id = self._client.execute(code, silent=silent, store_history=False, allow_stdin=False)
        answer = asyncio.ensure_future(self._answer(message_id))
        outputs = asyncio.ensure_future(self._outputs(message_id, reply))
        try:
            await _first(answer, self.item.ended)
            if not answer.done():
                return
            content = answer.result()
            reply.incomplete = not await self._until_idle(outputs, reply)
        finally:
            answer.cancel()
            outputs.cancel()
        reply.status = str(content.get("status", "error"))
        reply.name, reply.value = str(content.get("ename", "")), str(content.get("evalue", ""))

    async def _until_idle(self, outputs: asyncio.Future[None], reply: Reply) -> bool:
        """Wait for the last message of an execution as long as others come, and say whether it came."""
        while not outputs.done() and not self.item.ended.done():
            before = reply.messages
            await _first(outputs, self.item.ended, timeout_s=_IDLE_TIMEOUT_S)
            if reply.messages == before:
                break
        return outputs.done()

    async def answers(self, timeout_s: float) -> bool:
        """Whether the kernel answers a question within a time: false while it is busy."""
        return await self.evaluate("1", timeout_s) is not None

    async def evaluate(self, expression: str, timeout_s: float = 2.0) -> str | None:
        """The text of an expression's value, asked for without a trace; None when no answer comes in time."""
        message_id = self._client.execute("", silent=True, store_history=False, user_expressions={"it": expression})
        try:
            async with asyncio.timeout(timeout_s):
                content = await self._answer(message_id)
        except TimeoutError:
            return None
        with contextlib.suppress(*_BROKEN):
            return str(content["user_expressions"]["it"]["data"]["text/plain"])
        return ""

    async def complete(self, code: str, cursor: int, timeout_s: float) -> dict[str, Any]:
        """What could stand at the cursor, as in a complete_reply of the messaging protocol; empty when no answer comes in time."""
        return await self._asked(self._client.complete(code, cursor), "complete_reply", timeout_s)

    async def inspect(self, code: str, cursor: int, detail: int, timeout_s: float) -> dict[str, Any]:
        """What the kernel knows of the name at the cursor, as in an inspect_reply; `detail` 1 asks for its source too."""
        return await self._asked(self._client.inspect(code, cursor, detail), "inspect_reply", timeout_s)

    async def _asked(self, message_id: str, kind: str, timeout_s: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._answer(message_id, kind)
        except TimeoutError:
            return {}

    @property
    def connection(self) -> dict[str, Any]:
        """What a connection file of this kernel holds."""
        info = self._manager.get_connection_info()
        return {**info, "key": self._manager.session.key.decode(), "kernel_name": self._manager.kernel_name}

    async def _answer(self, message_id: str, kind: str = "execute_reply") -> dict[str, Any]:
        while True:
            with contextlib.suppress(*_BROKEN):  # a forged or broken message is no answer
                message = await self._client.get_shell_msg()
                if message["parent_header"].get("msg_id") == message_id and message["header"]["msg_type"] == kind:
                    return dict(message["content"])

    async def _outputs(self, message_id: str, reply: Reply) -> None:
        while True:
            with contextlib.suppress(*_BROKEN):
                message = await self._client.get_iopub_msg()
                if message["parent_header"].get("msg_id") != message_id:
                    continue
                reply.messages += 1
                content = message["content"]
                if message["header"]["msg_type"] == "status" and content["execution_state"] == "idle":
                    return
                self._take(message["header"]["msg_type"], content, reply)

    def _take(self, kind: str, content: dict[str, Any], reply: Reply) -> None:
        if kind in ("display_data", "update_display_data", "execute_result"):
            if self._foreign and (text := content["data"].get("text/plain")):
                self.capture.write(text + "\n")
            if reply.displayed is not None:
                reply.displayed.keep(content["data"])
        elif self._foreign and kind == "stream":
            self.capture.write(content["text"], to_stderr=content["name"] == "stderr")
        elif self._foreign and kind == "error":
            self.capture.write("\n".join(content["traceback"]) + "\n", to_stderr=True)

    async def forget(self) -> None:
        """Kill the kernel with all it started, and give up its client and its addresses.

        The capture stays for its owner to finish.
        """
        await self.item.killed()
        self._client.stop_channels()
        await self._manager.cleanup_resources()


async def _first(*futures: asyncio.Future[Any], timeout_s: float | None = None) -> None:
    """Wait until one of them is done, or the time is up."""
    await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
