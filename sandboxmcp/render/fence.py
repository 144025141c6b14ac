"""Captured text is data: shown so that it cannot be taken for a line of ours.

Every captured line is shown behind a mark, `| ` or `12| ` with its number, and no line of ours starts with a bar or with
digits and a bar. This does not protect a model that obeys instructions inside data; it lets the model see that they are data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from sandboxmcp.core.text import neutral

MARK = "| "
LABEL_LENGTH = 80
"""Characters of a label that are shown and stored; handles, not labels, are what is unique."""

_PLAIN_NAME = re.compile(r"[\w./:@#+~=%&?,()\[\]*-]+")
_BLANKS = re.compile(r"\s+")


def harmless(line: str) -> str:
    """One line as `core.text.neutral` leaves it, whatever it was; text from the store is so already, paths and queries are not."""
    return line if line.isascii() and line.isprintable() else neutral(line).replace("\n", " ")


def fenced(lines: Iterable[str]) -> list[str]:
    """Each captured line behind the mark."""
    return [MARK + text if (text := harmless(line)) else MARK.rstrip() for line in lines]


def numbered(lines: Iterable[tuple[int, str]]) -> list[str]:
    """Each captured line behind its number and the mark: `12| text`."""
    return [f"{number}{fenced([line])[0]}" for number, line in lines]


def one_line(text: str, length: int) -> str:
    """Any text on one line of at most `length` characters, cut with an ellipsis."""
    if len(text) <= length and text.isascii() and text.isprintable() and text == text.strip() and "  " not in text:
        return text
    flat = _BLANKS.sub(" ", harmless(_BLANKS.sub(" ", text[: 20 * length]))).strip()
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def clean_label(text: str, otherwise: str, mask: Callable[[str], str]) -> str:
    """A label that is safe to store and to show, without the credentials in it; `otherwise` when nothing of it is left.

    Masked before it is cut: half of a credential has no shape.
    """
    return one_line(mask(text), LABEL_LENGTH).lstrip("|") or otherwise


def named(text: str, length: int) -> str:
    """A name that somebody else chose, as it stands in a line of ours: in quotation marks unless it is a plain name or path."""
    name = one_line(text, length)
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', "'") + '"'
