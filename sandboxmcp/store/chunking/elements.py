"""XML by its elements: each that spans lines is a section, called by its tag and what it names itself. Pure.

Read tag by tag and never parsed, so that broken documents have their titles as well, and entities stay the letters they are: none
is expanded, none is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.core.words import HEADINGS_BETWEEN
from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

_MARK = re.compile(r"<!--|<!\[CDATA\[|<[!?]|</([\w:.-]{1,80})\s*>|<([A-Za-z_][\w:.-]{0,80})")
_LEAF = re.compile(r"\s*<([\w:.-]{1,80})(?:\s[^<>]{0,400})?>[^<>]*</\1>\s*$")
"""A line of one element, which most are, changes nothing."""
_TAG_END = re.compile(r"[^<>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^<>\"']*)*>")
_UNTIL = {"<!--": "-->", "<![CDATA[": "]]>"}
_ATTRIBUTE = re.compile(
    r"(?<![\w.-])(?:[\w.-]{1,40}:)?(name|id|key|label|title|include)\s*=\s*[\"']([^\"'<>]{1,100})[\"']", re.IGNORECASE
)
"""What calls an element something; a prefix does not matter."""
_CHILD = re.compile(r"<(name|title|id|label|artifactId)\b[^<>]*+>\s*+([^<>]{1,100}?)\s*+</\1>")
"""So does its first child of such a name."""
_KEY_ABOVE = re.compile(r"\s*<key>([^<>]{1,100})</key>\s*$")
_DEEPEST = 100
_JOINED_BYTES = 500
_PROLOG_LINES = 10


class ElementOutline(Outline):
    """Levels are how many elements are open. Small neighbours, such as the entries of a list, share a chunk."""

    joins_small = _JOINED_BYTES
    joins_relatives = True

    def __init__(self) -> None:
        super().__init__()
        self._tags: list[str] = []
        self._until = ""
        """What ends the comment or the like that is open."""
        self._in_tag = False
        self._nameless: Heading | None = None

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        text = line.text
        depth = len(self._tags)
        within = bool(self._until) or self._in_tag
        lowest = depth if not within and _LEAF.match(text) else self._follow(text)
        if len(self._tags) > lowest:
            return self._heading(text, lowest, before)
        if self._nameless is not None and self._nameless.level in (depth, depth + 1):
            self._name(self._nameless, text)
        if within or not text.strip() or text.lstrip().startswith("</"):
            return None
        return Heading(depth + 1, "") if self._open and self._open[-1].level > depth else None

    def _heading(self, text: str, lowest: int, before: Sequence[Line]) -> Heading:
        """Of the elements that the line has left open."""
        heading = Heading(len(self._tags), HEADINGS_BETWEEN.join(self._tags[lowest:]))
        key = _KEY_ABOVE.match(before[-1].text) if before else None
        self._nameless = heading
        if key is not None:  # a property list: the name stands before what it names
            heading.text, heading.starts_before, self._nameless = key[1].strip(), 1, None
        else:
            self._name(heading, text)
        if lowest == 0 and not self._open and len(before) <= _PROLOG_LINES:
            heading.starts_before = len(before)  # what stands before the root is a part of it
        return heading

    def _name(self, heading: Heading, text: str) -> None:
        if found := _ATTRIBUTE.search(text) or _CHILD.search(text):
            heading.text = f"{heading.text} {found[2]}"
            self._nameless = None

    def _follow(self, text: str) -> int:
        """Opens and closes what the line does; returns how few elements were open in between."""
        lowest, position = len(self._tags), 0
        while position >= 0:
            if self._until:
                position = self._after(text, position)
            elif self._in_tag:
                position = self._end_of_tag(text, position)
                lowest = min(lowest, len(self._tags))
            elif (mark := _MARK.search(text, position)) is None:
                position = -1
            else:
                position = mark.end()
                self._enter_mark(mark)
                lowest = min(lowest, len(self._tags))
        return lowest

    def _enter_mark(self, mark: re.Match[str]) -> None:
        closed, opened = mark.groups()
        if opened:
            self._in_tag = True
            self._tags.append(opened)
        elif closed:
            self._close(closed)
        else:
            self._until = _UNTIL.get(mark.group(), ">")

    def _close(self, tag: str) -> None:
        """The innermost element of this name, and what was left open in it; nothing if there is none."""
        if tag in self._tags:
            del self._tags[len(self._tags) - 1 - self._tags[::-1].index(tag) :]

    def _after(self, text: str, position: int) -> int:
        found = text.find(self._until, position)
        if found < 0:
            return -1
        found, self._until = found + len(self._until), ""
        return found

    def _end_of_tag(self, text: str, position: int) -> int:
        """Where the tag ends in this line; -1 if it goes on. One that another tag interrupts was none."""
        if end := _TAG_END.match(text, position):
            self._in_tag = False
            if end.group().endswith("/>") or len(self._tags) > _DEEPEST:
                self._tags.pop()
            return end.end()
        interrupted = text.find("<", position)
        if interrupted >= 0:
            self._in_tag = False
            self._tags.pop()
        return interrupted
