"""ARIA snapshots of pages (Playwright's YAML): every named region, heading and table by its role and name. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sandboxmcp.store.chunking.outline import Heading, Outline
from sandboxmcp.store.lines import Line

NODE = re.compile(r"( *)- (?:'|\")?([a-z]+)(?: (\"(?:[^\"\\]|\\.)*\"|/.+?/))?((?: \[[^\]]*\])*)(?:'|\")?(:.*)?$")
_REGIONS = frozenset(
    "main navigation banner contentinfo complementary region search form dialog alertdialog table grid treegrid tree list menu"
    " menubar tablist tabpanel toolbar group article figure".split()
)
_JOINED_BYTES = 300


class SnapshotOutline(Outline):
    """A region lasts as long as lines stand deeper; a heading until the next one beside it or the end of its region."""

    joins_small = _JOINED_BYTES

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
