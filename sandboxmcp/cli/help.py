"""`sandboxmcp help`: of the whole, of a command, and of the settings, which every command takes as flags."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from sandboxmcp.cli.commands import command, flag_of
from sandboxmcp.core.settings import KEYS, Key, Settings


def add_to(group: typer.Typer, run: Callable[[Sequence[str]], int]) -> None:
    """Register the command. `run` runs a command line and returns its exit code."""

    @command(group, "help", acts=())
    def help_(
        settings: Settings,
        as_json: bool,
        about: Annotated[list[str] | None, typer.Argument(help="A command, or: settings.", show_default=False)] = None,
    ) -> int:
        """Explain a command, or with `settings` list all settings.

        Each with its flag, its variable, what is in force and what it is.
        """
        if about != ["settings"]:
            return _of_a_command(about or [], as_json, run)
        if as_json:
            rows = [{"flag": flag_of(key), "variable": key.variable, "value": _shown(settings[key.name])} for key in KEYS]
            print(json.dumps({"ok": True, "settings": rows}))
        else:
            print("\n".join(_told(key, settings) for key in KEYS))
        return 0


def _of_a_command(words: list[str], as_json: bool, run: Callable[[Sequence[str]], int]) -> int:
    asked = [*words, "--help"]
    if not as_json:
        return run(asked)
    with redirect_stdout(io.StringIO()) as said:
        code = run([*asked, "--json"] if words else asked)
    print(json.dumps({"ok": True, "text": said.getvalue()}) if code == 0 else said.getvalue().strip())
    return code


def _told(key: Key, settings: Settings) -> str:
    return f"{flag_of(key)}  {key.variable}  [{_shown(settings[key.name])}]\n    {key.doc}"


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "unset"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
