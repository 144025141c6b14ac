"""Captured text is data: shown so that it cannot be taken for a line of ours.

Every captured line is shown behind a mark, `| ` or `12| ` with its number, and no line of ours starts with a bar or with
digits and a bar. What could break out of its line (control characters, other line ends, direction overrides) is taken
out first. This does not protect a model that obeys instructions inside data; it lets the model see that they are data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = "| "
LABEL_LENGTH = 80
"""Characters of a label that are shown and stored; handles, not labels, are what is unique."""

_BREAKS_OUT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BLANKS = re.compile(r"\s+")


def harmless(line: str) -> str:
    """One line without control characters (tabs stay), line ends of any alphabet, direction marks and lone surrogates."""
    if line.isascii() and line.isprintable():
        return line
    return _LONE_SURROGATE.sub("\ufffd", _BREAKS_OUT.sub("", line))


def fenced(lines: Iterable[str]) -> list[str]:
    """Each captured line behind the mark."""
    return [MARK + text if (text := harmless(line)) else MARK.rstrip() for line in lines]


def numbered(lines: Iterable[tuple[int, str]]) -> list[str]:
    """Each captured line behind its number and the mark: `12| text`."""
    return [f"{number}{fenced([line])[0]}" for number, line in lines]


def one_line(text: str, length: int) -> str:
    """Any text on one line of at most `length` characters, cut with an ellipsis."""
    flat = _BLANKS.sub(" ", harmless(_BLANKS.sub(" ", text[: 20 * length]))).strip()
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def clean_label(text: str, otherwise: str) -> str:
    """A label that is safe to store and to show; `otherwise` when nothing of it is left."""
    return one_line(text, LABEL_LENGTH).lstrip("|") or otherwise
