"""Markdown: ATX and Setext headings outside fences (CommonMark 0.31, 4.2, 4.3 and 4.5); reStructuredText. Pure."""

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


ROW = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")


class RestructuredOutline(Outline):
    """Headings by their underlines."""

    def __init__(self) -> None:
        super().__init__()
        self._styles: list[tuple[str, bool]] = []

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        if not line.text or line.text[0].isalnum() or line.text[0] == " " or not before or ROW.match(line.text) is None:
            return None
        title = before[-1].text
        if not title.strip() or ROW.match(title) or len(line.text.rstrip()) < len(title.rstrip()):
            return None
        over = len(before) > 1 and before[-2].text.rstrip() == line.text.rstrip()
        above = before[-3:-2] if over else before[-2:-1]
        if (title[0] == " " and not over) or (above and above[0].text.strip()):
            return None
        return Heading(self._level((line.text[0], over)), title.strip(), starts_before=1 + over)

    def _level(self, style: tuple[str, bool]) -> int:
        if style not in self._styles:
            self._styles.append(style)
        return self._styles.index(style) + 1
