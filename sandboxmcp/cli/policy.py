"""`sandboxmcp policy check`: the verdict on a script, without running it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.core.errors import UsageError
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
        lang: Annotated[str, typer.Option(help="python or shell.")] = "shell",
    ) -> int:
        """Print the verdict on a script with its rule and line; exit code 3 unless it may run."""
        verdict = Services(settings).engine.judge(_read(file), lang)
        print(json.dumps({"ok": verdict.action == "allow", **asdict(verdict)}) if as_json else _line(verdict))
        return 0 if verdict.action == "allow" else _DENIED


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    return raw.decode("utf-8", "replace")


def _line(verdict: Verdict) -> str:
    rule = f" by {verdict.pack}/{verdict.rule}" if verdict.rule else ""
    line = f" at line {verdict.line}" if verdict.line else ""
    return f"{verdict.action}{rule}{line}. {verdict.because} {verdict.instead}".rstrip(" .") + "."
