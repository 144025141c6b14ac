"""The commands that are tools, made from the tools' specifications: flags, help, checks and what runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from sandboxmcp.cli.commands import command, show, use
from sandboxmcp.core.settings import Settings
from sandboxmcp.tools.arguments import checked_arguments
from sandboxmcp.tools.registry import TOOLS
from sandboxmcp.tools.toolspec import BUDGET, Argument, Command, Group, ToolSpec

Body = Callable[[Settings, bool, dict[str, Any]], int]
"""What a command does: settings, whether --json was given, and its parameters by name. Returns the exit code."""

_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "strings": list[str]}


def add_to(group: typer.Typer, bodies: Mapping[str, Body]) -> None:
    """Register the commands. `bodies`: by a tool's name, what its command does where that is more than calling the tool."""
    groups: dict[Group, typer.Typer] = {}
    for tool in TOOLS.values():
        for one in tool.commands:
            body = _with_signature(tool, one, bodies.get(tool.name) or _calling(tool, one))
            command(_within(group, one.group, groups), one.name, acts=one.settings)(body)


def _within(whole: typer.Typer, wanted: Group | None, groups: dict[Group, typer.Typer]) -> typer.Typer:
    """The group of commands that a command belongs to, made when its first command comes."""
    if wanted is None:
        return whole
    if wanted not in groups:
        groups[wanted] = typer.Typer(name=wanted.name, help=wanted.help, no_args_is_help=True)
        whole.add_typer(groups[wanted])
    return groups[wanted]


def _with_signature(tool: ToolSpec, one: Command, body: Body) -> Callable[..., int]:
    """The body as a function with the parameters and the help that typer reads."""

    def run(settings: Settings, as_json: bool, **given: Any) -> int:
        return body(settings, as_json, given)

    run.__doc__ = one.help
    parameters = [_parameter(argument) for argument in tool.parameters(one)]
    run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    return run


def _parameter(argument: Argument) -> inspect.Parameter:
    kind = _TYPES[argument.type]
    default = False if kind is bool and argument.default is None else argument.default
    flags = argument.flags or ("--" + argument.name.replace("_", "-"),)
    facts: dict[str, Any] = {"help": argument.help or argument.description, "show_default": argument.default is not None}
    about = typer.Argument(**facts) if argument.is_positional else typer.Option(*flags, **facts)
    wanted = kind if argument.required or default is not None else kind | None
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if argument.required else default,
        annotation=Annotated[wanted, about],
    )


def _calling(tool: ToolSpec, one: Command) -> Body:
    """The body of a command that checks its arguments as the server would, runs the tool and prints the answer."""

    def body(settings: Settings, as_json: bool, given: dict[str, Any]) -> int:
        arguments = {**one.fixed, **(one.arrange(given, _standard_input) if one.arrange else given)}
        beyond = {name: arguments.pop(name) for name in one.beyond}
        budget = arguments.pop(BUDGET, None)
        checked = checked_arguments(tool.name, arguments) | beyond
        if tool.has_budget:
            checked[BUDGET] = settings.budget_tokens if budget is None else budget
        reply = use(settings, tool.name, tool.function(), masks=tool.is_open_world, **checked)
        show(reply, as_json)
        return 1 if reply.is_error else 0

    return body


def _standard_input() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace")
