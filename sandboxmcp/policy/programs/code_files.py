"""Files as code: which ones a program makes, which ones it runs, and whether two paths that are known in part can be one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from sandboxmcp.policy.facts import HOLE, Word

Content = Literal["opaque", "kept", "made"]
Which = Literal["none", "first", "rest", "last", "all", "stem", "input"]
_WILD = re.compile(r"\*+|\?|\[[^\]/]+\]|\{[^{}/]*\}|\0+")
_MOST_PIECES = 40
_MOST_CHARACTERS = 4_096
"""Of a command line in which a pattern is looked for; a longer one is taken to hold it."""


@dataclass(frozen=True, slots=True)
class Maker:
    """How one program names the files that it puts content into."""

    names: tuple[str, ...]
    when: str = ""
    """A pattern; only where the arguments, joined by blanks, hold it."""
    content: Content = "opaque"
    """What stands in the file. opaque: nothing is known. kept: what stood in a file before, so that only a run of that very file by
    its name counts. made: like its inputs, so it counts only where the same code writes one of these."""
    options: frozenset[str] = frozenset()
    """Options whose value is such a file."""
    operands: Which = "none"
    """Which of its operands are; "stem": without their last suffix."""
    suffix: str = ""
    """Joined to each operand; `*` is any text."""
    files: tuple[str, ...] = ()
    """Files that it names itself; `**` is any file."""
    pattern: str = ""
    """Finds such files inside arguments: its first group, or any file where that is empty."""


@dataclass(frozen=True, slots=True)
class Loader:
    """How one program names the files that it runs as code."""

    names: tuple[str, ...]
    when: str = ""
    """A pattern; only where the arguments, joined by blanks, hold it."""
    options: frozenset[str] = frozenset()
    """Options whose value is such a file."""
    operands: Which = "none"
    files: tuple[str, ...] = ()
    """Files that it runs without being told, by their names or as `folder/name`; `*` is any text."""
    pattern: str = ""
    """Finds such files inside arguments: its first group."""
    language: str = ""
    """Of what it runs, where the file's name does not say it."""


def is_meant(thing: Maker | Loader, args: Sequence[Word]) -> bool:
    """Whether the arguments make the program do it."""
    line = " ".join(word.text for word in args)
    return not thing.when or len(line) > _MOST_CHARACTERS or re.search(thing.when, line) is not None


def named_by(thing: Maker | Loader, args: Sequence[Word]) -> Iterator[str]:
    """The files that arguments name."""
    yield from _values(args, thing.options)
    if thing.pattern:
        for word in args:
            yield from (
                next(filter(None, found.groups()), HOLE).strip()
                for found in re.finditer(thing.pattern, word.text[:_MOST_CHARACTERS])
            )
    operands = _operands(args, thing.options) if thing.operands not in ("none", "input") else []
    match thing.operands:
        case "first":
            operands = operands[:1]
        case "rest":
            operands = operands[1:]
        case "last":
            operands = operands[-1:] if len(operands) > 1 else []
        case "stem":
            operands = [operand.rpartition(".")[0] for operand in operands if "." in operand]
        case _:
            pass
    yield from (operand + getattr(thing, "suffix", "") for operand in operands)


def _values(args: Sequence[Word], options: frozenset[str]) -> Iterator[str]:
    letters = "".join(re.escape(option[1]) for option in options if len(option) == 2)
    cluster = re.compile(rf"-\w*[{letters}]") if letters else None
    for word, following in zip_longest(args, args[1:]):
        name, equals, value = word.text.partition("=")
        if word.text in options or (cluster is not None and cluster.fullmatch(word.text)):
            yield from [following.text] if following is not None else []
        elif name in options and equals:
            yield value
        elif word.text[:2] in options:
            yield word.text[2:]


def _operands(args: Sequence[Word], options: frozenset[str]) -> list[str]:
    pairs = zip([word.text for word in args], ["", *(word.text for word in args)], strict=False)
    return [text for text, last in pairs if (text == "-" or not text.startswith("-")) and last not in options]


def wild(path: str) -> str:
    """The path with HOLE for every part that is not known: patterns, braces, and what was HOLE already."""
    return _WILD.sub(HOLE, path)


def can_be_one(one: str, other: str) -> bool:
    """Whether two paths, with HOLE for what is not known, can name the same file. `HOLE/a` may also be `a`."""
    if HOLE in one and HOLE in other and "/" in one and "/" in other:  # else the middle of each would stand for all of the other
        pairs = zip(one.rsplit("/", 1), other.rsplit("/", 1), strict=True)
        return all(any(_meet(a, b) for a in _forms(left) for b in _forms(right)) for left, right in pairs)
    return any(_meet(a, b) for a in _forms(one) for b in _forms(other))


def _forms(path: str) -> list[str]:
    return [path, path[2:]] if path.startswith(HOLE + "/") and len(path) > 2 else [path]


def _meet(one: str, other: str) -> bool:
    if HOLE not in one:
        one, other = other, one
    if HOLE not in one:
        return one == other
    heads, tails = (one.split(HOLE, 1)[0], other.split(HOLE, 1)[0]), (one.rsplit(HOLE, 1)[1], other.rsplit(HOLE, 1)[-1])
    if HOLE in other:  # then each can stand for what the other has in its middle
        return _one_begins(*heads) and _one_begins(tails[0][::-1], tails[1][::-1])
    return _fits(one.split(HOLE), other)


def _one_begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _fits(pieces: Sequence[str], text: str) -> bool:
    """Whether the pieces stand in the text in order, the first at its start and the last at its end. Linear."""
    if len(pieces) > _MOST_PIECES:
        return True
    first, *middle, last = pieces
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
