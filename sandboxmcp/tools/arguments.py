"""From what a client sent to arguments that a tool can trust: aliases resolved, JSON texts read, types checked, strictly.

The tools' specifications are the rules. Accepted beyond what clients are listed: the aliases and synonyms of the specification
(`timeout` in milliseconds, `sort="timeline"`), a single text where a list is wanted, null for "not given", and arrays or objects
that arrive as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.surface import fault_of
from sandboxmcp.tools.registry import TOOLS
from sandboxmcp.tools.specs.common import LANGUAGE
from sandboxmcp.tools.toolspec import Alias, Argument, Type

_WANTED: Mapping[Type, str] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "strings": "a list of texts",
    "objects": "a list",
}

_LARGEST = 10**15
"""Larger numbers are taken as this one: no count, size or time reaches it."""


def language_called(name: str) -> str:
    """The language that a name known from elsewhere means, such as `bash`; another name as it is."""
    return LANGUAGE.synonyms.get(name, name)


def checked_arguments(tool: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, or an error that names the argument and what it wants.

    Raises:
        UsageError: no such tool, an unknown or missing argument, or a value of the wrong type or range.
    """
    if tool not in TOOLS:
        raise UsageError(f"unknown tool {tool!r}", _did_you_mean(tool, TOOLS))
    return _object(TOOLS[tool].arguments, dict(given or {}), tool)


def _object(arguments: Sequence[Argument], given: dict[str, Any], where: str) -> dict[str, Any]:
    known = {one.name: one for one in arguments}
    resolved = _resolved(given, known)
    for name in resolved:
        if name not in known:
            raise _unknown(name, known, where)
    for one in arguments:
        if one.required and one.name not in resolved:
            raise UsageError(f"{where}: argument {one.name!r} is missing", f"It wants {_wanted(one)}.")
    return {name: _value(known[name], value, name, where) for name, value in resolved.items()}


def _resolved(given: dict[str, Any], known: dict[str, Argument]) -> dict[str, Any]:
    """Each argument under its own name, which wins over an alias that is given beside it, and each synonym as what it means."""
    result = {name: value for name, value in given.items() if value is not None}
    for argument in reversed(known.values()):  # of two bad ones the later argument is told, as ever
        for alias in argument.aliases:
            if alias.name in result:
                value = _converted(alias, result.pop(alias.name))
                result.setdefault(argument.name, value)
    return {name: _meant(known.get(name), value) for name, value in result.items()}


def _converted(alias: Alias, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _bounded(value) / alias.divide_by if is_number and alias.divide_by != 1 else value


def _meant(argument: Argument | None, value: Any) -> Any:
    return argument.synonyms.get(value, value) if argument is not None and isinstance(value, str) else value


def _bounded(value: float) -> float:
    return max(-_LARGEST, min(value, _LARGEST))


def _unknown(name: str, properties: Iterable[str], where: str) -> UsageError:
    return UsageError(f"{where}: unknown argument {name!r}", _did_you_mean(name, properties))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(name, names, 1, 0.5)
    listed = f"Known: {', '.join(names)}." if names else "It takes no arguments."
    return f"Did you mean {near[0]!r}? {listed}" if near else listed


def _value(argument: Argument, value: Any, name: str, where: str) -> Any:
    value = _from_json_text(argument.type, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = _bounded(value)
    if argument.type == "string" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a line number, a cursor, an error code to look for
    if not (_fits(argument.type, value) and _is_choice(argument, value) and _in_range(argument, value)):
        raise UsageError(f"{fault_of(where, name)} wants {_wanted(argument)}, not {_shown(value)}")
    if argument.type == "strings":
        return [_value(_ONE_TEXT, one, f"{name}[{index}]", where) for index, one in enumerate(value)]
    if argument.type == "objects":
        return [_element(argument, one, f"{name}[{index}]", where) for index, one in enumerate(value)]
    return int(value) if argument.type == "integer" else value


_ONE_TEXT = Argument("", "string")


def _element(argument: Argument, value: Any, name: str, where: str) -> Any:
    value = _from_json(dict, value)
    if isinstance(value, str) and argument.bare is not None:
        return {argument.bare.field: value}
    if not isinstance(value, dict):
        wanted = "an object" if argument.bare is None else f"an object or {argument.bare.noun}"
        raise UsageError(f"{where}: {name} wants {wanted}, not {_shown(value)}")
    return _object(argument.fields, value, f"{where}: {name}")


def _from_json_text(kind: Type, value: Any) -> Any:
    """A list that arrived as text; a text where a list is wanted is a list of one."""
    if kind not in ("strings", "objects") or not isinstance(value, str):
        return value
    read = _from_json(list, value)
    return read if isinstance(read, list) else [value]


def _from_json(kind: type, value: Any) -> Any:
    """What a text says in JSON, if that is of this type; everything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, kind) else value


def _fits(kind: Type, value: Any) -> bool:
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or (isinstance(value, float) and (kind == "number" or value.is_integer()))
        return whole and not isinstance(value, bool)
    types: Mapping[Type, type] = {"string": str, "boolean": bool, "strings": list, "objects": list}
    return isinstance(value, types[kind])


def _is_choice(argument: Argument, value: Any) -> bool:
    return not argument.choices or argument.is_open or value in argument.choices


def _in_range(argument: Argument, value: Any) -> bool:
    if argument.type not in ("integer", "number"):
        return True
    low, above, high = argument.minimum, argument.above, argument.maximum
    return (low is None or value >= low) and (above is None or value > above) and (high is None or value <= high)


def _wanted(argument: Argument) -> str:
    if argument.choices:
        return "one of " + ", ".join(argument.choices)
    bounds = (("from", argument.minimum), ("above", argument.above), ("up to", argument.maximum))
    return " ".join([_WANTED[argument.type], *(f"{words} {bound:,}" for words, bound in bounds if bound is not None)])


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or lists within lists
        text = "what cannot be shown"
    return text if len(text) <= 60 else text[:57] + "..."
