"""The languages that run as plain processes, as data: what runs a script, how that is tried, what to install where it is missing.

kernels/<language>/script.toml holds one table, and `[[alternative]]` tables whose keys come before those of the language:

    install      what to install when no alternative is there
    extension    of its files' names
    program      the program that is looked for on the sandbox's PATH: all its occurrences, in order
    check        commands run inside the sandbox, `{program}` in their words: all must end with 0
                 [[check]] argv, and install: what is missing when this one fails and those before it do not
    argv, name, stdin, wrap, files, environment
                 how a script runs: kernels/guest/commands.py
    file         the same keys once more, for a script with a bound file: FILE_PATH is then a variable of its environment
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import KernelError, UsageError
from sandboxmcp.core.resources import data_folder


class UnknownLanguage(UsageError):
    """Nothing here knows a language of this name; `known` are the names that may be used."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, 1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown language {name[:40]!r}", f"{hint}Known: {', '.join(known)}.")


_TABLE = ("argv", "name", "stdin", "wrap", "files", "environment")


@dataclass(frozen=True, slots=True)
class Check:
    """A command that must succeed inside, and what to install when it does not."""

    argv: tuple[str, ...]
    install: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to run a language."""

    program: str
    checks: tuple[Check, ...]
    table: Mapping[str, Any]
    """As kernels/guest/commands.py takes it; `{program}` is still in it."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """What is added to the table when a file is bound."""


@dataclass(frozen=True, slots=True)
class ScriptLanguage:
    """A language whose one-shot scripts are plain processes of the launcher."""

    name: str
    install: str
    extension: str
    """Of its files' names, with the dot."""
    alternatives: tuple[Alternative, ...]

    @property
    def info(self) -> dict[str, str]:
        """`language_info` of a kernel_info_reply."""
        return {"name": self.name, "mimetype": "text/plain", "file_extension": self.extension, "version": ""}


def filled(alternative: Alternative, program: str, file: str | None = None) -> dict[str, Any]:
    """The table for the guest: with the program's path, and with a bound file (its path inside) when there is one."""
    table = dict(alternative.table)
    if file is not None:
        for key, value in alternative.file.items():
            table[key] = {**table.get(key, {}), **value} if isinstance(value, dict) else [*table.get(key, []), *value]
        table["environment"] = {**table.get("environment", {}), "FILE_PATH": file, "FILE_CONTENT_PATH": file}
    return {**table, "argv": [word.replace("{program}", program) for word in table["argv"]]}


def script_languages(folder: Path | None = None) -> dict[str, ScriptLanguage]:
    """The languages that run as plain processes, by name.

    Raises:
        KernelError: a script.toml cannot be used; names it.
    """
    found = {}
    for file in sorted((folder or data_folder("kernels")).glob("*/script.toml")):
        try:
            found[file.parent.name] = _language(file.parent.name, tomllib.loads(file.read_text()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise KernelError(f"{file} cannot be used: {error!r}", "Mend it.") from None
    return found


def _language(name: str, table: Mapping[str, Any]) -> ScriptLanguage:
    alternatives = [_alternative({**table, **own}) for own in table.get("alternative", [table])]
    return ScriptLanguage(name, table["install"], table["extension"], tuple(alternatives))


def _alternative(table: Mapping[str, Any]) -> Alternative:
    checks = tuple(Check(tuple(check["argv"]), check.get("install", table["install"])) for check in table.get("check", ()))
    ours = {key: table[key] for key in _TABLE if key in table}
    return Alternative(table["program"], checks, ours, table.get("file", {}))
