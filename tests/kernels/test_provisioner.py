"""The two ways in which jupyter_client would quietly run a kernel on the host, and that a stranger's client gets the sandbox."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from sandboxmcp.core.errors import BrokenPack, KernelError
from sandboxmcp.kernels.jupyter.kernelspecs import PROVISIONER, SandboxKernelSpecManager
from sandboxmcp.kernels.jupyter.manager import SandboxKernelManager
from sandboxmcp.kernels.jupyter.provisioner import BwrapProvisioner


def write_spec(folder: Path, name: str, **stanza: object) -> Path:
    (folder / name).mkdir()
    spec = {"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": name, "language": "python"}
    (folder / name / "kernel.json").write_text(json.dumps({**spec, "metadata": stanza}))
    return folder


def test_jupyter_itself_resolves_python3_to_the_host():
    plain = KernelSpecManager(ensure_native_kernel=False)
    assert plain.get_kernel_spec("python3").argv[1:3] == ["-m", "ipykernel_launcher"]


def test_the_hosts_own_kernel_is_not_found_by_ours():
    with pytest.raises(NoSuchKernel):
        SandboxKernelSpecManager().get_kernel_spec("python3")


@pytest.mark.parametrize("stanza", [{}, {"kernel_provisioner": {"provisioner_name": "local-provisioner"}}], ids=["none", "local"])
def test_a_kernelspec_gets_our_provisioner_whatever_it_names(tmp_path, stanza):
    spec = SandboxKernelSpecManager(folder=write_spec(tmp_path, "stray", **stanza)).get_kernel_spec("sandboxmcp-stray")
    assert spec.metadata["kernel_provisioner"]["provisioner_name"] == PROVISIONER


def test_a_kernelspec_of_the_hosts_is_found_only_when_it_is_allowed(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    write_spec(tmp_path / "kernels", "theirs")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    with pytest.raises(NoSuchKernel):
        SandboxKernelSpecManager().get_kernel_spec("theirs")
    assert SandboxKernelSpecManager(("theirs",)).get_kernel_spec("theirs").display_name == "theirs"


def test_the_factorys_default_is_ours_once_a_manager_was_made():
    SandboxKernelManager(kernel_name="sandboxmcp-python")
    assert KernelProvisionerFactory.instance().default_provisioner_name == PROVISIONER


def test_a_manager_with_a_local_provisioner_refuses_to_launch():
    manager = SandboxKernelManager(kernel_name="sandboxmcp-python")
    manager.provisioner = LocalProvisioner(parent=manager)
    with pytest.raises(KernelError, match="outside the sandbox"):
        asyncio.run(manager._async_launch_kernel(["true"]))


def test_a_shipped_kernelspec_run_without_our_provisioner_starts_nothing():
    argv = SandboxKernelSpecManager().get_kernel_spec("sandboxmcp-python").argv
    assert not any(Path(folder, argv[0]).exists() for folder in os.get_exec_path())


def test_a_plain_jupyter_client_gets_the_sandbox(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("SANDBOXMCP_WORKSPACE", str(tmp_path))

    async def session() -> tuple[str, list[str]]:
        manager = AsyncKernelManager(kernel_name="sandboxmcp-python", kernel_spec_manager=SandboxKernelSpecManager())
        await manager.start_kernel()
        assert isinstance(manager.provisioner, BwrapProvisioner)
        client = manager.client()
        client.start_channels(hb=False)
        await client.wait_for_ready(timeout=30)
        texts: list[str] = []
        await client.execute_interactive(
            "import socket, os\nprint(socket.gethostname(), os.getuid())",
            output_hook=lambda message: texts.append(message["content"].get("text", "")),
            timeout=30,
        )
        await interrupt_a_loop(manager, client)
        client.stop_channels()
        await manager.shutdown_kernel(now=True)
        return "".join(texts), os.listdir(tmp_path)

    assert asyncio.run(session()) == ("sandbox 1000\n", [])


def test_what_the_policy_packs_tighten_holds_for_a_plain_jupyter_client_too(sandbox, tmp_path, monkeypatch):
    monkeypatch.setenv("SANDBOXMCP_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("SANDBOXMCP_POLICY_PACKS", "strict")

    async def session() -> str:
        manager = AsyncKernelManager(kernel_name="sandboxmcp-python", kernel_spec_manager=SandboxKernelSpecManager())
        await manager.start_kernel()
        client = manager.client()
        client.start_channels(hb=False)
        await client.wait_for_ready(timeout=30)
        reply = await client.execute("open('new', 'w')", reply=True, timeout=30)
        client.stop_channels()
        await manager.shutdown_kernel(now=True)
        return str(reply["content"]["evalue"])

    assert (asyncio.run(session()), os.listdir(tmp_path)) == ("[Errno 30] Read-only file system: 'new'", [])


def test_a_broken_pack_stops_a_plain_jupyter_client_too(sandbox, tmp_path, monkeypatch):
    (tmp_path / "broken.toml").write_text("[pack]\nname = 1\n")
    monkeypatch.setenv("SANDBOXMCP_POLICY_PACKS", str(tmp_path / "broken.toml"))
    manager = AsyncKernelManager(kernel_name="sandboxmcp-python", kernel_spec_manager=SandboxKernelSpecManager())
    with pytest.raises(BrokenPack):
        asyncio.run(cast("Any", manager.start_kernel()))


async def interrupt_a_loop(manager: AsyncKernelManager, client) -> None:
    """An endless loop ends with KeyboardInterrupt when the manager says so."""
    reply = asyncio.ensure_future(client.execute("print('on', flush=True)\nwhile True: pass", reply=True, timeout=30))
    while (await client.get_iopub_msg(timeout=30))["content"].get("text") != "on\n":
        pass
    await manager.interrupt_kernel()
    assert (await reply)["content"]["ename"] == "KeyboardInterrupt"


def test_interrupts_come_as_signals():
    assert SandboxKernelSpecManager().get_kernel_spec("sandboxmcp-python").interrupt_mode == "signal"
