"""Lines of a capture as they are shown, by number. Everything streams: only the lines that are returned are held."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from sandboxmcp.core.text import shown
from sandboxmcp.store.captures.captures import Capture

_GREP_LINE_BYTES = 1 << 20
"""Bytes of one line that `grep` looks at."""


def shown_lines(capture: Capture, first: int, last: int | None, line_bytes: int | None) -> Iterator[tuple[int, str]]:
    """(number, text) of the lines from `first` to `last`. Longer lines: `line_bytes` bytes and what was cut."""
    for number, data, cut in capture.raw_lines(max(1, first), last, line_bytes):
        yield number, shown(data) + (f"… [{cut:,} more bytes]" if cut else "")


def head_and_tail(capture: Capture, head: int, tail: int, line_bytes: int | None) -> tuple[list[str], list[str]]:
    """The first and the last lines; the second list is shorter or empty where they would overlap."""
    count = capture.lines
    first = list(shown_lines(capture, 1, head, line_bytes)) if head > 0 else []
    start = max(count - tail, len(first)) + 1
    last = deque(shown_lines(capture, start, None, line_bytes)) if tail > 0 and start <= count else deque[tuple[int, str]]()
    return [text for _, text in first], [text for _, text in last]


def matching_lines(
    capture: Capture, needle: str, first: int, last: int | None, limit: int, line_bytes: int | None
) -> list[tuple[int, str]]:
    """(number, text) of the lines that hold the needle as shown; upper and lower case differ only if the needle has upper case."""
    exact = needle != needle.lower()
    found: list[tuple[int, str]] = []
    for number, text in shown_lines(capture, first, last, _GREP_LINE_BYTES):
        at = (text if exact else text.lower()).find(needle)
        if at >= 0:
            found.append((number, _around(text, at, len(needle), line_bytes)))
            if len(found) == limit:
                break
    return found


def _around(text: str, at: int, length: int, line_bytes: int | None) -> str:
    """The text, or as many characters of it as `line_bytes` around what was found."""
    if line_bytes is None or len(text) <= line_bytes:
        return text
    start = min(max(0, at - max(0, line_bytes - length) // 2), len(text) - line_bytes)
    end = start + line_bytes
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
