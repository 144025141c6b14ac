"""From what a client sent to arguments that a tool can trust: aliases resolved, JSON texts read, types checked, strictly.

The schemas of server/schemas.py are the rules. Accepted beyond them, and absent from them: names that agents learned
from other servers (`timeout` in milliseconds, `contentType`, `sort="timeline"`, `query_scope="global"`, a single text
where a list is wanted), null for "not given", and arrays or objects that arrive as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.server.schemas import TOOLS, Schema

_WANTED = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


_LARGEST = 10**15
"""Larger numbers are taken as this one: no count, size or time reaches it."""


def _milliseconds(value: Any) -> Any:
    return _bounded(value) / 1000 if isinstance(value, int | float) and not isinstance(value, bool) else value


def _bounded(value: float) -> float:
    return max(-_LARGEST, min(value, _LARGEST))


def _same(value: Any) -> Any:
    return value


_NAMES: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "timeout": ("timeout_s", _milliseconds),
    "ttl": ("ttl_s", _milliseconds),
    "contentType": ("kind", _same),
    "query": ("queries", _same),
}
"""Other names of arguments, accepted where their target exists and is not given itself."""

_VALUES: Mapping[tuple[str, str], str] = {
    ("sort", "timeline"): "recent",
    ("query_scope", "global"): "all",
    ("scope", "global"): "all",
    ("language", "bash"): "shell",
    ("language", "sh"): "shell",
    ("language", "python3"): "python",
    ("language", "py"): "python",
    ("language", "js"): "javascript",
    ("language", "node"): "javascript",
    ("language", "ts"): "typescript",
    ("language", "rb"): "ruby",
    ("language", "golang"): "go",
    ("language", "rs"): "rust",
    ("language", "pl"): "perl",
    ("language", "R"): "r",
    ("language", "ex"): "elixir",
    ("language", "exs"): "elixir",
    ("language", "cs"): "csharp",
    ("language", "c#"): "csharp",
}


def language_called(name: str) -> str:
    """The language that a name known from elsewhere means, such as `bash`; another name as it is."""
    return _VALUES.get(("language", name), name)


def checked_arguments(tool: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call, or an error that names the argument and what it wants.

    Raises:
        UsageError: no such tool, an unknown or missing argument, or a value of the wrong type or range.
    """
    if tool not in TOOLS:
        raise UsageError(f"unknown tool {tool!r}", _did_you_mean(tool, TOOLS))
    return _object(TOOLS[tool][1], dict(given or {}), tool)


def _object(schema: Schema, given: dict[str, Any], where: str) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema["properties"]
    resolved = _resolved(given, properties)
    for name in resolved:
        if name not in properties:
            raise _unknown(name, properties, where)
    for name in schema.get("required", ()):
        if name not in resolved:
            raise UsageError(f"{where}: argument {name!r} is missing", f"It wants {_wanted(properties[name])}.")
    return {name: _value(properties[name], value, name, where) for name, value in resolved.items()}


def _resolved(given: dict[str, Any], properties: Mapping[str, Schema]) -> dict[str, Any]:
    result = {name: value for name, value in given.items() if value is not None}
    for alias, (target, convert) in _NAMES.items():
        if alias in result and alias not in properties and target in properties:
            value = convert(result.pop(alias))
            result.setdefault(target, value)
    return {name: _VALUES.get((name, value), value) if isinstance(value, str) else value for name, value in result.items()}


def _unknown(name: str, properties: Iterable[str], where: str) -> UsageError:
    return UsageError(f"{where}: unknown argument {name!r}", _did_you_mean(name, properties))


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = get_close_matches(name, names, 1, 0.5)
    listed = f"Known: {', '.join(names)}." if names else "It takes no arguments."
    return f"Did you mean {near[0]!r}? {listed}" if near else listed


def _value(schema: Schema, value: Any, name: str, where: str) -> Any:
    value = _from_json_text(schema, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = _bounded(value)
    if schema["type"] == "string" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a line number, a cursor, an error code to look for
    if not _fits(schema["type"], value):
        raise UsageError(f"{where}: {name!r} wants {_wanted(schema)}, not {_shown(value)}")
    if "enum" in schema and value not in schema["enum"] and name != "language":
        raise UsageError(f"{where}: {name!r} wants {_wanted(schema)}, not {_shown(value)}")
    if not _in_range(schema, value):
        raise UsageError(f"{where}: {name!r} wants {_wanted(schema)}, not {_shown(value)}")
    if schema["type"] == "array":
        return [_element(schema["items"], one, f"{name}[{index}]", where) for index, one in enumerate(value)]
    return int(value) if schema["type"] == "integer" else value


def _element(schema: Schema, value: Any, name: str, where: str) -> Any:
    if schema["type"] == "object":
        value = _from_json_text(schema, value)
        if isinstance(value, str):
            return {"command": value}
        if not isinstance(value, dict):
            raise UsageError(f"{where}: {name} wants an object or a shell command, not {_shown(value)}")
        return _object(schema, value, f"{where}: {name}")
    return _value(schema, value, name, where)


def _from_json_text(schema: Schema, value: Any) -> Any:
    """A list or an object that arrived as text; a text where a list of texts is wanted is a list of one."""
    if schema["type"] not in ("array", "object") or not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, list if schema["type"] == "array" else dict):
        return read
    return [value] if schema["type"] == "array" else value


def _fits(kind: str, value: Any) -> bool:
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or (isinstance(value, float) and (kind == "number" or value.is_integer()))
        return whole and not isinstance(value, bool)
    types: Mapping[str, type] = {"string": str, "boolean": bool, "array": list, "object": dict}
    return isinstance(value, types[kind])


def _in_range(schema: Schema, value: Any) -> bool:
    if schema["type"] not in ("integer", "number"):
        return True
    low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    return (low is None or value >= low) and (above is None or value > above) and (high is None or value <= high)


def _wanted(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    text = _WANTED[schema["type"]]
    if schema["type"] == "array" and schema["items"]["type"] == "string":
        text = "a list of texts"
    limits = [
        f"{words} {schema[key]:,}"
        for key, words in (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "up to"))
        if key in schema
    ]
    return " ".join([text, *limits])


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or lists within lists
        text = "what cannot be shown"
    return text if len(text) <= 60 else text[:57] + "..."
