"""What comes into the store: a text is captured and indexed in one transaction, and is durable when `add` returns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.core.text import clean_label, shown, storable
from sandboxmcp.store import catalogue
from sandboxmcp.store.background import Background
from sandboxmcp.store.captures import Capture, Captures, Draft
from sandboxmcp.store.content import Content, RawCopies
from sandboxmcp.store.deleting import Deleting
from sandboxmcp.store.disk import flush
from sandboxmcp.store.indexer import Indexer
from sandboxmcp.store.kinds import SAMPLE_BYTES, Form, recognise_form, recognise_kind
from sandboxmcp.store.lines import numbered_lines
from sandboxmcp.store.markup import SPELLING
from sandboxmcp.store.words import Kept, Pieces

if TYPE_CHECKING:
    from sqlite3 import Connection

Mask = Callable[[Iterable[bytes]], Iterator[bytes]]
"""Rewrites a stream of bytes."""


class Adding:
    """Adds to one store. Of a capture its first and last bytes are indexed, as many as `ends` says."""

    def __init__(
        self,
        database: Database,
        captures: Captures,
        deleting: Deleting,
        *,
        ends: tuple[int, int],
        mask: Mask | None,
        raw: RawCopies | None,
    ) -> None:
        self._database = database
        self._captures = captures
        self._deleting = deleting
        self._ends = ends
        self._mask = mask
        self._raw = raw
        self._pieces = Pieces()
        self._kept = Kept()

    def add(self, new: NewSource, content: bytes | str | Path, *, consume: bool) -> Source:
        """See Store.add."""
        picture = _is_picture(new.mime)
        given = Content(content, None if picture else self._mask, text=not picture)
        label = clean_label(new.label) or new.origin
        new = _storable(new)
        again = new.origin in ("file", "text", "page")
        if again and (known := self._known(new, label, None)) is not None:
            return known
        draft = self._captures.write(given.pieces())
        try:
            if again and (known := self._known(new, label, draft.digest)) is not None:
                given.finish(consume)
                return known
            if new.total_bytes is not None:
                new = replace(new, total_bytes=new.total_bytes - given.shrunk)
            handle = self._stored(new, label, draft)
        finally:
            self._captures.drop(draft)
        if self._raw is not None:
            self._raw.keep(handle, given, draft.digest)
        given.finish(consume)
        if new.origin in ("file", "page"):
            self._deleting.sweep()
        with self._database.reading() as connection:
            return catalogue.get(connection, handle, None)

    def _known(self, new: NewSource, label: str, digest: str | None) -> Source | None:
        """The live source that this is, by its content; or, without a digest, by the time and size of its file."""
        with self._database.reading() as connection:
            found = catalogue.same(connection, new, label, digest) if digest else catalogue.same_stamp(connection, new, label)
        if found is None:
            return None
        with self._database.writing() as connection:
            # The session that asked last finds it in its own scope.
            connection.execute(
                "UPDATE sources SET session = ?, batch = ?, stamp = ?, gone = 0 WHERE id = ?",
                (new.session, new.batch, new.stamp, found[0]),
            )
            return replace(catalogue.get(connection, found[1], None), unchanged=True)

    def _stored(self, new: NewSource, label: str, draft: Draft) -> str:
        flushing = Background()
        try:
            with self._captures.peek(draft) as capture, self._database.writing() as connection:
                flushing.start(partial(flush, self._captures.keep(draft)))
                try:
                    return self._insert(connection, new, label, draft, capture)
                finally:
                    flushing.wait()
        except BaseException:
            with contextlib.suppress(StoreError):
                self._deleting.delete_captures([draft.digest])  # unless another source has it
            raise

    def _insert(self, connection: Connection, new: NewSource, label: str, draft: Draft, capture: Capture) -> str:
        sample = shown(b"".join(capture.read(0, SAMPLE_BYTES)))
        kind = new.kind or recognise_kind(sample)
        form = recognise_form(sample, kind)
        indexed = sum(stop - start for start, stop in self._parts(capture))
        source, handle = catalogue.insert(connection, new, label, kind, draft, indexed)
        if new.origin in ("file", "page"):
            catalogue.replace_older(connection, new, label, source)
        self.index(connection, source, capture, form)
        return handle

    def index(self, connection: Connection, source: int, capture: Capture, form: Form) -> None:
        """Writes what the index holds of a source into the open transaction."""
        with Indexer(connection, source, self._pieces, self._kept) as indexer:
            for start, stop in self._parts(capture):
                indexer.add(numbered_lines(capture.read(start, stop), capture.line_at(start), SPELLING.get(form)), form)
            catalogue.record(connection, source, indexer.finish())

    def _parts(self, capture: Capture) -> list[tuple[int, int]]:
        return capture.head_and_tail(*self._ends)


def _storable(new: NewSource) -> NewSource:
    return replace(
        new,
        project=storable(new.project),
        session=storable(new.session),
        batch=None if new.batch is None else storable(new.batch),
        path=None if new.path is None else storable(new.path),
        mime=storable(new.mime),
    )


def _is_picture(mime: str) -> bool:
    return mime.startswith(("image/", "audio/", "video/")) and mime != "image/svg+xml"
