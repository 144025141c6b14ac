"""From what a run left on disk to stored sources: every stream under its label, every artifact with a handle of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.model import Hit, NewSource, Origin, Outcome, Scope, Source, StreamCapture
from sandboxmcp.render.extract import ERROR_WORDS, HEAD_LINES, TAIL_LINES, error_lines, looks_like_error
from sandboxmcp.render.items import THRESHOLD, Item, Stream, short_stream
from sandboxmcp.session import Session

if TYPE_CHECKING:
    from sandboxmcp.store.index.adding import Also

_LINE_BYTES = 2_000
"""More of one line is never shown in an extract."""


Closing = Callable[[Sequence[str]], "Also"]
"""Gives what is to be written with the last capture, from the handles of the ones before."""


def remember(
    session: Session,
    outcome: Outcome,
    *,
    label: str,
    source_label: str,
    origin: Origin,
    batch: str,
    closing: Closing | None = None,
) -> Item:
    """Store everything that the outcome captured (its files are taken away) and return what an answer needs of it.

    `label` is how the answer names the item, `source_label` how the store does. Blocking; call it on a thread.

    Raises:
        StoreError: the store cannot take it; it says where the capture files lie, which stay there.
    """

    begun = time.perf_counter()
    base = NewSource(source_label, origin, session.project, session.id, batch=batch)
    captured = [(replace(base, origin="artifact", mime=artifact.mime), artifact.path) for artifact in outcome.artifacts]
    streams = [(outcome.stdout, ""), (outcome.stderr, " stderr")]
    kept = [(stream, suffix) for stream, suffix in streams if stream is not None and stream.kept]
    captured += [(replace(base, label=source_label + suffix, total_bytes=stream.total), stream.path) for stream, suffix in kept]
    for stream, _ in streams:
        _remove_empty(stream)
    sources = _added(session, captured, closing)
    artifacts = sources[: len(outcome.artifacts)]
    shown = {suffix: stored_stream(session, one) for (_, suffix), one in zip(kept, sources[len(artifacts) :], strict=True)}
    stored_s = time.perf_counter() - begun
    return Item(label, outcome, shown.get(""), shown.get(" stderr"), tuple(artifacts), stored_s=stored_s)


def _added(session: Session, captured: Sequence[tuple[NewSource, Path]], closing: Closing | None) -> list[Source]:
    sources: list[Source] = []
    try:
        for new, path in captured:
            is_last = closing is not None and len(sources) == len(captured) - 1
            also = closing([one.handle for one in sources]) if closing is not None and is_last else None
            sources.append(session.store.add(new, path, consume=True, also=also))
    except StoreError as error:
        left = captured[len(sources) :]
        session.store.owe(left)
        kept = "What the run wrote is kept, and stored as soon as sandboxmcp can"
        raise type(error)(f"{error.what}. {kept}: {left[0][1].with_suffix('')}.*", error.fix) from None
    return sources


def stored_stream(session: Session, source: Source) -> Stream:
    """What an answer needs of a stored stream. Blocking."""
    store = session.store
    if source.total_bytes <= THRESHOLD:
        return short_stream(source, store.read_lines(source.handle, 1, max(source.lines, 1)))
    head, tail = store.head_tail(source.handle, HEAD_LINES, TAIL_LINES, line_bytes=_LINE_BYTES)
    after = source.lines - len(tail) + 1
    return Stream(source, None, tuple(enumerate(head, 1)), (), tuple(enumerate(tail, after)))


def with_error_lines(session: Session, stream: Stream) -> Stream:
    """The stream with the lines of its index that look like errors, for an answer that no query narrows. Blocking."""
    if stream.whole is not None:
        return stream
    hits = session.store.search(ERROR_WORDS, Scope(session.project, handles=(stream.source.handle,)))
    rows = dict(row for hit in hits for row in _numbered(session, hit))
    return replace(stream, errors=tuple(error_lines(sorted(rows.items()))))


def _numbered(session: Session, hit: Hit) -> list[tuple[int, str]]:
    """The hit's lines with their numbers. Parts of very long lines do not say which line they are of: those are read again."""
    lines = hit.text.split("\n")
    if not hit.partial:
        return list(enumerate(lines, hit.first_line))
    if hit.first_line == hit.last_line:
        return [(hit.first_line, next(filter(looks_like_error, lines), lines[0]))]
    whole = session.store.read_lines(hit.handle, hit.first_line, hit.last_line, line_bytes=_LINE_BYTES)
    return list(enumerate(whole, hit.first_line))


def _remove_empty(stream: StreamCapture | None) -> None:
    if stream is not None and not stream.kept:
        with suppress(FileNotFoundError):
            stream.path.unlink()
