"""A tool's specification: name, arguments, description, the function that runs it, and its commands at a terminal.

What clients list, what checks a call, what runs it, the commands of the terminal and the README's table are all derived from
these values. A specification is cheap to import: it names its function by a path, which is imported when the tool is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

Schema = dict[str, Any]
Type = Literal["string", "integer", "number", "boolean", "strings", "objects"]
"""Types of JSON; `strings` and `objects` are lists of such."""

BUDGET = "budget_tokens"
"""The argument that says how many tokens an answer may have. Where a call leaves it out, the setting of that name holds."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of an argument, accepted but not listed: agents know it from other servers."""

    name: str
    divide_by: int = 1
    """A number given under this name is divided by this: 1000 where it means milliseconds and the argument seconds."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A text that stands for an object which has it in this field alone."""

    field: str
    noun: str
    """What the text is, with its article: "a shell command"."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool, or a parameter that only a command at the terminal has."""

    name: str
    type: Type
    description: str = ""
    """For clients. Every word of it is paid in every session, so many arguments have none."""
    required: bool = False
    default: Any = None
    """What holds where it is not given, if the terminal is to show it. The function has the same default."""
    choices: tuple[str, ...] = ()
    is_open: bool = False
    """Other values than the choices are passed on, to a function that refuses them better than a list of choices can."""
    minimum: float | None = None
    above: float | None = None
    """Numbers must be greater than this."""
    maximum: float | None = None
    fields: tuple[Argument, ...] = ()
    """Of each object in a list of objects."""
    bare: Bare | None = None
    """What a text in place of such an object means. None: it is refused."""
    aliases: tuple[Alias, ...] = ()
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Other words for a value, accepted but not listed."""
    help: str = ""
    """At the terminal; the description where this is empty."""
    flags: tuple[str, ...] = ()
    """At the terminal; where empty, the name with dashes."""
    is_positional: bool = False
    is_hidden: bool = False
    """Not given at the terminal."""

    @property
    def schema(self) -> Schema:
        """What clients list, in JSON Schema."""
        described = {"description": self.description} if self.description else {}
        if self.type == "objects":
            return {"type": "array"} | described | {"items": object_schema(self.fields)}
        if self.type == "strings":
            return {"type": "array", "items": {"type": "string"}} | described
        bounds = {"minimum": self.minimum, "exclusiveMinimum": self.above, "maximum": self.maximum}
        facts = {"enum": list(self.choices) or None} | bounds
        return {"type": self.type} | {name: value for name, value in facts.items() if value is not None} | described


def object_schema(arguments: Sequence[Argument]) -> Schema:
    """An object with these members, in JSON Schema."""
    required = [one.name for one in arguments if one.required]
    schema: Schema = {"type": "object", "properties": {one.name: one.schema for one in arguments}}
    return schema | ({"required": required} if required else {})


Arrange = Callable[[dict[str, Any], Callable[[], str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Group:
    """Several commands under one word: `jobs list`, `jobs cancel`."""

    name: str
    help: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command at the terminal that calls a tool."""

    name: str
    help: str
    """The first line stands in the list of commands."""
    group: Group | None = None
    parameters: tuple[str | Argument, ...] = ()
    """Arguments of the tool by name, and parameters of the command alone. None given: all arguments that are not hidden."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the command itself stands for, such as an action."""
    arrange: Arrange | None = None
    """Turns the parameters into arguments; its second argument reads standard input. None: they are the same."""
    beyond: tuple[str, ...] = ()
    """What the function also takes, from the terminal only; not among the tool's arguments and not checked."""
    settings: tuple[str, ...] = ("workspace", "data_dir")
    """The settings that its help shows as flags. All others are accepted too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """All that the rest of the program knows of a tool."""

    name: str
    toolset: str
    description: str
    """For clients: paid in every session."""
    summary: str
    """A line for people, in the README's table."""
    runs: str
    """The function, as `package.module:name`: `(session, *, each argument by name) -> Answer`, blocking or not. One that has a
    parameter `progress` gets what reports it."""
    is_read_only: bool
    """It changes nothing outside of our own caches (MCP: readOnlyHint)."""
    is_destructive: bool
    """It may delete, overwrite or end something (MCP: destructiveHint)."""
    is_open_world: bool
    """It may reach the network (MCP: openWorldHint)."""
    arguments: tuple[Argument, ...] = ()
    commands: tuple[Command, ...] = ()

    def __post_init__(self) -> None:
        known = {one.name for one in self.arguments}
        if len(known) != len(self.arguments):
            raise ValueError(f"{self.name}: two arguments have one name")
        hidden = known & {alias.name for one in self.arguments for alias in one.aliases}
        if hidden:
            raise ValueError(f"{self.name}: an alias has the name of an argument: {sorted(hidden)}")
        for command in self.commands:
            named = {one for one in command.parameters if isinstance(one, str)} | set(command.fixed)
            if named - known:
                raise ValueError(
                    f"{self.name}: the command {command.name!r} names no arguments of the tool: {sorted(named - known)}"
                )

    @property
    def schema(self) -> Schema:
        """What clients list as the schema of its input."""
        return object_schema(self.arguments)

    @property
    def has_budget(self) -> bool:
        """Whether a call says how long the answer may be."""
        return any(one.name == BUDGET for one in self.arguments)

    @property
    def module(self) -> str:
        """Where the function is."""
        return self.runs.partition(":")[0]

    def function(self) -> Callable[..., Any]:
        """What runs it, imported now if it was not yet."""
        found: Callable[..., Any] = getattr(import_module(self.module), self.runs.partition(":")[2])
        return found

    def parameters(self, command: Command) -> list[Argument]:
        """What the command takes, in the order of its help."""
        by_name = {one.name: one for one in self.arguments}
        named = command.parameters or tuple(one.name for one in self.arguments if not one.is_hidden)
        return [by_name[one] if isinstance(one, str) else one for one in named]
