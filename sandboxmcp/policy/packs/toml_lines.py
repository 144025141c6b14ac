"""On which line a TOML file says what: tomllib gives values without lines, and an error must name one."""

from __future__ import annotations

import re
from collections.abc import Mapping

Path = tuple[str | int, ...]
"""Keys and positions from the top: `("rule", 2, "unless", "quiet")`."""

_KEY_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


def lines_of(text: str) -> dict[Path, int]:
    """The 1-based line of every table header and key of a document that tomllib has accepted.

    Keys inside inline tables have the line of the key that holds them; see `line_of`.
    """
    lines: dict[Path, int] = {(): 1}
    counts: dict[Path, int] = {}
    table: Path = ()
    waiting = _Value()
    for number, line in enumerate(text.splitlines() if "\r" not in text else text.replace("\r\n", "\n").split("\n"), 1):
        if waiting.is_open:
            waiting.feed(line)
            continue
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if bare.startswith("["):
            table = _table(bare, counts)
            for end in range(1, len(table) + 1):
                lines.setdefault(table[:end], number)
            continue
        keys, rest = _keys(line)
        for end in range(1, len(keys) + 1):
            lines.setdefault((*table, *keys[:end]), number)
        waiting.feed(rest)
    return lines


def line_of(path: Path, lines: Mapping[Path, int]) -> int:
    """The line of `path`, or of the nearest thing around it that has one."""
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _table(bare: str, counts: dict[Path, int]) -> Path:
    """The path of a `[table]` or `[[table]]` header; the latter begins a new element."""
    is_array = bare.startswith("[[")
    keys, _ = _keys(bare.lstrip("["))
    path: Path = ()
    for at, key in enumerate(keys):
        path = (*path, key)
        if is_array and at == len(keys) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _keys(text: str) -> tuple[tuple[str, ...], str]:
    """The parts of a dotted key at the start of `text`, and what follows it."""
    keys: list[str] = []
    at = 0
    while match := _KEY_PART.match(text, at):
        keys.append(next(part for part in match.groups() if part is not None))
        at = match.end()
        if not text.startswith(".", at):
            break
        at += 1
    return tuple(keys), text[at:]


class _Value:
    """Whether a value goes on on the next line: inside brackets, or inside a text of several lines."""

    def __init__(self) -> None:
        self.depth = 0
        self.quote = ""

    @property
    def is_open(self) -> bool:
        return bool(self.depth or self.quote)

    def feed(self, line: str) -> None:
        at = 0
        while at < len(line):
            if self.quote:
                at = self._end_of_text(line, at)
                continue
            match = _TOKEN.search(line, at)
            if match is None:
                return
            mark, at = match.group(), match.end()
            if mark in {'"""', "'''"}:
                self.quote = mark
            elif mark in "[{":
                self.depth += 1
            elif mark in "]}":
                self.depth -= 1

    def _end_of_text(self, line: str, at: int) -> int:
        """Where the text ends on this line. Up to two quotation marks may stand right before its end."""
        while at < len(line):
            if line[at] == "\\" and self.quote == '"""':
                at += 2
            elif line.startswith(self.quote, at):
                at += 3
                for _ in range(2):
                    at += line.startswith(self.quote[0], at)
                self.quote = ""
                return at
            else:
                at += 1
        return at
