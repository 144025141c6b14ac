"""How a terminal and the interactive shell call tools and give arguments: read off the tools' specifications."""

from __future__ import annotations

from collections.abc import Iterator

from sandboxmcp.core.settings import KEYS
from sandboxmcp.core.surface import Surface
from sandboxmcp.tools.registry import TOOLS
from sandboxmcp.tools.toolspec import Argument, ToolSpec

PROGRAM = "sandboxmcp"
_RUN = f"{PROGRAM} run"


def _call(tool: ToolSpec) -> str:
    """The command of a tool. Those without one run scripts, which a terminal does one at a time."""
    if not tool.commands:
        return _RUN
    first = tool.commands[0]
    return f"{PROGRAM} {first.group.name if first.group else first.name}"


def _arguments() -> Iterator[tuple[str, str]]:
    """What gives each argument and setting. What any command takes without a flag comes last: that is how people know it."""
    visible: list[Argument] = [
        one for tool in TOOLS.values() for command in tool.commands for one in tool.parameters(command) if not one.is_hidden
    ]
    yield from ((key.name, "--" + key.name.replace("_", "-")) for key in KEYS if "." not in key.name)
    yield from ((one.name, _flag(one)) for one in visible)
    yield from ((one.name, one.name) for one in visible if one.is_positional)
    yield "content", "standard input (-)"


def _flag(argument: Argument) -> str:
    long = "--" + argument.name.replace("_", "-")
    return next((flag for flag in argument.flags if flag.startswith("--")), argument.flags[0] if argument.flags else long)


TERMINAL = Surface(
    "terminal",
    {tool.name: _call(tool) for tool in TOOLS.values()} | {"ctx_kernels": f"{PROGRAM} kernels"},
    dict(_arguments()),
    {"list_sources": f"{PROGRAM} sources"},
)
SHELL = Surface(
    "shell",
    {**TERMINAL.calls, **{f"ctx_{name}": f":{name}" for name in ("read", "search", "sources", "kernels")}},
    advice={"see_more_passages": "narrow the query", "see_more_sources": ":sources TEXT narrows", "list_sources": ":sources"},
)
SURFACES = {one.name: one for one in (TERMINAL, SHELL)}
"""By name, for another process that asks on behalf of one."""
