"""Specifications of tools: they fit the functions that they name, and those that contradict themselves are refused."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from sandboxmcp.tools.registry import TOOLS
from sandboxmcp.tools.toolspec import Alias, Argument, Command, ToolSpec

EVERY = pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
NOTHING = (None, (), False)
"""Defaults that say no more than that an argument was not given."""


@EVERY
def test_the_function_takes_the_arguments_and_has_their_defaults(tool: ToolSpec) -> None:
    takes: Mapping[str, inspect.Parameter] = inspect.signature(tool.function()).parameters
    assert [one.name for one in tool.arguments if one.name not in takes] == []
    required = {name for name, one in takes.items() if one.default is one.empty} - {"session", "budget_tokens"}
    assert required == {one.name for one in tool.arguments if one.required}
    told = {one.name: one.default for one in tool.arguments if one.default is not None}
    assert told == {name: takes[name].default for name in told}


@EVERY
def test_what_the_terminal_adds_the_function_takes_too(tool: ToolSpec) -> None:
    takes = inspect.signature(tool.function()).parameters
    assert [name for command in tool.commands for name in command.beyond if name not in takes] == []


@EVERY
def test_no_alias_or_synonym_hides_what_is_there(tool: ToolSpec) -> None:
    for one in (*tool.arguments, *(inner for outer in tool.arguments for inner in outer.fields)):
        assert set(one.synonyms) & set(one.choices) == set()
        assert {alias.name for alias in one.aliases} & {other.name for other in tool.arguments} == set()


@EVERY
def test_every_default_is_a_value_that_is_accepted(tool: ToolSpec) -> None:
    from sandboxmcp.tools.arguments import checked_arguments

    needed: dict[str, Any] = {one.name: ["x"] if one.type != "string" else "x" for one in tool.arguments if one.required}
    told = {one.name: one.default for one in tool.arguments if one.default not in NOTHING}
    assert told.items() <= checked_arguments(tool.name, needed | told).items()


@EVERY
def test_what_reads_only_destroys_nothing(tool: ToolSpec) -> None:
    assert not (tool.is_read_only and tool.is_destructive)
    assert re.fullmatch("[a-z]+", tool.toolset) and tool.summary and tool.description


def test_a_command_of_what_is_no_argument_is_refused() -> None:
    tool = TOOLS["ctx_search"]
    with pytest.raises(ValueError, match=r"ctx_search: the command 'find'.*colour"):
        replace(tool, commands=(Command("find", "Find.", parameters=("queries", "colour")),))
    with pytest.raises(ValueError, match="colour"):
        replace(tool, commands=(Command("find", "Find.", fixed={"colour": "red"}),))


def test_two_arguments_of_one_name_are_refused() -> None:
    tool = TOOLS["ctx_search"]
    with pytest.raises(ValueError, match="two arguments have one name"):
        replace(tool, arguments=(*tool.arguments, tool.arguments[0]))


def test_an_alias_that_is_another_argument_is_refused() -> None:
    tool = TOOLS["ctx_search"]
    with pytest.raises(ValueError, match="'limit'"):
        replace(tool, arguments=(*tool.arguments, Argument("most", "integer", aliases=(Alias("limit"),))))
