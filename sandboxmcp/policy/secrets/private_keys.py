"""Where the bodies of private keys in PEM lie: whatever stands before each line, on one line with written escapes, and cut ones.

RFC 7468; also OpenSSH's and PGP's blocks. Not covered: lines from the middle of a key alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

LONGEST = 64 << 10
"""Bytes of a body: what lies beyond is not looked at."""
_SPACE = rb"(?:[ +_]|%20)"
_WORDS = rb"(?:[A-Z0-9]{1,20}" + _SPACE + rb"){0,4}PRIVATE" + _SPACE + rb"KEY(?:" + _SPACE + rb"BLOCK)?-----"
_MARK = re.compile(rb"-----(?:BEGIN|(?P<end>END))" + _SPACE + _WORDS)
WORDS = (b"private key", b"private+key", b"private%20key", b"private_key-----")
"""In small letters one of them is in every mark."""
_BODY = re.compile(rb"[A-Za-z0-9+/]{24}")
_BEHIND = rb"[\"',\\\s;|)\]}]{0,80}"
_LINE = re.compile(rb"[^\n]{0,48}?[A-Za-z0-9+/]{32,128}={0,2}" + _BEHIND)
"""A line of a body, with what may stand before it (a mark of quotation, a line number, a file's name) and behind it."""
_LAST_LINE = re.compile(rb"(?:[^\n]{0,47}[^\nA-Za-z0-9+/=])?[A-Za-z0-9+/=]{1,128}" + _BEHIND)
_NO_WORD = re.compile(rb"[A-Za-z+/][0-9+/=]|[0-9+/][A-Za-z+/]|[a-z][A-Z]")
_HEADER = re.compile(rb"(?:[^\n]{0,48}?(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): [^\n]{0,200})?[^\nA-Za-z=]{0,48}")
_WRITTEN = re.compile(rb"(?:[A-Za-z0-9+/=\s\"',]|\\{1,8}(?:[nrt]|u000[ad]|x0[ad])|%0[AaDd]|%2[BbFf]|%3[Dd])*")
"""A body on one line, with written line ends."""


def bodies(text: bytes) -> Iterator[tuple[int, int]]:
    """The ranges of all bodies, in order; a range may go over lines."""
    marks = list(_MARK.finditer(text))
    at = 0
    for mark, following in zip_longest(marks, marks[1:]):
        if mark["end"]:
            start, end = _without_beginning(text, mark.start(), at), mark.start()
        else:
            start = mark.end()
            most = min(len(text) if following is None else following.start(), start + LONGEST)
            ended = following is not None and following["end"] and following.start() == most
            end = most if ended else _without_end(text, start, most)
        at = mark.end()
        if end > start and _BODY.search(text, start, end):
            yield start, end
            at = max(at, end)


def _without_end(text: bytes, start: int, most: int) -> int:
    """Where a body ends that has no mark behind it: behind the lines that look like one."""
    newline = text.find(b"\n", start, most)
    written = _WRITTEN.match(text, start, newline if newline >= 0 else most)
    if newline < 0 or written is None or text[start:newline].strip():
        return written.end() if written else start
    begun = False
    while newline >= 0:
        following = text.find(b"\n", newline + 1, most)
        place = (newline + 1, following if following >= 0 else most)
        if not _LINE.fullmatch(text, *place) and (begun or not _HEADER.fullmatch(text, *place)):
            return place[1] if begun and _LAST_LINE.fullmatch(text, *place) and _NO_WORD.search(text, *place) else newline
        begun = begun or _LINE.fullmatch(text, *place) is not None
        newline = following
    return most


def _without_beginning(text: bytes, end: int, floor: int) -> int:
    """Where the lines before a mark start that look like a body; `end` when there are none."""
    floor = max(floor, end - LONGEST)
    newline, found, first = text.rfind(b"\n", floor, end), end, True
    while newline > floor:
        before = text.rfind(b"\n", floor, newline)
        start = before + 1 if before >= 0 else floor
        if _LINE.fullmatch(text, start, newline):
            found = start
        elif not (first and _LAST_LINE.fullmatch(text, start, newline)):
            break
        newline, first = before, False
    return found
