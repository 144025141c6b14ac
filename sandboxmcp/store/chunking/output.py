"""What programs print: failures of tests, stack traces and tables between other lines; reports of tests in XML. Pure.

A failure is a section named by its test; a trace is one, named by its error; the rows of a table stand under its header.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

_RUN, _FAILURE, _INNER = 1, 2, 3
"""Levels: a part of a test run, a failure in it, a trace or a table in that."""

_NAMED: dict[str, tuple[tuple[int, re.Pattern[str]], ...]] = {
    "=": ((_RUN, re.compile(r"={3,} (.{2,100}?) ={3,}$")),),  # pytest: ==== FAILURES ====
    "_": ((_FAILURE, re.compile(r"_{3,} (.{2,200}?) _{3,}$")),),  # pytest: ____ test_name ____
    "F": ((_FAILURE, re.compile(r"FAIL: (\w+ \([\w.]+\))")),),  # unittest
    "E": ((_FAILURE, re.compile(r"ERROR: (\w+ \([\w.]+\))")),),
    "-": (
        (_FAILURE, re.compile(r"--- FAIL: (\S+)")),  # go test
        (_FAILURE, re.compile(r"---- (\S+) stdout ----$")),  # cargo test
    ),
    "n": ((_FAILURE, re.compile(r"not ok \d+ (?:- )?(.{2,200})$")),),  # TAP
    " ": (
        (_FAILURE, re.compile(r" +--- FAIL: (\S+)")),
        (_FAILURE, re.compile(r" {2}● (.{2,200})$")),  # jest
        (_FAILURE, re.compile(r" {2}\d{1,4}\) (.{2,200})$")),  # mocha, rspec
    ),
}
"""By the first letter of the line: most lines are tried against nothing."""
_OVER = re.compile(
    r" *(?:--- (?:PASS|SKIP): |=== RUN |ok \d+ |ok +\t|FAIL\t|Ran \d+ tests? in |failures:$|test result: |Tests: +\d|Test Suites: )"
)
_PYTHON_TRACE = "Traceback (most recent call last):"
_PYTHON_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:$|:)")
_FRAME = re.compile(r"\s+at \S.*[:(]")
_MORE_FRAMES = re.compile(r"\s*(?:Caused by: |Suppressed: |\.\.\. \d+ )")
_PANIC = re.compile(r"(?:panic: |fatal error: |thread '.+' panicked at )")
_COLUMN = re.compile(r"[%#\d]?[A-Z][\w%/().+:-]*(?: [%A-Z(][\w%/().+:-]*){0,3}$")
_APART = re.compile(r" {2,}|\t+")
_LONGEST_HEADER = 300

_In = Literal["", "python", "frames", "block"]
_Begun = tuple[Heading, _In]


class OutputOutline(Outline):
    """Knows what it is in: a trace of Python, frames of another language, a block that lasts until a blank line, or nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._in: _In = ""
        self._failing = False

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        if self._in and self._goes_on(line.text):
            return None
        begun = self._begun(line.text, before)
        if begun is None:
            begun = (Heading(_INNER, ""), "") if self._in else None
        if begun is None:
            return None
        heading, self._in = begun
        return heading

    def _goes_on(self, text: str) -> bool:
        if self._in == "frames":
            return _FRAME.match(text) is not None or _MORE_FRAMES.match(text) is not None
        return self._trace_goes_on(text) if self._in == "python" else bool(text.strip())

    def _trace_goes_on(self, text: str) -> bool:
        """Frames are indented; the first line at the margin is the error, which names the trace."""
        heading = self._open[-1]
        if heading.text or text[:1] in (" ", "\t", ""):
            return not heading.text
        if _PYTHON_ERROR.match(text) is None:
            return False
        heading.text = text.strip()
        return True

    def _begun(self, text: str, before: Sequence[Line]) -> _Begun | None:
        for level, pattern in _NAMED.get(text[:1], ()):
            if named := pattern.match(text):
                self._failing = level == _FAILURE
                return Heading(level, named[1].strip()), ""
        if self._failing and _OVER.match(text):
            self._failing = False
            return Heading(_FAILURE, ""), ""
        if text.startswith(_PYTHON_TRACE):
            return Heading(_INNER, ""), "python"
        if text[:1] in ("p", "f", "t") and _PANIC.match(text):
            return Heading(_INNER, text), "block"
        if not before or self._in:
            return None
        above = before[-1].text
        if text[:1] in (" ", "\t") and above.strip() and _FRAME.match(text):
            return Heading(_INNER, above.strip(), starts_before=1), "frames"
        if text and is_header(above) and not is_header(text) and _APART.search(text):
            return Heading(_INNER, " ".join(above.split()), starts_before=1), "block"
        return None


def is_header(text: str) -> bool:
    """Does a line name columns: three or more, apart by blanks, each beginning with a capital?"""
    if len(text) > _LONGEST_HEADER or not text[:3].lstrip()[:1].isupper() or ("  " not in text and "\t" not in text):
        return False
    columns = _APART.split(text.strip())
    return len(columns) >= 3 and all(map(_COLUMN.match, columns))


_ELEMENT = re.compile(r"\s*<(/?)(testsuite|testcase)\b([^<>]*)>?")
_NAME = re.compile(r"\bname=\"([^\"]*)\"")
_LEVELS = {"testsuite": 1, "testcase": 2}


class ReportOutline(OutputOutline):
    """JUnit's elements; a case that is closed at once has passed and stays with its neighbours."""

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        element = _ELEMENT.match(line.text)
        if element is None:
            return super().read(line, before)
        closed = element[1] or element[3].endswith("/")
        if element[2] == "testcase" and closed:
            return Heading(2, "") if self._open and self._open[-1].level >= 2 and self._open[-1].text and not element[1] else None
        name = _NAME.search(element[3])
        self._in = ""
        return Heading(_LEVELS[element[2]], name[1] if name else "")
