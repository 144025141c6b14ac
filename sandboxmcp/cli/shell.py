"""`sandboxmcp shell`: a person, or a pipe, on a kernel in the sandbox."""

from __future__ import annotations

from typing import Annotated

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.core.settings import Settings


def add_to(group: typer.Typer) -> None:
    """Register the command."""

    @command(group, "shell", acts=("workspace", "data_dir", "policy_packs"))
    def shell(
        settings: Settings,
        as_json: bool,
        kernel: Annotated[
            str | None,
            typer.Option(help="Name of the kernel; one that an agent is using in this project is joined.", show_default=False),
        ] = None,
        lang: Annotated[
            str | None, typer.Option("--lang", "--language", help="Language to start in; default: python.", show_default=False)
        ] = None,
    ) -> int:
        """Work in a sandboxed kernel, at a terminal or through a pipe.

        Variables live on, long outputs are captured; :help inside lists its commands.
        Through a pipe it shows no prompt and no colour; its exit code is that of the last input, or with --json each input
        gives one document. Python statements are inputs of their own; a line that begins with : or ! is one.
        """
        from sandboxmcp.shell.app import run_shell
        from sandboxmcp.tools.arguments import language_called

        return run_shell(settings, kernel, lang and language_called(lang), as_json=as_json)
