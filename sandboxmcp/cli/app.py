"""The command line as a whole: its groups, and the one place where errors become a line and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sandboxmcp.cli import admin, completion, help, kernels, log, policy, run, serve, shell, tool_commands, workspace
from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.core.surface import speaking_to
from sandboxmcp.tools.surfaces import TERMINAL

_HELP = """Run code for AI agents in a sandbox without network; store, index and search what it prints.

Exit codes: 0 ok, 1 the script failed, 2 usage, 3 denied by policy, 4 no sandbox, 5 store, 6 a policy pack is broken.
"""

_ORDER = (
    "run shell search read sources index fetch purge log kernels jobs workspace policy serve doctor stats completion version help"
).split()
_USAGE = 2
_INTERRUPTED = 130


class _Ordered(TyperGroup):
    """Commands in the order in which people need them, groups among them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def _application() -> typer.Typer:
    group = typer.Typer(name="sandboxmcp", cls=_Ordered, help=_HELP, add_completion=False, pretty_exceptions_enable=False)
    group.callback(invoke_without_command=True)(_alone)
    tool_commands.add_to(group, {"ctx_execute": run.run, "ctx_doctor": admin.doctor})
    for module in (shell, kernels, log, workspace, policy, serve, admin, completion):
        module.add_to(group)
    help.add_to(group, run_command_line)
    return group


def _alone(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", show_default=False)] = False,
) -> None:
    """What happens before a command, and without one."""
    if version:
        print(installed_version("sandboxmcp"))
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")  # printed already where rich lays it out, and empty then


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Everything that it prints names commands and flags."""
    with speaking_to(TERMINAL):
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    as_json = "--json" in arguments
    completion.prepare()
    try:
        code: Any = _application()(list(arguments), prog_name=completion.PROGRAM, standalone_mode=False)
    except SandboxmcpError as error:
        return _told(_without_credentials(str(error)), error.exit_code, as_json)
    except (typer.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        if message.startswith("No such option") and "Possible options" not in message:
            message = message.rstrip(".") + ". What begins with a dash and is no option goes after --."
        return _told(message, _USAGE, as_json) if message.strip() else 0  # a group without a command has printed its help
    return code if isinstance(code, int) else 0


def _without_credentials(message: str) -> str:
    """An error may repeat what was typed, such as a URL with a key."""
    from sandboxmcp.policy.sources import shipped_redactor

    return shipped_redactor().text(message)


def _told(message: str, exit_code: int, as_json: bool) -> int:
    """One line on stderr, and with --json one document on stdout. No message: the help was printed instead."""
    if as_json:
        print(json.dumps({"ok": False, "error": message, "exit_code": exit_code}, ensure_ascii=False))
    elif message.startswith("Usage:") or ("\n" in message.strip() and "Usage" in message[:200]):
        print(message, file=sys.stderr)
        return exit_code
    print("sandboxmcp: " + " ".join(message.split()), file=sys.stderr)
    return exit_code
