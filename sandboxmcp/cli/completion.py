"""`sandboxmcp completion`: what a shell needs to complete our commands and flags."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings

PROGRAM = "sandboxmcp"
VARIABLE = "_SANDBOXMCP_COMPLETE"
"""In the environment of a call by which a shell asks what could stand at the cursor."""
_SHELLS = ("bash", "zsh", "fish")


def add_to(group: typer.Typer) -> None:
    """Register the command."""

    @command(group, "completion", acts=())
    def completion(
        settings: Settings,
        as_json: bool,
        shell: Annotated[str | None, typer.Argument(help="bash, zsh or fish; default: by $SHELL.", show_default=False)] = None,
    ) -> int:
        """Print a shell's script for tab completion.

        In ~/.bashrc, `eval "$(sandboxmcp completion bash)"` switches it on.
        """
        from typer.completion import get_completion_script  # type: ignore[attr-defined]

        name = shell or os.path.basename(os.environ.get("SHELL", ""))
        if name not in _SHELLS:
            raise UsageError(f"there is no completion for the shell {name[:40]!r}", f"Name one of: {', '.join(_SHELLS)}.")
        script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=name)
        print(json.dumps({"ok": True, "shell": name, "script": script}) if as_json else script)
        return 0


def prepare() -> None:
    """Before a command line is read: let typer answer a shell that asks for completions."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
