"""`sandboxmcp policy check`: the verdict on a script, without running it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.cli.scripts import language_of, script_text
from sandboxmcp.core.model import Verdict
from sandboxmcp.core.settings import Settings
from sandboxmcp.services import Services

_DENIED = 3


def add_to(group: typer.Typer) -> None:
    """Register the group."""
    policy = typer.Typer(name="policy", help="What may run: ask the policy without running anything.", no_args_is_help=True)
    group.add_typer(policy)

    @policy.callback()
    def callback() -> None:
        """Keeps `check` a command of its own while it is the only one."""

    @command(policy, "check")
    def check(
        settings: Settings,
        as_json: bool,
        file: Annotated[str, typer.Argument(help="A script, or - for standard input.", show_default=False)],
        lang: Annotated[str | None, typer.Option(help="python or shell; default: by the file's ending, else shell.")] = None,
    ) -> int:
        """Print the verdict on a script with its rule and line; exit code 3 unless it may run."""
        verdict = Services(settings).engine.judge(script_text(file), lang or language_of(file, "shell"))
        print(json.dumps({"ok": verdict.action == "allow", **asdict(verdict)}) if as_json else _line(verdict))
        return 0 if verdict.action == "allow" else _DENIED


def _line(verdict: Verdict) -> str:
    rule = f" by {verdict.pack}/{verdict.rule}" if verdict.rule else ""
    line = f" at line {verdict.line}" if verdict.line else ""
    return f"{verdict.action}{rule}{line}. {verdict.because} {verdict.instead}".rstrip(" .") + "."
