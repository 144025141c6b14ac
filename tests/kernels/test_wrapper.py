"""Kernelspecs as `sandboxmcp kernels install` leaves them, used by a plain jupyter_client: every cell a script in the sandbox."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from sandboxmcp.cli.app import run_command_line
from sandboxmcp.kernels.jupyter.kernelspecs import kernel_languages
from sandboxmcp.kernels.jupyter.provisioner import BwrapProvisioner
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.kernels.runtimes import NotInstalled


@dataclass
class Cell:
    """What came back of one execution."""

    reply: dict
    stdout: str = ""
    stderr: str = ""
    errors: list[str] = field(default_factory=list)


class Notebook:
    """A client of a running kernel."""

    def __init__(self, manager, client) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str, when_printed=None) -> Cell:
        """Run a cell; `when_printed` is called at its first output."""
        cell = Cell({})

        def hook(message):
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream":
                setattr(cell, content["name"], getattr(cell, content["name"]) + content["text"])
                if when_printed is not None and cell.stdout:
                    when_printed()
            elif kind == "error":
                cell.errors.append(content["ename"])

        cell.reply = self.client.execute_interactive(code, output_hook=hook, timeout=60)["content"]
        return cell

    @property
    def sandbox(self) -> int:
        """The host's number of the sandbox's first process."""
        assert isinstance(self.manager.provisioner, BwrapProvisioner)
        return self.manager.provisioner._launcher.process.init_pid


@pytest.fixture
def installed(sandbox, tmp_path, monkeypatch):
    """The kernelspecs in a prefix of their own, and a project that is the workspace."""
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("SANDBOXMCP_WORKSPACE", str(tmp_path / "project"))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "prefix/share/jupyter"))
    assert run_command_line(["kernels", "install", "--prefix", str(tmp_path / "prefix")]) == 0
    return tmp_path / "prefix/share/jupyter/kernels"


@contextmanager
def started(name: str):
    """A kernel of that kernelspec, started and ended by jupyter_client alone."""
    manager = KernelManager(kernel_name=name)
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    try:
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def bash(installed):
    with started("sandboxmcp-shell") as notebook:
        yield notebook


def test_every_language_has_a_kernelspec(installed):
    assert {folder.name for folder in installed.iterdir()} == {f"sandboxmcp-{language}" for language in kernel_languages()}
    assert set(kernel_languages()) == {*script_languages(), "python"}


def test_a_cell_is_a_script_in_the_sandbox(bash, tmp_path):
    cell = bash.run("hostname; id -u; pwd; echo err >&2; exit 3")
    assert (cell.stdout, cell.stderr, cell.errors) == (f"sandbox\n1000\n{tmp_path}/project\n", "err\n", ["ExitCode"])
    reply = {name: cell.reply[name] for name in ("status", "ename", "evalue", "sandboxmcp")}
    assert reply == {"status": "error", "ename": "ExitCode", "evalue": "3", "sandboxmcp": {"exit_code": 3}}


def test_no_variable_lives_on(bash):
    assert bash.run("x=1").reply["status"] == "ok"
    assert bash.run('echo "${x:-none}"').stdout == "none\n"


LONG = {"heeds": "echo on; sleep 60", "deaf": "trap '' INT TERM; echo on; sleep 60 & while :; do wait; done"}


@pytest.mark.parametrize("code", LONG.values(), ids=LONG.keys())
def test_an_interrupt_ends_the_script_and_not_the_kernel(bash, code):
    sent: list[int] = []
    cell = bash.run(code, when_printed=lambda: sent or (sent.append(1), bash.manager.interrupt_kernel()))
    assert (cell.reply["ename"], cell.errors) == ("KeyboardInterrupt", ["KeyboardInterrupt"])
    assert bash.run("pgrep sleep; echo again").stdout == "again\n"


def test_what_a_script_leaves_running_does_not_hold_its_cell(bash):
    started_at = time.monotonic()
    cell = bash.run("sleep 50 & setsid sleep 50 & echo done")
    assert (cell.stdout, time.monotonic() - started_at < 40) == ("done\n", True)
    assert bash.run("pgrep sleep; true").stdout == ""


def test_much_output_arrives_whole_and_letters_are_not_torn(bash):
    assert bash.run("yes é€😀 | head -n 100000").stdout == "é€😀\n" * 100_000


def test_a_signal_is_an_exit_code_as_in_a_shell(bash):
    assert bash.run("kill -TERM $$").reply["evalue"] == "143"


def test_a_restarted_kernel_works_and_a_shut_down_one_leaves_nothing(installed):
    with started("sandboxmcp-perl") as notebook:
        assert notebook.run("print 6 * 7").stdout == "42"
        notebook.manager.restart_kernel(now=True)
        notebook.client.wait_for_ready(timeout=60)
        assert notebook.run("print 6 * 8").stdout == "48"
        first = notebook.sandbox
    assert not os.path.exists(f"/proc/{first}") or "Z" in Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_language_that_is_not_installed_says_so_at_its_start(installed):
    manager = KernelManager(kernel_name="sandboxmcp-elixir")
    try:
        manager.start_kernel()
    except NotInstalled as missing:
        assert "Install Elixir" in str(missing)
    else:
        manager.shutdown_kernel(now=True)
        pytest.skip("elixir is installed here")
