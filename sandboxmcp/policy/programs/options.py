"""Command lines read by allow-list: an option that is not taken is refused, with its reason where one is known. Pure.

Stricter than getopt_long(3) on purpose: no abbreviations, since what an abbreviation means changes with the next option that is
added. The tables are data: policies/programs.toml, which the policy's static judgement reads too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sandboxmcp.policy.programs.order import Refusal

_MOST_WORDS = 1000


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of one program. `canonical` leads every spelling, dashes included, to one name."""

    canonical: Mapping[str, str]
    valued: frozenset[str]
    """Canonical names of those that take a value."""
    taken: Mapping[str, str]
    """Canonical name to what the broker does with it; see `treatments`."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Canonical name to the reason, a clause such as `it reads options from a file`."""


Option = tuple[str, str | None]


def read_options(table: OptionTable, argv: Sequence[str]) -> tuple[list[Option], list[str]]:
    """The options in order, by canonical name, and the operands.

    Raises:
        Refusal: an option is not on the allow-list, lacks its value, or has one too many.
    """
    if len(argv) > _MOST_WORDS:
        raise Refusal(f"more than {_MOST_WORDS:,} arguments")
    options: list[Option] = []
    operands: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            operands += words
        elif word.startswith("--"):
            options.append(_long(table, word, words))
        elif word.startswith("-") and word != "-":
            options += _cluster(table, word, words)
        else:
            operands.append(word)
    return options, operands


def _long(table: OptionTable, word: str, words: Iterator[str]) -> Option:
    name, has_value, value = word.partition("=")
    canonical = allowed(table, name)
    if canonical not in table.valued:
        if has_value:
            raise Refusal(f"option {name} takes no value")
        return canonical, None
    return canonical, value if has_value else _next(words, name)


def _cluster(table: OptionTable, word: str, words: Iterator[str]) -> list[Option]:
    """`-sSo FILE`, `-oFILE`; a spelling of two letters (wget's `-nv`) is tried before one of one."""
    options: list[Option] = []
    at = 1
    while at < len(word):
        width = 2 if "-" + word[at : at + 2] in table.canonical and len(word) >= at + 2 else 1
        name = "-" + word[at : at + width]
        canonical = allowed(table, name)
        at += width
        if canonical in table.valued:
            options.append((canonical, word[at:] if at < len(word) else _next(words, name)))
            return options
        options.append((canonical, None))
    return options


def _next(words: Iterator[str], name: str) -> str:
    value = next(words, None)
    if value is None:
        raise Refusal(f"option {name} needs a value")
    return value


def allowed(table: OptionTable, spelling: str) -> str:
    """The canonical name of an option that is taken.

    Raises:
        Refusal: it is not.
    """
    canonical = table.canonical.get(spelling)
    if canonical is not None and canonical in table.taken:
        return canonical
    reason = table.refused.get(canonical or "")
    shown = spelling[:60]
    raise Refusal(f"option {shown} is refused: {reason}" if reason else f"option {shown} is not on the allow-list")
