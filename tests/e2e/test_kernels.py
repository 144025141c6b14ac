"""A server's named kernels seen and worked from the command line, as a person does beside an agent."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from mcp import Client

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]


@pytest.fixture
def cli(command: list[str], environment: dict[str, str], project: Path) -> Any:
    """Runs one command of the same user in a process of its own."""

    async def run(*arguments: str) -> tuple[int, str]:
        argv = [*command[:3], *arguments]
        call = lambda: subprocess.run(argv, capture_output=True, text=True, env=environment, cwd=project, timeout=60)  # noqa: E731
        done = await anyio.to_thread.run_sync(call)
        return done.returncode, done.stdout + done.stderr

    return run


async def execute(client: Client, code: str) -> str:
    result = await client.call_tool("ctx_execute", {"code": code, "kernel": "a"}, read_timeout_seconds=60)
    return str(result.content[0].text)


async def test_a_kernel_is_listed_interrupted_restarted_and_stopped(server: Any, cli: Any, project: Path) -> None:
    async with Client(server) as client:
        await execute(client, "x = 1")
        listed = await cli("kernels", "list")
        ends: list[str] = []

        async def long() -> None:
            ends.append(await execute(client, "import pathlib, time; pathlib.Path('begun').touch(); time.sleep(60)"))

        async with anyio.create_task_group() as group:
            group.start_soon(long)
            with anyio.fail_after(30):
                while not (project / "begun").exists():
                    await anyio.sleep(0.01)
            interrupted = await cli("kernels", "interrupt", "a")
        restarted = await cli("kernels", "restart", "a")
        anew = await execute(client, "'x' in globals()")
        stopped = await cli("kernels", "stop", "a")
        gone = await cli("kernels", "stop", "a")
    assert listed[1].startswith("a: python, server ") and interrupted == (0, "a: interrupted\n") and "KeyboardInterrupt" in ends[0]
    assert restarted == (0, "a: started anew, empty\n") and anew.endswith("| False") and stopped == (0, "a: stopped\n")
    assert gone == (2, "sandboxmcp: no kernel is called 'a'. Running: none.\n")


async def test_another_process_attaches_through_the_connection_file(server: Any, cli: Any, tmp_path: Path) -> None:
    async with Client(server) as client:
        await execute(client, "x = 41")
        (file,) = (tmp_path / "data" / "kernels").glob("*.json")

        def attached() -> Any:
            other = BlockingKernelClient()
            other.load_connection_file(str(file))
            other.start_channels(stdin=False, hb=False, control=False)
            try:
                asked = other.execute("", user_expressions={"it": "x + 1"}, store_history=False)
                while (reply := other.get_shell_msg(timeout=30))["parent_header"].get("msg_id") != asked:
                    pass
                return reply["content"]["user_expressions"]["it"]["data"]["text/plain"]
            finally:
                other.stop_channels()

        assert await anyio.to_thread.run_sync(attached) == "42"


async def test_kernelspecs_are_installed_where_they_are_wanted(cli: Any, tmp_path: Path) -> None:
    code, said = await cli("kernels", "install", "--prefix", str(tmp_path / "p"))
    assert (code, len(said.splitlines())) == (0, 12)
    assert (tmp_path / "p/share/jupyter/kernels/sandboxmcp-ruby/kernel.json").exists()
    assert (await cli("kernels", "install", "--user", "--prefix", "x")) == (2, "sandboxmcp: give either --user or --prefix\n")
