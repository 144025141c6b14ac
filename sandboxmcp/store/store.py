"""The store: keeps what was captured, finds passages in it, reads any line of it back. Everything acknowledged survives kill -9.

data_dir/sandboxmcp.db        sources, index, vocabulary, usage (SQLite, WAL)
data_dir/captures/ab/….zst    the captured bytes, once per content
data_dir/incoming/…/          raw stream files on their way in, a folder for each process
data_dir/reserve              only on a disk that is nearly full: room for deleting
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import SandboxmcpError, StoreError, UsageError
from sandboxmcp.core.model import Hit, NewSource, Scope, Source
from sandboxmcp.core.text import clean_label, shown, storable
from sandboxmcp.store import catalogue
from sandboxmcp.store.background import Background
from sandboxmcp.store.captures import Capture, Captures, Draft
from sandboxmcp.store.content import Content, RawCopies
from sandboxmcp.store.counters import Counters, Usage
from sandboxmcp.store.disk import flush
from sandboxmcp.store.incoming import Incoming, Left
from sandboxmcp.store.indexer import Indexer
from sandboxmcp.store.kinds import SAMPLE_BYTES, Form, recognise_form, recognise_kind
from sandboxmcp.store.lines import numbered_lines
from sandboxmcp.store.markup import SPELLING
from sandboxmcp.store.pages import Pages, Previews
from sandboxmcp.store.reading import head_and_tail, matching_lines, shown_lines
from sandboxmcp.store.rebuilding import Repaired, index_anew
from sandboxmcp.store.schema import MIGRATIONS
from sandboxmcp.store.search import Sort, search
from sandboxmcp.store.semantic import Meaning
from sandboxmcp.store.stems import Stemmer
from sandboxmcp.store.waste import swept
from sandboxmcp.store.words import Kept, Pieces

if TYPE_CHECKING:
    from sqlite3 import Connection

Mask = Callable[[Iterable[bytes]], Iterator[bytes]]
"""Rewrites a stream of bytes."""
DATABASE = "sandboxmcp.db"
INDEX_BYTES = 32 << 20
_FORGOTTEN_TOGETHER = 50
_ANSWERING_HITS = 20
"""A source counts a hit when it is among so many best passages of a search."""


class Store:
    """One user's store. Shared by threads; other processes may have the same folder open."""

    def __init__(
        self,
        data_dir: Path,
        *,
        index_head: int = INDEX_BYTES,
        index_tail: int = INDEX_BYTES,
        mask: Mask | None = None,
        keep_raw: bool = False,
        owner: tuple[str, str] = ("", ""),
        semantic: bool = False,
    ) -> None:
        """Opens or creates the store; of a capture its first `index_head` and last `index_tail` bytes are indexed.

        `mask` rewrites what is added, with as many line ends, before anything of it is kept; `keep_raw` also keeps what it
        rewrote as it was, in a file of `raw/` named by the handle, which nothing here reads. `owner` is the project and the
        session that output belongs to which this process does not come to add. `semantic` orders the best passages of a search
        by meaning too.

        Raises:
            StoreError: the folder or the file cannot be used, with the fix.
        """
        self._index_head = index_head
        self._index_tail = index_tail
        self._database = Database(data_dir / DATABASE, MIGRATIONS)
        self._incoming = Incoming(data_dir / "incoming", owner)
        self._captures = Captures(data_dir / "captures", self._incoming.folder)
        self._mask = mask
        self._raw = RawCopies(data_dir / "raw") if keep_raw else None
        self._stems = Stemmer()
        self._reorder = Meaning().reordered if semantic else None
        self._pieces = Pieces()
        self._kept = Kept()
        self._counters = Counters(self._database)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(StoreError):
            self._counters.write(patient=True)
        self._incoming.close()
        self._database.close()
        self._stems.close()

    @property
    def captures_dir(self) -> Path:
        """Private folder of this process, on the same file system, for raw stream files before they are added.

        Raises:
            StoreError: the store may only be read, or has no room.
        """
        return self._incoming.folder()

    @property
    def read_only(self) -> bool:
        """It can be searched and read; everything that writes raises ReadOnlyStore."""
        return self._database.read_only

    def adopt(self) -> list[Source]:
        """Adds what processes that were killed had captured and not yet added, each file as a source labelled `recovered:`.

        What cannot be added now stays where it is, for the next time.
        """
        adopted: list[Source] = []
        killed = 0
        for left in () if self.read_only else self._incoming.left_behind():
            killed += 1
            for file in left.files:
                with contextlib.suppress(SandboxmcpError):
                    adopted += self._adopted(left, file)
        if killed:
            self._delete_captures(self._captures.digests())
        return adopted

    def _adopted(self, left: Left, file: Path) -> list[Source]:
        """The source that a file has become; none when it was added before, by a process killed before it could delete it."""
        digest = Content(file, self._mask).digest()
        with self._database.reading() as connection:
            known = catalogue.has_content(connection, digest, left.project, left.session)
        if known:
            file.unlink()
            return []
        return [self.add(NewSource(f"recovered:{file.name}", "execute", left.project, left.session), file, consume=True)]

    def add(self, new: NewSource, content: bytes | str | Path, *, consume: bool = False) -> Source:
        """Captures and indexes a text; returns when both are durable.

        A file, a page or a given text (by its origin) whose content is stored already under this label and path comes back
        `unchanged`, with its handle. A file or page that changed gets a new handle; its old source leaves search and lists, but
        can still be read by handle, so that earlier citations stay true. Every other capture is a new source, whatever its label.

        `content` as a path is read by streaming; `consume` deletes the file afterwards.

        Raises:
            UsageError: the path is not a readable file.
            StoreError: the store cannot be written.
        """
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
            self.sweep()
        return self.get(handle)

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
                self._delete_captures([draft.digest])  # unless another source has it
            raise

    def search(self, query: str, scope: Scope, *, sort: Sort = "relevance", limit: int = 200) -> list[Hit]:
        """Passages that answer the query, best first; those that repeat the template of a better one come last.

        Empty for a query without letters and digits. `sort="recent"`: the newest source first.

        Raises:
            UsageError: the store orders by meaning, and what that needs is not installed.
        """
        with self._database.reading() as connection:
            hits = search(connection, self._stems, query, scope, sort, limit, self._reorder)
        self._counters.add_hits({hit.handle for hit in hits[:_ANSWERING_HITS]})
        return hits

    def get(self, handle: str, *, project: str | None = None) -> Source:
        """The source with this handle. With `project`, handles of other projects do not exist.

        Raises:
            UsageError: unknown handle; names near ones.
        """
        with self._database.reading() as connection:
            return catalogue.get(connection, handle, project)

    def sources(self, scope: Scope, *, limit: int = 100, offset: int = 0) -> list[Source]:
        """The sources in scope, newest first; versions of files that a newer one replaced are left out."""
        with self._database.reading() as connection:
            return self._counters.with_hits(catalogue.listed(connection, scope, limit, offset))

    def read_lines(self, handle: str, first: int, last: int, *, line_bytes: int | None = None) -> list[str]:
        """Shown text of the lines `first` to `last` (1-based, inclusive) as far as they exist.

        `line_bytes` bounds each line; a longer one ends in how much was left out.

        Raises:
            UsageError: unknown handle, or no such range.
        """
        if first < 1 or last < first:
            raise UsageError(f"Lines {first} to {last} are no range", "Lines count from 1, the last is not before the first.")
        with self._open(handle) as capture:
            return [text for _, text in shown_lines(capture, first, last, line_bytes)]

    def head_tail(self, handle: str, head: int, tail: int, *, line_bytes: int | None = None) -> tuple[list[str], list[str]]:
        """Shown text of the first `head` and the last `tail` lines, each line once: the last list ends with the last line.

        Raises:
            UsageError: unknown handle.
        """
        with self._open(handle) as capture:
            return head_and_tail(capture, head, tail, line_bytes)

    def grep(
        self, handle: str, needle: str, *, first: int = 1, last: int | None = None, limit: int = 200, line_bytes: int | None = 2_000
    ) -> list[tuple[int, str]]:
        """(number, shown text) of at most `limit` lines that hold the needle; case matters if the needle has upper case.

        Of a line longer than `line_bytes` what stands around the needle.

        Raises:
            UsageError: unknown handle.
        """
        with self._open(handle) as capture:
            return matching_lines(capture, needle, first, last, limit, line_bytes)

    def raw(self, handle: str) -> Iterator[bytes]:
        """Exactly the captured bytes, in pieces.

        Raises:
            UsageError: unknown handle.
        """
        with self._open(handle) as capture:
            yield from capture.read()

    def files(self, scope: Scope, limit: int) -> list[catalogue.StoredFile]:
        """The files in scope, those that were read last first."""
        with self._database.reading() as connection:
            return catalogue.files(connection, scope, limit)

    def mark_gone(self, handles: Iterable[str], gone: bool) -> None:
        """Says of files that they are no longer there, or that they are again."""
        with self._database.writing() as connection:
            connection.executemany("UPDATE sources SET gone = ? WHERE handle = ?", [(gone, handle) for handle in handles])

    @property
    def pages(self) -> Pages:
        """What was fetched, and when."""
        return Pages(self._database)

    @property
    def previews(self) -> Previews:
        """Deletions that wait to be confirmed."""
        return Previews(self._database)

    def expired(self, origins: Iterable[str], before: float, limit: int = 200) -> list[str]:
        """Handles of sources of these origins that were stored before a time (seconds since the epoch), the oldest first."""
        with self._database.reading() as connection:
            return catalogue.expired(connection, list(origins), before, limit)

    def forget(self, handles: Iterable[str], *, project: str | None = None) -> int:
        """Deletes sources with their captures and with the older versions of a file; returns how many of the given ones.

        Works on a full disk too, and frees some of it: in steps, of which the first makes the sources unknown.

        Raises:
            UsageError: an unknown handle; nothing is deleted then.
        """
        wanted = list(dict.fromkeys(handles))
        with self._database.writing(freeing=True) as connection:
            for handle in wanted:
                catalogue.get(connection, handle, project)
            digests = catalogue.disown(connection, wanted)
        self._forget_files(wanted, digests)
        self.sweep()
        return len(wanted)

    def forget_all(self, handles: Iterable[str]) -> int:
        """Deletes those of the sources that are still there, in steps that let others write; returns how many there were."""
        wanted, count = list(dict.fromkeys(handles)), 0
        for start in range(0, len(wanted), _FORGOTTEN_TOGETHER):
            with self._database.writing(freeing=True) as connection:
                there = catalogue.known(connection, wanted[start : start + _FORGOTTEN_TOGETHER])
                digests = catalogue.disown(connection, there)
            self._forget_files(there, digests)
            count += len(there)
            self.sweep()
        return count

    def sweep(self) -> None:
        """Takes out of the index what belongs to no source any more, in steps that are small enough for a full disk.

        Raises:
            StoreError: it cannot be written. What is left is taken out the next time.
        """
        more = True
        while more:
            with self._database.writing(freeing=True) as connection:
                more = swept(connection)

    def _forget_files(self, handles: list[str], digests: Iterable[str]) -> None:
        self._delete_captures(digests)
        if self._raw is not None:
            self._raw.forget(handles)

    def terms(self, handles: str | Iterable[str], limit: int = 20) -> list[str]:
        """Distinctive words of these sources: what to search for next."""
        with self._database.reading() as connection:
            return catalogue.terms(connection, [handles] if isinstance(handles, str) else list(handles), limit)

    def add_usage(self, tool: str, *, captured: int = 0, returned: int = 0, calls: int = 1) -> None:
        """Counts a call of a tool, in bytes. Never waits."""
        self._counters.add_usage(Usage(tool, calls, captured, returned))

    def usage(self) -> list[Usage]:
        """What every tool captured and returned, by name."""
        return self._counters.usage()

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

    def _insert(self, connection: Connection, new: NewSource, label: str, draft: Draft, capture: Capture) -> str:
        sample = shown(b"".join(capture.read(0, SAMPLE_BYTES)))
        kind = new.kind or recognise_kind(sample)
        form = recognise_form(sample, kind)
        indexed = sum(stop - start for start, stop in self._parts(capture))
        source, handle = catalogue.insert(connection, new, label, kind, draft, indexed)
        if new.origin in ("file", "page"):
            catalogue.replace_older(connection, new, label, source)
        self._index(connection, source, capture, form)
        return handle

    def _parts(self, capture: Capture) -> list[tuple[int, int]]:
        return capture.head_and_tail(self._index_head, self._index_tail)

    def _index(self, connection: Connection, source: int, capture: Capture, form: Form) -> None:
        with Indexer(connection, source, self._pieces, self._kept) as indexer:
            for start, stop in self._parts(capture):
                indexer.add(numbered_lines(capture.read(start, stop), capture.line_at(start), SPELLING.get(form)), form)
            catalogue.record(connection, source, indexer.finish())

    def repair(self) -> Repaired:
        """Checks the file, and builds the index anew from the captures. Sources whose capture is lost are deleted.

        One transaction: a repair that is killed leaves the store as it was.

        Raises:
            StoreError: the database itself is damaged beyond its index.
        """
        with self._database.writing() as connection:
            done = index_anew(connection, self._captures, partial(self._index, connection))
        self._delete_captures(self._captures.digests())
        self.sweep()
        return done

    @contextlib.contextmanager
    def _open(self, handle: str) -> Iterator[Capture]:
        with self._database.reading() as connection:
            catalogue.get(connection, handle, None)
            digest = catalogue.digest_of(connection, handle)
        with self._captures.open(digest) as capture:
            yield capture

    def _delete_captures(self, digests: Iterable[str]) -> None:
        """Deletes those of the captures that no source has."""
        # After the rows are gone for good, and under the write lock: a process that adds the same content meanwhile keeps it.
        with self._database.writing(freeing=True) as connection:
            for digest in catalogue.unused(connection, list(digests)):
                self._captures.delete(digest)


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
