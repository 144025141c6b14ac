"""A kernel manager that cannot start anything outside the sandbox, and one kernel with its client and its capture."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory

from sandboxmcp.core.errors import KernelError, UsageError
from sandboxmcp.core.model import Artifact
from sandboxmcp.kernels.capture import ItemCapture
from sandboxmcp.kernels.connection import SocketFolder
from sandboxmcp.kernels.launcher import Item, Launcher
from sandboxmcp.kernels.provisioner import BwrapProvisioner
from sandboxmcp.kernels.specs import PREFIX, PROVISIONER, SandboxKernelSpecManager, kernel_languages

_START_TIMEOUT_S = 30.0
_IDLE_TIMEOUT_S = 5.0
_MOST_ARTIFACTS = 64
_LARGEST_MESSAGE = 128 << 20
_TEXT = "text/plain"


class SandboxKernelManager(AsyncKernelManager):
    """jupyter_client's manager with our kernelspecs, and a check that the provisioner is ours.

    The check is not redundant: a kernelspec without a provisioner stanza gets the factory's default, which starts a
    process on the host (verified). The default is set to ours, and what comes out is looked at.
    """

    launcher: Launcher | None = None
    socket_folder: SocketFolder | None = None
    streams: tuple[int, int] | None = None
    mode = "script"

    def __init__(self, **kwargs: Any) -> None:
        KernelProvisionerFactory.instance().default_provisioner_name = PROVISIONER
        kwargs.setdefault("kernel_spec_manager", SandboxKernelSpecManager())
        super().__init__(**kwargs)

    async def _async_launch_kernel(self, kernel_cmd: list[str], **kw: Any) -> None:
        if not isinstance(self.provisioner, BwrapProvisioner):
            raise KernelError(
                f"{type(self.provisioner).__name__} would start this kernel outside the sandbox", "Use a shipped kernel."
            )
        await super()._async_launch_kernel(kernel_cmd, **kw)


@dataclass(slots=True)
class Reply:
    """What a kernel said of one execution."""

    status: str = ""
    """`ok`, `error` or `aborted`, as in the messaging protocol; empty when it ended without an answer (a crash, a kill)."""
    name: str = ""
    """The exception's class, on error."""
    value: str = ""
    artifacts: list[Artifact] = field(default_factory=list)
    dropped: int = 0
    """Displayed things beyond the cap on artifacts."""


class LiveKernel:
    """A running kernel, connected, its streams captured."""

    def __init__(
        self, manager: SandboxKernelManager, client: AsyncKernelClient, item: Item, capture: ItemCapture, stem: Path
    ) -> None:
        self._manager = manager
        self._client = client
        self.item = item
        self.capture = capture
        self._stem = stem

    @classmethod
    async def start(
        cls, launcher: Launcher, context: zmq.asyncio.Context, sockets: SocketFolder, stem: Path, cap: int, language: str = "python"
    ) -> LiveKernel:
        """A kernel for one script, ready to execute. Its streams go to files whose names begin with `stem`.

        Raises:
            UsageError: there is no kernel for this language.
            KernelError: it died, or never answered.
        """
        connection_file = str(sockets.path / f"{stem.name}.json")
        manager = SandboxKernelManager(kernel_name=PREFIX + language, context=context, connection_file=connection_file)
        capture = ItemCapture(stem.parent, stem.name, cap)
        manager.launcher, manager.socket_folder, manager.streams = launcher, sockets, capture.streams
        try:
            await manager.start_kernel()
            capture.close_writers()
            item = manager.provisioner.item if isinstance(manager.provisioner, BwrapProvisioner) else None
            if item is None:
                raise KernelError("the kernel did not start", "Run: sandboxmcp doctor.", launcher.process.log)
            client: AsyncKernelClient = manager.client()
            client.start_channels(stdin=False, hb=False, control=False)
            kernel = cls(manager, client, item, capture, stem)
            await kernel._until_connected(launcher)
        except NoSuchKernel:
            capture.discard()
            raise UsageError(
                f"there is no kernel for {language!r}", f"There is one for: {', '.join(kernel_languages())}."
            ) from None
        except BaseException:
            capture.discard()
            if isinstance(manager.provisioner, BwrapProvisioner):
                await manager.provisioner.kill()
            raise
        return kernel

    async def _until_connected(self, launcher: Launcher) -> None:
        """Wait for the kernel's word that our subscription is known: what is displayed earlier would be lost."""

        async def welcomed() -> None:
            while (await self._client.get_iopub_msg())["header"]["msg_type"] != "iopub_welcome":
                pass

        welcome = asyncio.ensure_future(welcomed())
        try:
            await _first(welcome, self.item.ended, timeout_s=_START_TIMEOUT_S)
            if not welcome.done():
                why = "died at its start" if self.item.ended.done() else "never answered"
                raise KernelError(f"the kernel {why}", "Run: sandboxmcp doctor.", launcher.process.log)
        finally:
            welcome.cancel()
        # As in the guest: the first request takes paths that the later ones find warm; a silent one leaves no trace.
        await self.execute("pass", Reply(), silent=True)

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
            await _first(outputs, self.item.ended, timeout_s=_IDLE_TIMEOUT_S)
        finally:
            answer.cancel()
            outputs.cancel()
        reply.status = str(content.get("status", "error"))
        reply.name, reply.value = str(content.get("ename", "")), str(content.get("evalue", ""))

    async def _answer(self, message_id: str) -> dict[str, Any]:
        while True:
            with contextlib.suppress(ValueError, KeyError):  # a forged or broken message is no answer
                message = await self._client.get_shell_msg()
                if message["parent_header"].get("msg_id") == message_id and message["header"]["msg_type"] == "execute_reply":
                    return dict(message["content"])

    async def _outputs(self, message_id: str, reply: Reply) -> None:
        while True:
            with contextlib.suppress(ValueError, KeyError):
                message = await self._client.get_iopub_msg()
                if message["parent_header"].get("msg_id") != message_id:
                    continue
                content = message["content"]
                if message["header"]["msg_type"] == "status" and content["execution_state"] == "idle":
                    return
                if message["header"]["msg_type"] in ("display_data", "update_display_data", "execute_result"):
                    self._keep(content["data"], reply)

    def _keep(self, data: dict[str, Any], reply: Reply) -> None:
        for mime, value in data.items():
            if mime == _TEXT:
                continue
            if len(reply.artifacts) >= _MOST_ARTIFACTS:
                reply.dropped += 1
                continue
            path = self._stem.with_name(f"{self._stem.name}.{len(reply.artifacts)}.artifact")
            content = _artifact_bytes(mime, value)
            path.touch(0o600, exist_ok=False)
            path.write_bytes(content)
            reply.artifacts.append(Artifact(str(mime)[:100], path, len(content)))

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


def _artifact_bytes(mime: str, value: Any) -> bytes:
    """Binary types travel as base64 (messaging protocol, display_data); text and JSON as themselves."""
    if isinstance(value, str) and mime.startswith(("image/", "application/pdf", "audio/", "video/")) and mime != "image/svg+xml":
        with contextlib.suppress(ValueError):
            return base64.b64decode(value)
    return value.encode(errors="surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


def message_context() -> zmq.asyncio.Context:
    """A ZeroMQ context whose sockets never drop a message for a slow reader, and refuse gigantic ones."""
    context = zmq.asyncio.Context()
    for option, value in (
        (zmq.RCVHWM, 0),
        (zmq.SNDHWM, 0),
        (zmq.LINGER, 0),
        (zmq.RECONNECT_IVL, 2),
        (zmq.MAXMSGSIZE, _LARGEST_MESSAGE),
    ):
        context.setsockopt(option, value)
    return context
