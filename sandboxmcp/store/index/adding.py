"""What comes into the store: a text is captured and cut, then indexed in one transaction, and is durable when `add` returns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import StoreError
from sandboxmcp.core.model import PROVENANCE, ContentKind, NewSource, Source
from sandboxmcp.core.text import clean_label, shown, storable
from sandboxmcp.core.words import Kept, Pieces
from sandboxmcp.store.background import Background
from sandboxmcp.store.captures.captures import Capture, Captures, Draft
from sandboxmcp.store.captures.content import Content, RawCopies
from sandboxmcp.store.captures.disk import flush
from sandboxmcp.store.chunking.cutting import Cut
from sandboxmcp.store.chunking.kinds import SAMPLE_BYTES, Form, is_picture, recognise_form, recognise_kind
from sandboxmcp.store.chunking.markup import SPELLING
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.index.deletion import Deleting
from sandboxmcp.store.index.indexer import Indexer
from sandboxmcp.store.readers.cutter import Cuts, Cutter, Watched

if TYPE_CHECKING:
    from sqlite3 import Connection

Mask = Callable[[Iterable[bytes]], Iterator[bytes]]
"""Rewrites a stream of bytes."""


class Ready(NamedTuple):
    """Captured and cut, not yet stored: nothing is acknowledged."""

    new: NewSource
    draft: Draft
    kind: ContentKind
    indexed: int
    """Bytes that the index holds."""
    cuts: Cuts
    form: Form | None


Also = Callable[["Connection", str], None]
"""Something else to write in the transaction that stores a source, whose handle it is given."""


class Adding:
    """Adds to one store. Of a capture its first and last bytes are indexed, as many as `ends` says."""

    def __init__(
        self,
        database: Database,
        captures: Captures,
        deleting: Deleting,
        *,
        cutter: Cutter,
        ends: tuple[int, int],
        mask: Mask | None,
        raw: RawCopies | None,
    ) -> None:
        self._database = database
        self._captures = captures
        self._deleting = deleting
        self._cutter = cutter
        self._ends = ends
        self._mask = mask
        self._raw = raw
        self._pieces = Pieces()
        self._kept = Kept()

    def add(self, new: NewSource, content: bytes | str | Path, *, consume: bool, also: Also | None = None) -> Source:
        """See Store.add."""
        given = self._content(new, content)
        ready = self._captured(new, given)
        if isinstance(ready, Source):
            given.finish(consume)
            return ready
        (source,) = self.stored([ready], also)
        if self._raw is not None:
            self._raw.keep(source.handle, given, ready.draft.digest)
        given.finish(consume)
        return source

    def prepared(self, new: NewSource, content: Path) -> Source | Ready:
        """A file captured, so that it can be stored together with others; or the source that it is already.

        Raises as `add` does.
        """
        if self._raw is not None:  # which is kept from the file itself
            return self.add(new, content, consume=False)
        return self._captured(new, self._content(new, content))

    def stored(self, ready: Sequence[Ready], also: Also | None = None) -> list[Source]:
        """The sources that these become, all in one transaction; without them afterwards, should it fail."""
        try:
            handles = self._written(ready, also)
        finally:
            self.drop(ready)
        if any(PROVENANCE[one.new.origin].replaces for one in ready):
            self._deleting.sweep()
        with self._database.reading() as connection:
            return [
                replace(catalogue.get(connection, handle, None), plain=one.cuts.plain)
                for handle, one in zip(handles, ready, strict=True)
            ]

    def drop(self, ready: Iterable[Ready]) -> None:
        """They are not to be stored."""
        for one in ready:
            one.cuts.close()
            self._captures.drop(one.draft)

    def _content(self, new: NewSource, content: bytes | str | Path) -> Content:
        picture = is_picture(new.mime)
        return Content(content, None if picture else self._mask, text=not picture)

    def _captured(self, new: NewSource, given: Content) -> Source | Ready:
        new = _storable(new)
        path = None if new.path is None else self._masked(new.path)
        new = replace(new, label=clean_label(self._masked(new.label)) or new.origin, path=path)
        again = PROVENANCE[new.origin].is_known_again
        if again and (known := self._known(new, None)) is not None:
            return known
        draft = self._captures.write(given.pieces())
        try:
            if again and (known := self._known(new, draft.digest)) is not None:
                self._captures.drop(draft)
                return known
            if new.total_bytes is not None:
                new = replace(new, total_bytes=new.total_bytes - given.shrunk)
            return self._ready(new, draft)
        except BaseException:
            self._captures.drop(draft)
            raise

    def _ready(self, new: NewSource, draft: Draft) -> Ready:
        with self._captures.peek(draft) as capture:
            sample = shown(b"".join(capture.read(0, SAMPLE_BYTES)))
            kind = new.kind or recognise_kind(sample, new.path or "")
            form = None if is_picture(new.mime) else recognise_form(sample, kind)
            parts = self._parts(capture)
            cuts = self._cutter.cut(capture, parts, form, outside=PROVENANCE[new.origin].is_outside)
        return Ready(new, draft, kind, sum(stop - start for start, stop in parts), cuts, form)

    def _masked(self, text: str) -> str:
        """A label or a path as it is stored."""
        return text if self._mask is None else b"".join(self._mask([storable(text).encode()])).decode("utf-8", "replace")

    def _masked_cuts(self, cuts: Iterable[Cut], form: Form | None) -> Iterable[Cut]:
        """What is indexed of a text that is spelt for a reader: without its tags and escapes a credential may be whole again."""
        if form not in SPELLING or self._mask is None:
            return cuts
        return map(self._masked_cut, cuts)

    def _masked_cut(self, cut: Cut) -> Cut:
        whole = "\n".join((cut.title, *(passage.text for passage in cut.passages)))
        if self._masked(whole) == storable(whole):
            return cut
        passages = [passage._replace(text=self._masked(passage.text)) for passage in cut.passages]
        return Cut(self._masked(cut.title), cut.first, cut.last, passages)

    def _known(self, new: NewSource, digest: str | None) -> Source | None:
        """The live source that this is, by its content; or, without a digest, by the time and size of its file."""
        with self._database.reading() as connection:
            found = catalogue.same(connection, new, digest) if digest else catalogue.same_stamp(connection, new)
        if found is None:
            return None
        with self._database.writing() as connection:
            # The session that asked last finds it in its own scope.
            connection.execute(
                "UPDATE sources SET session = ?, batch = ?, stamp = ?, gone = 0 WHERE id = ?",
                (new.session, new.batch, new.stamp, found[0]),
            )
            return replace(catalogue.get(connection, found[1], None), unchanged=True)

    def _written(self, ready: Sequence[Ready], also: Also | None) -> list[str]:
        flushing = Background()
        try:
            with self._database.writing() as connection:
                kept = [path for one in ready for path in self._captures.keep(one.draft)]
                flushing.start(partial(flush, list(dict.fromkeys(kept))))
                try:
                    # All rows first: while the indexer works, the connection is its own.
                    placed = [self._placed(connection, one) for one in ready]
                    with Indexer(connection, self._pieces, self._kept) as indexer:
                        for one, (source, _) in zip(ready, placed, strict=True):
                            _index(indexer, source, self._masked_cuts(one.cuts, one.form))
                        _record(connection, indexer)
                    if also is not None:
                        for _, handle in placed:
                            also(connection, handle)
                    return [handle for _, handle in placed]
                finally:
                    flushing.wait()
        except BaseException:
            with contextlib.suppress(StoreError):
                self._deleting.delete_captures([one.draft.digest for one in ready])  # unless another source has it
            raise

    def _placed(self, connection: Connection, one: Ready) -> tuple[int, str]:
        """The row of a source, not yet indexed: its id and its handle."""
        source, handle = catalogue.insert(connection, one.new, one.kind, one.draft, one.indexed)
        if PROVENANCE[one.new.origin].replaces:
            catalogue.replace_older(connection, one.new, source)
        return source, handle

    def index(self, connection: Connection, source: int, capture: Capture, form: Form | None, watched: Watched = iter) -> None:
        """Writes what the index holds of a source into the open transaction: of one without a form nothing.

        What is read goes through `watched`.
        """
        with (
            contextlib.closing(self._cutter.cut(capture, self._parts(capture), form, watched=watched)) as cuts,
            Indexer(connection, self._pieces, self._kept) as indexer,
        ):
            _index(indexer, source, self._masked_cuts(cuts, form))
            _record(connection, indexer)

    def _parts(self, capture: Capture) -> list[tuple[int, int]]:
        return capture.head_and_tail(*self._ends)


def _index(indexer: Indexer, source: int, cuts: Iterable[Cut]) -> None:
    indexer.begin(source)
    indexer.add(cuts)
    indexer.end()


def _record(connection: Connection, indexer: Indexer) -> None:
    for source, indexed in indexer.finish():
        catalogue.record(connection, source, indexed)


def _storable(new: NewSource) -> NewSource:
    return replace(
        new,
        project=storable(new.project),
        session=storable(new.session),
        batch=None if new.batch is None else storable(new.batch),
        path=None if new.path is None else storable(new.path),
        mime=storable(new.mime),
    )
