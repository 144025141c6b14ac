"""The chunks of a text by its form: which outline reads which. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sandboxmcp.store.chunking.code import code_chunks
from sandboxmcp.store.chunking.elements import ElementOutline
from sandboxmcp.store.chunking.history import HistoryOutline
from sandboxmcp.store.chunking.keys import KeyOutline, SnapshotOutline
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.chunking.manual import ManualOutline
from sandboxmcp.store.chunking.markdown import MarkdownOutline, RestructuredOutline
from sandboxmcp.store.chunking.outline import Outline
from sandboxmcp.store.chunking.output import OutputOutline, ReportOutline
from sandboxmcp.store.chunking.parts import Chunk
from sandboxmcp.store.chunking.records import RecordsOutline, RowsOutline
from sandboxmcp.store.chunking.sections import sections
from sandboxmcp.store.chunking.steps import Steps
from sandboxmcp.store.lines import Line

VERSION = 5
"""Raised by every change of how texts are recognised, spelt or cut: what an earlier version has cut is then cut anew."""

_OUTLINES: dict[Form, Callable[[], Outline]] = {
    "html": Outline,
    "history": HistoryOutline,
    "json": KeyOutline,
    "lines": OutputOutline,
    "manual": ManualOutline,
    "markdown": MarkdownOutline,
    "plain": Outline,
    "records": RecordsOutline,
    "report": ReportOutline,
    "restructured": RestructuredOutline,
    "rows": RowsOutline,
    "snapshot": SnapshotOutline,
    "xml": ElementOutline,
}


def chunked(lines: Iterable[Line], form: Form, steps: Steps | None = None) -> Iterator[Chunk]:
    """The chunks of a text, lazily. `steps`: what it may be cut into."""
    steps = steps or Steps()
    return code_chunks(lines, steps) if form == "code" else sections(lines, _OUTLINES[form](), steps)
