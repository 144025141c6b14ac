"""Regular expressions of packs: they are refused at load when they are wrong or could take very long, and searched with a bound."""

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


_MOST_BEGINNINGS = 64
_LONGEST_BEGINNING = 24
_SHORTEST_BEGINNING = 3
_LONG_ENOUGH = 4
"""Letters from which classes are no longer written out."""


def beginnings(pattern: str) -> frozenset[str]:
    """Texts with one of which every match begins, in small letters; empty when there are too many or too short ones.

    Looks only at what a match consumes: conditions about what stands around it are left out.
    """
    parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    going, ended = _begun(parsed, frozenset([""]))
    found = going | ended
    return found if found and min(map(len, found)) >= _SHORTEST_BEGINNING else frozenset()


def _begun(parsed: Any, going: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The beginnings that what follows goes on from, and those that end here since it may be too many things."""
    ended: frozenset[str] = frozenset()
    for operator, argument in parsed:
        more, over = _step(str(operator), argument, going)
        ended |= over
        going = frozenset(text for text in more if len(text) < _LONGEST_BEGINNING)
        ended |= more - going
        if not going:
            break
    return going, ended


def _step(name: str, argument: Any, going: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    none: frozenset[str] = frozenset()
    if name in {"AT", "ASSERT", "ASSERT_NOT"}:
        return going, none
    if name == "LITERAL":
        return frozenset(text + chr(argument).lower() for text in going), none
    if name == "SUBPATTERN":
        return _begun(argument[3], going)
    if name == "BRANCH":
        ways = [_begun(way, going) for way in argument[1]]
        return frozenset().union(*(more for more, _ in ways)), frozenset().union(*(over for _, over in ways))
    if name == "IN" and (letters := _letters(argument)) and (len(letters) <= _FEW or min(map(len, going)) < _LONG_ENOUGH):
        more = frozenset(text + letter for text in going for letter in letters)
        return (more, none) if len(more) <= _MOST_BEGINNINGS else (none, going)
    if name == "MAX_REPEAT" and argument[:2] == (0, 1):
        more, over = _begun(argument[2], going)
        return going | more, over
    if name == "MAX_REPEAT" and argument[0] >= 1:
        more, over = _begun(argument[2], going)
        return none, more | over
    return none, going


def _letters(members: Any) -> frozenset[str]:
    """Those of a class, in small letters; empty for one that is not spelled out."""
    letters: set[str] = set()
    for operator, argument in members:
        if str(operator) == "LITERAL":
            letters.add(chr(argument).lower())
        elif str(operator) == "RANGE":
            letters.update(chr(code).lower() for code in range(argument[0], argument[1] + 1))
        else:
            return frozenset()
    return frozenset(letters)


def unconditional(pattern: bytes, flags: int) -> re.Pattern[bytes]:
    """A pattern without its conditions about what stands around: it matches wherever the pattern does, and elsewhere."""
    parsed = re._parser.parse(pattern, flags)  # type: ignore[attr-defined]
    _drop_conditions(parsed)
    compiled: re.Pattern[bytes] = re._compiler.compile(parsed, flags)  # type: ignore[attr-defined]
    return compiled


def _drop_conditions(argument: Any) -> None:
    if isinstance(argument, re._parser.SubPattern):  # type: ignore[attr-defined]
        argument.data = [node for node in argument.data if str(node[0]) not in {"AT", "ASSERT", "ASSERT_NOT"}]
        for _, inside in argument.data:
            _drop_conditions(inside)
    elif isinstance(argument, tuple | list):
        for part in argument:
            _drop_conditions(part)
