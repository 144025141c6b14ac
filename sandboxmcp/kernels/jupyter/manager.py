"""A kernel manager that cannot start anything outside the sandbox."""

from __future__ import annotations

import itertools
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory

from sandboxmcp.core.errors import KernelError
from sandboxmcp.kernels.jupyter.connection import SocketFolder
from sandboxmcp.kernels.jupyter.kernelspecs import PROVISIONER, SandboxKernelSpecManager
from sandboxmcp.kernels.jupyter.provisioner import BwrapProvisioner
from sandboxmcp.kernels.launcher import Launcher

_LARGEST_MESSAGE = 128 << 20


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


_NUMBERS = itertools.count(1)


def message_context() -> tuple[zmq.asyncio.Context, str]:
    """A ZeroMQ context whose sockets never drop a message for a slow reader, and refuse gigantic ones.

    Also returned is how the name of the thread begins that receives for it, which is no other's (see zmq_ctx_set(3),
    ZMQ_THREAD_NAME_PREFIX).
    """
    context, number = zmq.asyncio.Context(), next(_NUMBERS)
    context.set(zmq.THREAD_NAME_PREFIX, number)
    for option, value in (
        (zmq.RCVHWM, 0),
        (zmq.SNDHWM, 0),
        (zmq.LINGER, 0),
        (zmq.RECONNECT_IVL, 2),
        (zmq.MAXMSGSIZE, _LARGEST_MESSAGE),
    ):
        context.setsockopt(option, value)
    return context, f"{number}/ZMQbg/IO"
