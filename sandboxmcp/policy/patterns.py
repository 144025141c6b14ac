"""Regular expressions of packs: refused at load when they are wrong or could take very long, and searched with a bound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sandboxmcp.policy.facts import HOLE

_MOST_REPEATS = 3
"""Unbounded repetitions in one pattern; each adds a power of the text's length to the worst time."""
_FEW = 8
"""A repetition of at most so many is no danger inside another."""
_MOST_CHARACTERS = 4_096
"""Of an argument that is searched; whether the rest matches is unknown."""


def pattern_problem(pattern: Any, few: int = _FEW) -> str:
    """What is wrong with a pattern; empty when nothing is. Repetitions of at most `few` are not counted."""
    if not isinstance(pattern, str):
        return "wants a regular expression"
    try:
        re.compile(pattern)
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]  # the only parser of Python's own patterns
        repeats = list(_repeats(parsed, 0, few))
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if any(depth for depth in repeats):
        return "may take very long: it repeats what itself repeats or has alternatives"
    if len(repeats) > _MOST_REPEATS:
        return f"may take very long: it has more than {_MOST_REPEATS} unbounded repetitions"
    return ""


def search(pattern: str, text: str) -> bool | None:
    """Whether the pattern occurs; None when a part of the text that is not known, or too long, could decide it."""
    if re.search(pattern, text[:_MOST_CHARACTERS].replace(HOLE, "")):
        return True
    return None if HOLE in text or len(text) > _MOST_CHARACTERS else False


def _repeats(parsed: Any, depth: int, few: int) -> Iterator[int]:
    """For every repetition of more than a few, how many such repetitions it stands in; alternatives in one count as one."""
    for operator, argument in parsed:
        name = str(operator)
        inside = depth
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and argument[1] > few:
            yield depth
            inside += 1
        elif name == "BRANCH" and depth:
            yield depth
        for part in _parts(argument):
            yield from _repeats(part, inside, few)


def _parts(argument: Any) -> Iterator[Any]:
    """The patterns inside a node of the parser's tree, whose nodes are tuples and lists of many shapes."""
    if isinstance(argument, re._parser.SubPattern):  # type: ignore[attr-defined]
        yield argument
    elif isinstance(argument, tuple | list):
        for part in argument:
            yield from _parts(part)
