"""Argument shapes: which command lines of a program are brokered, and what the real program is run with instead. Pure; the data
is in packs.

A shape begins with fixed words, takes listed options with checked values, and so many operands of one form. Values that are
files go through descriptors: a `file` is opened inside the sandbox and copied into the box, a `folder` is where the box's
results are unpacked, inside the sandbox again. So no program in a box ever sees the project.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sandboxmcp.policy.programs.options import OptionTable, read_options
from sandboxmcp.policy.programs.order import Refusal

RESULTS = "/tmp/results"
"""Where a program in its box puts what is to be unpacked."""
INPUTS = "/run/inputs"
FLAG, FILE, FOLDER = "flag", "file", "folder"
"""What an option's rule may be instead of a regular expression for its value."""
_MOST_LETTERS = 4000


@dataclass(frozen=True, slots=True)
class Shape:
    """One form of command line."""

    name: str
    words: tuple[str, ...]
    options: OptionTable
    """`taken` holds FLAG, FILE, FOLDER, or a regular expression for the whole value."""
    operands: tuple[str, ...] = ()
    """A regular expression for each operand, the last one for all that follow."""
    least: int = 0
    most: int = 0
    adds: tuple[str, ...] = ()
    """Words that follow the fixed ones; `{results}` is the folder in the box that is unpacked."""
    results: bool = False
    """It leaves files; without a FOLDER option they go to the working folder."""
    requires: tuple[str, ...] = ()
    """Options, by canonical name, without which it is not this shape."""
    input_line: str = ""
    """A regular expression for every line of its FILE values."""
    streams: tuple[str, ...] = ()
    """Not empty: its stdin is the script's, of which these regular expressions allow the first lines, up to the last of them."""


@dataclass(frozen=True, slots=True)
class ProgramOrder:
    """A command line that has a shape."""

    shape: str
    argv: tuple[str, ...]
    """Of the real program, the program itself left out."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Path in the box to path as the script wrote it."""
    results: str | None = None
    """The folder that the results are unpacked in."""
    streams: tuple[str, ...] = ()
    input_line: str = ""


def begins(shape: Shape, argv: Sequence[str]) -> bool:
    return tuple(argv[: len(shape.words)]) == shape.words


def read_shape(shape: Shape, argv: Sequence[str]) -> ProgramOrder:
    """The order of a command line that begins as the shape does.

    Raises:
        Refusal: an option or an operand has no place in it.
    """
    options, operands = read_options(shape.options, argv[len(shape.words) :])
    if not shape.least <= len(operands) <= shape.most:
        raise Refusal(f"{' '.join(shape.words)} wants {_span(shape.least, shape.most)} arguments here, not {len(operands)}")
    for at, operand in enumerate(operands):
        _check("the argument", operand, shape.operands[min(at, len(shape.operands) - 1)])
    if lacking := [name for name in shape.requires if name not in dict(options)]:
        raise Refusal(f"{' '.join(shape.words)} wants {lacking[0]} here")
    words: list[str] = []
    inputs: dict[str, str] = {}
    results = "." if shape.results else None
    for name, value in options:
        rule = shape.options.taken[name]
        if value is None:
            words.append(name)
        elif rule == FOLDER:
            results = _path(name, value)
        elif rule == FILE:
            inside = f"{INPUTS}/{len(inputs)}"
            inputs[inside] = _path(name, value)
            words += [name, inside]
        else:
            _check(f"option {name}", value, rule)
            words += [name, value]
    adds = [word.replace("{results}", RESULTS) for word in shape.adds]
    return ProgramOrder(shape.name, (*shape.words, *adds, *words, *operands), inputs, results, shape.streams, shape.input_line)


def _check(what: str, value: str, pattern: str) -> None:
    if value.startswith("-") or len(value) > _MOST_LETTERS or "\0" in value or not re.fullmatch(pattern, value):
        raise Refusal(f"{what}: {value[:80]!r} is not of a form that is allowed")


def _path(name: str, value: str) -> str:
    if not value or "\0" in value or len(value) > _MOST_LETTERS:
        raise Refusal(f"option {name} wants a path")
    return value


def _span(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"
