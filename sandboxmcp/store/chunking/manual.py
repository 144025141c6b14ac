"""Man pages as they are printed: sections at the margin, subsections near it, and every option or variable an entry. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline, indent_of
from sandboxmcp.store.lines import Line

_SECTION = re.compile(r"[^\W\d_a-z][^a-z]{2,60}$")
_TAG_AND_TEXT = re.compile(r"( {2,20})(\S(?:\S| (?! )){0,60}?) {2,}\S")
_OPTION = re.compile(r"[-+]{1,2}[\w?@#][\w-]*(?:[ =]\S{1,30})?$")
_BULLET = re.compile(r"(?:[•·*o+-]|\d{1,3}[.)])$")
_SUBSECTION_INDENT = (2, 4)
_DEEPEST = 24
_TAGS = 4
"""Lines that may name one entry together: short and long spelling of an option."""
_NAME_LETTERS = 120
_ENTRY_LEVEL = 3


class ManualOutline(Outline):
    """An entry is named by the line after a blank one whose text stands deeper: on the next line, or after two blanks.

    An option needs no blank line before it.
    """

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        text = line.text
        indent = indent_of(text)
        if not text.strip() or indent > _DEEPEST:
            return None
        if indent == 0:
            return Heading(1, text.strip()) if _SECTION.match(text) and _follows_blank(before) else None
        if named := self._named_above(indent, before):
            return named
        tagged = _TAG_AND_TEXT.match(text)
        if tagged is None or not (_OPTION.match(tagged[2]) or _follows_blank(before) or self._is_beside(indent)):
            return None
        return self._entry(indent, tagged[2], 0)

    def _is_beside(self, indent: int) -> bool:
        """Lists without blank lines: an entry at the same place as the one that is open."""
        return bool(self._open) and self._open[-1].level == _ENTRY_LEVEL + indent

    def _named_above(self, indent: int, before: Sequence[Line]) -> Heading | None:
        """The heading in the line or lines right above, if this line is their text."""
        if not before or not before[-1].text.strip():
            return None
        outer = indent_of(before[-1].text)
        if not 0 < outer < indent:
            return None
        names: list[str] = []
        for line in reversed(before[-_TAGS - 1 :]):
            if not line.text.strip():
                return self._entry(outer, _shortest(names[::-1]), len(names)) if len(names) <= _TAGS else None
            if indent_of(line.text) != outer:
                break
            tagged = _TAG_AND_TEXT.match(line.text)
            names.append(tagged[2] if tagged else line.text.strip())
        stands_alone = len(names) == 1 and not self._is_text(outer)
        return self._entry(outer, names[0], 1) if stands_alone or (names and _OPTION.match(names[0])) else None

    def _is_text(self, indent: int) -> bool:
        return bool(self._open) and self._open[-1].level > _ENTRY_LEVEL and self._open[-1].level - _ENTRY_LEVEL < indent

    def _entry(self, indent: int, name: str, lines: int) -> Heading | None:
        low, high = _SUBSECTION_INDENT
        if low <= indent <= high and lines:
            return Heading(2, name, starts_before=lines)
        if _BULLET.match(name) or len(name) > _NAME_LETTERS or name.endswith((".", ";", ":")):
            return None
        return Heading(_ENTRY_LEVEL + indent, name, starts_before=lines)


def _shortest(names: Sequence[str]) -> str:
    """All names of an entry; of synopses that are long together the first."""
    together = " ".join(names)
    return together if len(together) <= _NAME_LETTERS else names[0]


def _follows_blank(before: Sequence[Line]) -> bool:
    return not before or not before[-1].text.strip()
