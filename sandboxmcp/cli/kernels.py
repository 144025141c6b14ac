"""`sandboxmcp kernels`: the named kernels of this user's servers, and our kernelspecs for Jupyter."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.cli.kernel_run import kernel_called
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings

if TYPE_CHECKING:
    from sandboxmcp.kernels.registry import Shared

_SAID = {
    "interrupt": ("Interrupt what a kernel runs; its variables are kept.", "interrupted"),
    "restart": ("End a kernel and start it anew, empty.", "started anew, empty"),
    "stop": ("End a kernel with all it started; its variables are gone.", "stopped"),
}
_Name = Annotated[str, typer.Argument(help="The kernel's name, or PID:NAME when several servers have one.", show_default=False)]


def add_to(group: typer.Typer) -> None:
    """Register the group."""
    kernels = typer.Typer(name="kernels", help="Kernels that stay, and kernelspecs for Jupyter.", no_args_is_help=True)
    group.add_typer(kernels)

    @command(kernels, "install")
    def install(
        settings: Settings,
        as_json: bool,
        prefix: Annotated[str | None, typer.Option(help="Into PREFIX/share/jupyter/kernels.", show_default=False)] = None,
        user: Annotated[bool, typer.Option("--user", help="For this user; the default without --prefix.")] = False,
    ) -> int:
        """Install our kernelspecs: JupyterLab and other clients then start sandboxed kernels."""
        if user and prefix is not None:
            raise UsageError("give either --user or --prefix")
        folders = _installed(prefix)
        print(json.dumps({"ok": True, "kernelspecs": folders}) if as_json else "\n".join(folders.values()))
        return 0

    @command(kernels, "list")
    def listed(settings: Settings, as_json: bool) -> int:
        """List the named kernels of this user's running servers."""
        from sandboxmcp.kernels.registry import shared_kernels

        found = shared_kernels(settings.data_dir)
        facts = [{name: str(value) if isinstance(value, Path) else value for name, value in asdict(one).items()} for one in found]
        lines = [f"{one.name}: {one.language}, server {one.pid}, {one.workspace}, {one.file}" for one in found]
        print(json.dumps({"ok": True, "kernels": facts}) if as_json else "\n".join(lines or ["no named kernels run"]))
        return 0

    for action in _SAID:
        command(kernels, action)(_acting(action))


def _acting(action: str) -> Callable[..., int]:
    """The command for one action. It is the owner that carries it out: a signal of ours could meet another process."""

    def act(settings: Settings, as_json: bool, name: _Name) -> int:
        from sandboxmcp.tools.kernel_client import ask_owner
        from sandboxmcp.tools.kernels import INTERRUPTED

        kernel = _found(settings, name)
        state = ask_owner(kernel.door, kernel.pid, {"op": "act", "kernel": kernel.name, "action": action})
        heeded = state != "runs on"
        done = {"ok": heeded, "kernel": kernel.name, "server": kernel.pid, "action": action} | ({"state": state} if state else {})
        print(
            json.dumps(done)
            if as_json
            else f"{kernel.name}: {_SAID[action][1] if state in (None, 'interrupted') else INTERRUPTED[state]}"
        )
        return 0 if heeded else 1

    act.__doc__ = _SAID[action][0]
    return act


def _found(settings: Settings, name: str) -> Shared:
    from sandboxmcp.kernels.registry import shared_kernels

    kernel = kernel_called(settings, name)
    if kernel is None:
        names = ", ".join(f"{one.pid}:{one.name}" for one in shared_kernels(settings.data_dir)) or "none"
        raise UsageError(f"no kernel is called {name[:80]!r}", f"Running: {names}.")
    return kernel


def _installed(prefix: str | None) -> dict[str, str]:
    """Where each kernelspec is now: name → folder. Only kernel.json goes there; the rest is found by the provisioner."""
    from jupyter_client.kernelspec import KernelSpecManager

    from sandboxmcp.core.resources import data_folder
    from sandboxmcp.kernels.jupyter.kernelspecs import PREFIX, kernel_languages

    found = {}
    for language in kernel_languages():
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(data_folder("kernels") / language / "kernel.json", Path(folder) / "kernel.json")
            try:
                found[PREFIX + language] = KernelSpecManager().install_kernel_spec(
                    folder, PREFIX + language, user=prefix is None, prefix=prefix
                )
            except OSError as error:
                raise UsageError(f"{error.filename} cannot be written: {error.strerror}", "Choose another --prefix.") from None
    return found
