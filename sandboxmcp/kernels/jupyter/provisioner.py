"""Jupyter's kernel provisioner that starts a kernel inside the sandbox, and only there.

Registered as `sandboxmcp-bwrap` in the entry point group jupyter_client.kernel_provisioners. Who calls what: KernelManager
calls `pre_launch`, `launch_kernel` and `post_launch` in this order on every start and restart, `poll`, `send_signal`, `kill` and
`terminate` while the kernel lives, `wait` and `cleanup` at its end. A manager of ours brings a running launcher and its own
streams; for any other (a notebook server, a plain jupyter_client script) the provisioner starts a sandbox of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase

from sandboxmcp.core.errors import KernelError
from sandboxmcp.core.settings import Settings, load_settings, tightened
from sandboxmcp.kernels.jupyter.connection import KernelSockets, SocketFolder
from sandboxmcp.kernels.jupyter.kernelspecs import FORKED
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.kernels.launcher import Item, Launcher
from sandboxmcp.kernels.runtimes import Runtimes
from sandboxmcp.policy.sources import engine_of

_OURS = ("python", "python3", "python{}.{}".format(*sys.version_info))
"""What jupyter_client takes for the interpreter that runs it (LocalProvisioner.pre_launch and KernelManager.format_kernel_cmd)."""


def _settings(folder: Any) -> Settings:
    """Those in force; a client such as JupyterLab says where its notebook lies, which is the workspace unless one is set.

    Cells are not judged, but what the policy packs tighten holds here too, and a pack that is broken stops everything.
    """
    settings = load_settings()
    if settings.chosen_workspace is None and isinstance(folder, str) and os.path.isdir(folder):
        settings = load_settings({"workspace": folder}, project=Path(folder))
    return tightened(settings, engine_of(settings).demands())


class BwrapProvisioner(KernelProvisionerBase):
    """One kernel: an item of a launcher inside bubblewrap."""

    _launcher: Launcher | None = None
    _own_launcher = False
    _folder: SocketFolder | None = None
    _sockets: KernelSockets | None = None
    _language: dict[str, Any] | None = None
    """For a wrapper kernel: what runs its cells."""
    item: Item | None = None

    @property
    def has_process(self) -> bool:
        return self.item is not None

    async def poll(self) -> int | None:
        if self.item is None:
            return 0
        if not self.item.ended.done():
            return None
        return self._code(self.item.ended.result())

    async def wait(self) -> int | None:
        if self.item is None:
            return 0
        code = await asyncio.shield(self.item.ended)
        self.item = None
        return self._code(code)

    @staticmethod
    def _code(code: int | None) -> int:
        """KernelManager wants a number; a kernel whose sandbox ended was killed."""
        return -signal.SIGKILL if code is None else code

    async def send_signal(self, signum: int) -> None:
        if self.item is None or self.item.ended.done():
            return  # jupyter_client interrupts a dead kernel before it restarts it
        if signum == signal.SIGKILL:
            await self.kill()
        elif signum != 0:
            self.item.signal(signum)

    async def kill(self, restart: bool = False) -> None:
        if self.item is not None:
            await self.item.killed()

    async def terminate(self, restart: bool = False) -> None:
        await self.kill(restart)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        self._launcher = getattr(self.parent, "launcher", None) or self._launcher
        if self._launcher is None or not self._launcher.alive:
            self._launcher, self._own_launcher = await Launcher.start(_settings(kwargs.get("cwd"))), True
        if self._sockets is not None:
            self._sockets.remove()
        folder = getattr(self.parent, "socket_folder", None)
        if folder is None:
            folder = self._folder = self._folder or SocketFolder()
        self._sockets = KernelSockets(folder, self._sockets)
        self.connection_info = cast(KernelConnectionInfo, self._sockets.info)
        kwargs.pop("env", None)  # nothing of the host's environment goes in
        try:
            self._language = await self._wrapped(self._launcher, folder)
            return {**kwargs, "cmd": self._command()}
        except BaseException:
            await self.cleanup()
            raise

    async def _wrapped(self, launcher: Launcher, folder: SocketFolder) -> dict[str, Any] | None:
        """The language of a wrapper kernel, which its argv names, with what runs it here; None for any other kernel."""
        argv = self.kernel_spec.argv
        if argv[:1] != [FORKED] or argv[1:] == ["{connection_file}"]:
            return None
        language = script_languages().get(argv[1])
        if language is None:
            raise KernelError(f"the kernelspec {self.kernel_spec.display_name!r} names no language", "Mend its kernel.json.")
        runtime = await Runtimes(launcher, folder.path).find(language)
        return {"table": runtime.table(), "info": language.info}

    def _command(self) -> list[str]:
        """The kernelspec's own argv, or nothing for the kernels that the launcher forks itself."""
        argv: list[str] = list(self.kernel_spec.argv)
        if not argv:
            raise KernelError(f"the kernelspec {self.kernel_spec.display_name!r} has an empty argv", "Mend its kernel.json.")
        if argv[0] == FORKED:
            return []
        return [sys.executable, *argv[1:]] if argv[0] in _OURS else argv

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        if self._launcher is None or self._sockets is None:
            raise RuntimeError("launch_kernel is called after pre_launch")
        streams: tuple[int, int] | None = getattr(self.parent, "streams", None)
        mode = getattr(self.parent, "mode", "notebook")
        null = None if streams else os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            given = streams or (null or 0, null or 0)
            sockets = self._sockets
            if cmd:
                self.item = await self._launcher.fork_foreign(cmd, sockets.descriptors, given, sockets.key)
            else:
                mode = mode if self._language is None else "wrapper"
                self.item = await self._launcher.fork_kernel(sockets.descriptors, given, sockets.key, mode, self._language)
        finally:
            if null is not None:
                os.close(null)
            self._sockets.release()
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        if restart:
            return
        if self._sockets is not None:
            self._sockets.remove()
        if self._own_launcher and self._launcher is not None:
            await self._launcher.close()
            self._launcher, self._own_launcher = None, False
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
