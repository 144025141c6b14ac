"""XML as reports of tests write it: a suite and a case that has something to say are sections; traces inside are read too. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading
from sandboxmcp.store.chunking.output import OutputOutline
from sandboxmcp.store.lines import Line

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
