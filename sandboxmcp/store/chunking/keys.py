"""JSON on many lines, under its keys and names; ARIA snapshots of pages (Playwright's YAML), under their regions. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline, indent_of
from sandboxmcp.store.lines import Line

_OPENS = re.compile(r'\s*(?:"((?:[^"\\]|\\.){1,100})"\s*:\s*)?[\[{]$')
_NAMED = re.compile(r'\s*"(name|title|id|key|label|path|file)"\s*+:\s*+"?((?:[^"\\]|\\.){1,100}?)"?,?$')
_STRUCTURE = re.compile(r'\s*(?:"(?:[^"\\]|\\.){1,100}"\s*:|[\[{}\]])')
"""Other lines are values, or parts of long ones."""
_JOINED_BYTES = 500


class KeyOutline(Outline):
    """Levels are indents: a key is left when a line stands no deeper. A record without a key is called by its name."""

    joins_small = _JOINED_BYTES

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        text = line.text.rstrip()
        if _STRUCTURE.match(text) is None:
            return None
        if text[-1] in "{[" and (opens := _OPENS.match(text)):
            return Heading(self._level(text), opens[1] or "")
        if self._open:
            return self._inside(text)
        return None

    def _inside(self, text: str) -> Heading | None:
        level, heading = self._level(text), self._open[-1]
        if level <= heading.level:
            return None if text.lstrip()[0] in "}]" else Heading(level, "")
        if not heading.text and (named := _NAMED.match(text)):
            heading.text = named[2]
        return None

    def _level(self, text: str) -> int:
        return indent_of(text) + len(text) - len(text.lstrip("\t")) + 1


NODE = re.compile(r"( *)- (?:'|\")?([a-z]+)(?: (\"(?:[^\"\\]|\\.)*\"|/.+?/))?((?: \[[^\]]*\])*)(?:'|\")?(:.*)?$")
_REGIONS = frozenset(
    "main navigation banner contentinfo complementary region search form dialog alertdialog table grid treegrid tree list menu"
    " menubar tablist tabpanel toolbar group article figure".split()
)
_JOINED_NODES_BYTES = 300


class SnapshotOutline(Outline):
    """A region lasts as long as lines stand deeper; a heading until the next one beside it or the end of its region."""

    joins_small = _JOINED_NODES_BYTES

    def read(self, line: Line, before: Sequence[Line]) -> Heading | None:
        node = NODE.match(line.text)
        if node is None:
            return None
        depth, role, name = len(node[1]), node[2], node[3] or ""
        title = f"{role} {name[1:-1]}".strip()
        if role == "heading":
            return Heading(2 * depth + 2, title)
        if role in _REGIONS and node[5] == ":":
            return Heading(2 * depth + 1, title)
        return Heading(2 * depth + 1, "") if self._open and self._open[-1].level > 2 * depth + 2 else None
