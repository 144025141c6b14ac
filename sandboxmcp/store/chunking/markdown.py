"""Markdown: ATX and Setext headings outside fences (CommonMark 0.31, 4.2, 4.3 and 4.5). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+")
_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t]*$")
_FIRST_MARKS = "#=-`~"
_MAY_MARK = frozenset(f"{_FIRST_MARKS} ")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class MarkdownOutline(Outline):
    """Headings by their marks; a fence stays whole where it fits."""

    def __init__(self) -> None:
        super().__init__()
        self._fence = ""

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        self.opens_fence = False
        text = line.text
        if text[:1] not in _MAY_MARK or text[:4].lstrip(" ")[:1] not in _FIRST_MARKS:
            return None
        if fence := _FENCE.match(line.text):
            self._toggle(fence[1], line.text)
        elif not self._fence:
            if atx := _ATX.match(line.text):
                # Marks may close a heading. An expression that says so tries every blank of a long run against every other.
                text = line.text[atx.end() :].rstrip(" \t").rstrip("#").rstrip(" \t")
                return Heading(len(atx[1]), text)
            underline = _UNDERLINE.match(line.text)
            if underline and before and before[-1].text.strip() and (len(before) < 2 or not before[-2].text.strip()):
                return Heading(1 if underline[1][0] == "=" else 2, before[-1].text.strip(), starts_before=1)
        return None

    def _toggle(self, mark: str, text: str) -> None:
        if not self._fence:
            self._fence = mark
            self.opens_fence = self.in_fence = True
        elif mark.startswith(self._fence) and text.strip() == mark:
            self._fence = ""
            self.in_fence = False
