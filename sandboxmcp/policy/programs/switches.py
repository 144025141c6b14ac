"""Command lines as programs of Windows read them: switches without case, shortened, after a dash or a slash.

Sources: about_PowerShell_exe and about_Pwsh (any prefix that is long enough; `-` may be a longer dash, doubled, or `/`), cmd /?.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sandboxmcp.policy.facts import HOLE, Word

_SWITCH = re.compile(r"(?:--?|/{1,2}|[\u2013-\u2015])(\?|[A-Za-z]+)(.*)", re.DOTALL)
Switches = tuple[list[tuple[str, Word | None]], list[Word], list[str]]
"""Options, operands, and switches that are not known."""


class SwitchTable(Protocol):
    """What a program's table says of its switches (knowledge.py has the tables)."""

    @property
    def canonical(self) -> Mapping[str, str]:
        """Each spelling, with its dash, and the canonical name that it leads to."""

    @property
    def code(self) -> Collection[str]:
        """Canonical names of the switches that carry code."""

    @property
    def valued(self) -> Collection[str]:
        """Canonical names of the switches that take a value."""


def read_switches(program: SwitchTable, words: Sequence[Word]) -> Switches:
    """What the words are to the program. What follows a switch that carries code is operands."""
    options: list[tuple[str, Word | None]] = []
    unlisted: list[str] = []
    at = 0
    while at < len(words) and (found := _SWITCH.fullmatch(words[at].text)):
        word, name = words[at], _named(program, found[1].lower())
        at += 1
        rest = found[2]
        if name is None and (short := _named(program, found[1][0].lower())) in program.code:
            name, rest = short, found[1][1:] + found[2]  # cmd takes `/cdir` for `/c dir`
        if name is None:
            unlisted.append(word.text)
            continue
        value = None
        if rest and name in program.code:
            value = Word(rest, word.line)
        elif rest.startswith(":") and name in program.valued:
            value = Word(rest[1:], word.line)
        elif name in program.valued and not rest:
            value = words[at] if at < len(words) else None
            at += 1
        options.append((name, value))
        if name in program.code:
            break
    return options, list(words[at:]), unlisted


def _named(program: SwitchTable, spelled: str) -> str | None:
    """The canonical name of a switch; of several that begin so, the first that the pack lists is the one that is meant."""
    spellings = program.canonical
    if (exact := f"-{spelled}") in spellings:
        return spellings[exact]
    return next((canonical for spelling, canonical in spellings.items() if spelling.startswith(exact)), None)


def decoded(text: str) -> str | None:
    """PowerShell's encoded command: base64 of UTF-16LE; None when it is none, or not known."""
    if HOLE in text:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
        return raw.decode("utf-16-le").replace("\0", "")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
