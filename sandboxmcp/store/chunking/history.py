"""Git logs, diffs and patches: a commit by its subject, in it every file, in that every hunk by the function it names. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

COMMIT = re.compile(r"(?:commit [0-9a-f]{7,64}\b|From [0-9a-f]{40} )")
FILE = re.compile(r"diff --git \"?a/(.+?)\"? \"?b/(.+?)\"?$|diff (?:--combined|--cc|-\S+) (.+)$|Index: (.+)$")
HUNK = re.compile(r"@@+ -\d.*? @@+ ?(.*)$")
_MAIL_SUBJECT = re.compile(r"Subject: (?:\[[^\]]*\] ?)?(.*)")
_NEW_FILE = re.compile(r"\+\+\+ (?:b/)?([^\t]+)")
_FIRST = "cFdI@+ S"


class HistoryOutline(Outline):
    """The subject of a commit comes lines after it begins: its heading gets the text then."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: Heading | None = None
        """A commit whose subject has not been read yet."""

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        text = line.text
        if not text or text[0] not in _FIRST:
            return None
        if COMMIT.match(text):
            self._waiting = Heading(1, "")
            return self._waiting
        if self._waiting is not None:
            self._read_subject(text)
            return None
        if found := FILE.match(text):
            return Heading(2, next(filter(None, (found[2], found[3], found[4]))))
        if text.startswith("+++ ") and before and before[-1].text.startswith("--- "):
            return self._file_named_by_its_sides(text, before)
        return Heading(3, hunk[1].strip()) if text[:1] == "@" and (hunk := HUNK.match(text)) else None

    def _read_subject(self, text: str) -> None:
        subject = _MAIL_SUBJECT.match(text)
        if self._waiting is not None and (subject or text.startswith("    ")):
            self._waiting.text = (subject[1] if subject else text).strip()
            self._waiting = None

    def _file_named_by_its_sides(self, text: str, before: Sequence[Line]) -> Heading | None:
        """A patch without `diff` lines."""
        name = _NEW_FILE.match(text)
        inside = bool(self._open) and self._open[-1].level == 2 and len(before) < 8
        return Heading(2, name[1].strip(), starts_before=1) if name and not inside else None
