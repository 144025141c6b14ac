"""Tables of TOML, checked by hand: each check knows the place of what it looks at, and its error names the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.policy.packs.toml_lines import Path as Place
from sandboxmcp.policy.packs.toml_lines import line_of


class Checks:
    """The checks for one file. Each returns the value in the type that was wanted, or raises BrokenPack."""

    def __init__(self, file: Path, lines: Mapping[Place, int]) -> None:
        self.file = file
        self.lines = lines

    def fail(self, place: Place, what: str, fix: str = "") -> BrokenPack:
        return BrokenPack(self.file, line_of(place, self.lines), what, fix)

    def keys(self, table: Mapping[str, Any], place: Place, *, required: set[str], optional: set[str]) -> None:
        for key in table:
            if key not in required | optional:
                known = ", ".join(sorted(required | optional))
                raise self.fail((*place, key), f"unknown key {key!r}", f"Known here: {known}.")
        for key in sorted(required):
            if key not in table:
                raise self.fail(place, f"{_titled(place, table)} lacks {key!r}", f"Add {key}.")

    def tables(self, table: Mapping[str, Any], key: str, place: Place = ()) -> Iterator[tuple[Mapping[str, Any], Place]]:
        found = table.get(key, [])
        if not isinstance(found, list) or (not found and key in table):
            raise self.fail((*place, key), f"{key!r} wants tables, written [[{key}]]")
        for at, item in enumerate(found):
            yield self.table(item, (*place, key, at)), (*place, key, at)

    def table(self, value: Any, place: Place) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.fail(place, f"{place[-1]!r} wants a table")
        return value

    def text(self, table: Mapping[str, Any], key: str, place: Place, default: str | None = None) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.fail((*place, key), f"{key!r} wants a text")
        return value

    def names(self, table: Mapping[str, Any], key: str, place: Place) -> tuple[str, ...]:
        value = table.get(key, [])
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(item, str) and item for item in listed):
            raise self.fail((*place, key), f"{key!r} wants a text or a list of texts")
        return tuple(listed)

    def number(self, table: Mapping[str, Any], key: str, place: Place) -> int:
        value = table.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
            raise self.fail((*place, key), f"{key!r} wants a number from 0 to 9")
        return value

    def switch(self, table: Mapping[str, Any], key: str, place: Place) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            raise self.fail((*place, key), f"{key!r} wants true or false")
        return value

    def among(self, values: Sequence[Any], choices: Sequence[str], place: Place) -> None:
        for value in values:
            if value not in choices:
                raise self.fail(place, f"{place[-1]!r} is {value!r}", f"Choose from: {', '.join(choices)}.")


def _titled(place: Place, table: Mapping[str, Any]) -> str:
    """`rule 'curl-to-stdout'`, or what else names the table best."""
    kind = next((str(part) for part in reversed(place) if isinstance(part, str)), "the pack")
    return f"{kind} {table['id']!r}" if isinstance(table.get("id"), str) else kind
