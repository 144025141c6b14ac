"""The surface that answers are for: MCP names tools and arguments, a terminal has commands and flags for them.

A text that tells its reader what to call next is made with these words where it is made, so that no text is rewritten later. The
surface belongs to the context: that of the thread or task in which an answer is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Surface:
    """How it writes what is not written as in MCP. Names without an entry are written as they are there."""

    name: str
    calls: Mapping[str, str] = field(default_factory=dict)
    """By a tool's name: what calls it."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """By the name of an argument or a setting: what gives it."""
    advice: Mapping[str, str] = field(default_factory=dict)
    """By a code: what to do, where it is more than another name."""


MCP = Surface("mcp")
_CURRENT: ContextVar[Surface] = ContextVar("surface", default=MCP)


@contextmanager
def speaking_to(surface: Surface) -> Iterator[None]:
    """Answers that are made meanwhile are for this surface."""
    token = _CURRENT.set(surface)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Surface:
    """The surface that answers are made for."""
    return _CURRENT.get()


def call(tool: str) -> str:
    """What calls a tool: `ctx_search`, or `sandboxmcp search`."""
    return current().calls.get(tool, tool)


def argument(name: str, value: object = None) -> str:
    """An argument or a setting: `max_files`, or `--max-files`; with a value `max_files=5`, or `--max-files 5`."""
    written = current().arguments.get(name, name)
    if value is None:
        return written
    return f"{written} {value}" if written.startswith("-") else f"{written}={value}"


def quoted(name: str) -> str:
    """An argument in a sentence: in backquotes where it is a name and no flag or word."""
    return current().arguments.get(name, f"`{name}`")


def advice(code: str, otherwise: str) -> str:
    """What to do, as the surface has it, otherwise these words."""
    return current().advice.get(code, otherwise)


def fault_of(tool: str, name: str) -> str:
    """The beginning of what is wrong with an argument: `ctx_search: 'kind'`, or `search: --kind`."""
    surface = current()
    if tool not in surface.calls:
        return f"{tool}: {name!r}"
    return f"{surface.calls[tool].rpartition(' ')[2]}: {surface.arguments.get(name, name)}"
