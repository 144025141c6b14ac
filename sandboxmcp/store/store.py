"""The store: keeps what was captured, finds passages in it, reads any line of it back. Everything acknowledged survives kill -9.

data_dir/sandboxmcp.db        sources, index, vocabulary, usage (SQLite, WAL)
data_dir/captures/ab/….zst    the captured bytes, once per content
data_dir/incoming/…/          raw stream files on their way in, a folder for each process
data_dir/reserve              only on a disk that is nearly full: room for deleting
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from sandboxmcp.core.database import Database
from sandboxmcp.core.errors import StoreError, UsageError
from sandboxmcp.core.migrations import MIGRATIONS
from sandboxmcp.core.model import Hit, NewSource, Scope, Source
from sandboxmcp.core.words import words_in
from sandboxmcp.store.captures.captures import Capture, Captures
from sandboxmcp.store.captures.content import RawCopies
from sandboxmcp.store.captures.incoming import Incoming
from sandboxmcp.store.captures.numbered_lines import head_and_tail, matching_lines, shown_lines
from sandboxmcp.store.index import catalogue
from sandboxmcp.store.index.adding import Adding, Also, Mask
from sandboxmcp.store.index.bulk_add import Together, together
from sandboxmcp.store.index.deletion import Deleting
from sandboxmcp.store.maintenance.rebuild import Repaired, index_anew
from sandboxmcp.store.maintenance.recovery import Adopting
from sandboxmcp.store.maintenance.reindex import Renewing
from sandboxmcp.store.readers.cutter import Cutter
from sandboxmcp.store.readers.worker import Workers
from sandboxmcp.store.search.scope import field_of
from sandboxmcp.store.search.search import Sort, search
from sandboxmcp.store.search.semantic import Meaning
from sandboxmcp.store.search.stems import Stemmer
from sandboxmcp.store.usage_stats import Counters, Usage
from sandboxmcp.store.web.pages import Pages, Previews

DATABASE = "sandboxmcp.db"
INDEX_BYTES = 32 << 20
_FITTED = 200
"""Passages that a count looks at."""
_ANSWERING_HITS = 20
"""A source counts a hit when it is among so many best passages of a search."""


class OpenStore:
    """One data folder's store, opened once in a process and shared by its sessions and threads."""

    def __init__(self, data_dir: Path) -> None:
        """Opens or creates it.

        Raises:
            StoreError: the folder or the file cannot be used, with the fix.
        """
        self.data_dir = data_dir
        self.database = Database(data_dir / DATABASE, MIGRATIONS)
        self.workers = Workers()
        self.stems = Stemmer()
        self.counters = Counters(self.database)
        self.renewal = threading.Lock()
        """Held by the one thread that cuts old sources anew."""
        self._recovery = threading.Lock()

    def claim_recovery(self) -> bool:
        """Whether the caller is the first: it recovers what killed processes left, and the others need not wait for it."""
        return self._recovery.acquire(blocking=False)

    def close(self) -> None:
        """Writes what was counted, ends the worker processes, closes the database."""
        self.workers.close()
        with contextlib.suppress(StoreError):
            self.counters.close()
        self.database.close()
        self.stems.close()


class Store:
    """One user's store, as one session uses it. Shared by threads; other sessions and processes may use the same folder."""

    def __init__(
        self,
        opened: OpenStore | Path,
        *,
        index_head: int = INDEX_BYTES,
        index_tail: int = INDEX_BYTES,
        mask: Mask | None = None,
        keep_raw: bool = False,
        owner: tuple[str, str] = ("", ""),
        semantic: bool = False,
    ) -> None:
        """`opened`: a store that is open already, or the data folder of one, which is then closed with this.

        Of a capture its first `index_head` and last `index_tail` bytes are indexed. `mask` rewrites what is added, with as many
        line ends, before anything of it is kept; `keep_raw` also keeps what it rewrote as it was, in a file of `raw/` named by
        the handle, which nothing here reads. `owner` is the project and the session that output belongs to which is not added
        before the process ends. `semantic` orders the best passages of a search by meaning too.

        Raises:
            StoreError: the folder or the file cannot be used, with the fix.
        """
        self._opened = OpenStore(opened) if isinstance(opened, Path) else opened
        self._alone = isinstance(opened, Path)
        """Nobody else uses the open store: it is closed with this."""
        data_dir, self._database = self._opened.data_dir, self._opened.database
        self._incoming = Incoming(data_dir / "incoming", owner)
        self._captures = Captures(data_dir / "captures", self._incoming.folder)
        raw = RawCopies(data_dir / "raw") if keep_raw else None
        self._deleting = Deleting(self._database, self._captures, raw)
        self._adding = Adding(
            self._database,
            self._captures,
            self._deleting,
            cutter=Cutter(self._opened.workers, self._captures),
            ends=(index_head, index_tail),
            mask=mask,
            raw=raw,
        )
        self._adopting = Adopting(self._database, self._captures, self._incoming, self._adding, self._deleting, mask)
        self._renewing = Renewing(self._database, self._captures, self._adding, self._opened.renewal)
        self._reorder = Meaning().reordered if semantic else None
        self._counters = self._opened.counters

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """What this session began ends. What it could not add stays in `incoming/`, for the next process."""
        self._renewing.close()
        if self._alone:
            self._opened.close()
        self._incoming.close()

    @property
    def captures_dir(self) -> Path:
        """Private folder of this process, on the same file system, for raw stream files before they are added.

        Raises:
            StoreError: the store may only be read, or has no room.
        """
        return self._incoming.folder()

    @property
    def database(self) -> Database:
        """The file, for what else is kept in it."""
        return self._database

    @property
    def workers(self) -> Workers:
        """The processes that read what is large or came from outside."""
        return self._opened.workers

    @property
    def read_only(self) -> bool:
        """It can be searched and read; everything that writes raises ReadOnlyStore."""
        return self._database.read_only

    def adopt(self) -> list[Source]:
        """Adds what processes that were killed had captured and not yet added, each file as a source labelled `recovered:`.

        What cannot be added now stays where it is, for the next time; `unadopted` counts it.
        """
        return self._adopting.adopt()

    def owe(self, captured: Iterable[tuple[NewSource, Path]]) -> None:
        """These files in `captures_dir` could not be added: they are when there is room again, or by the next process."""
        self._adopting.owe(captured)

    @property
    def unadopted(self) -> int:
        """Files, owed or of killed processes, that could not be added when that was last tried."""
        return self._adopting.left

    @property
    def renewing(self) -> Renewing:
        """What cuts sources anew that an earlier version cut; a search starts it."""
        return self._renewing

    def adopt_late(self) -> None:
        """Tries again what could not be added, if that was a while ago. Never raises."""
        self._adopting.adopt_late()

    def add(self, new: NewSource, content: bytes | str | Path, *, consume: bool = False, also: Also | None = None) -> Source:
        """Captures and indexes a text; returns when both are durable.

        A file, a page or a given text (by its origin) whose content is stored already under this label and path comes back
        `unchanged`, with its handle. A file or page that changed gets a new handle; its old source leaves search and lists, but
        can still be read by handle, so that earlier citations stay true. Every other capture is a new source, whatever its label.

        `content` as a path is read by streaming; `consume` deletes the file afterwards. `also` is called inside the transaction
        that stores a new source.

        Raises:
            UsageError: the path is not a readable file.
            StoreError: the store cannot be written.
        """
        return self._adding.add(new, content, consume=consume, also=also)

    def together(self) -> AbstractContextManager[Together]:
        """For many files: what is added to it is stored a few hundred at a time, and all of it when the block ends."""
        return together(self._adding)

    def search(self, query: str, scope: Scope, *, sort: Sort = "relevance", limit: int = 200) -> list[Hit]:
        """Passages that answer the query, best first; those that repeat the template of a better one come last.

        Empty for a query without letters and digits. `sort="recent"`: the newest source first.

        Raises:
            UsageError: the store orders by meaning, and what that needs is not installed.
        """
        self._renewing.start()
        with self._database.reading() as connection:
            hits = search(connection, self._opened.stems, query, scope, sort, limit, self._reorder)
        self._counters.add_hits({hit.handle for hit in hits[:_ANSWERING_HITS]})
        return hits

    def count(self, handle: str, phrase: str, fits: Callable[[str], bool]) -> int:
        """How many passages of a source hold these words in this order and fit; where they are many, about.

        Of many, the part that fits among the first of them is taken for that of all.
        """
        words = " ".join(words_in(phrase))
        with self._database.reading() as connection:
            field = field_of(connection, Scope(None, handles=(handle,))) if words else None
            if field is None or not field.passages:
                return 0
            holding = field.holding(connection, words, "body")
            bodies = field.bodies(connection, words, "body", _FITTED)
        return holding * sum(map(fits, bodies)) // len(bodies) if bodies else 0

    def get(self, handle: str, *, project: str | None = None) -> Source:
        """The source with this handle. With `project`, handles of other projects do not exist.

        Raises:
            UsageError: unknown handle; names near ones.
        """
        with self._database.reading() as connection:
            return catalogue.get(connection, handle, project)

    def get_all(self, handles: Iterable[str]) -> dict[str, Source]:
        """Those of the sources with these handles that there are."""
        with self._database.reading() as connection:
            return catalogue.get_all(connection, handles)

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
        number = self._deleting.forget(handles, project)
        self._adopting.adopt_late(at_once=True)
        return number

    def forget_all(self, handles: Iterable[str]) -> int:
        """Deletes those of the sources that are still there, in steps that let others write; returns how many there were."""
        number = self._deleting.forget_all(handles)
        self._adopting.adopt_late(at_once=True)
        return number

    def sweep(self) -> None:
        """Takes out of the index what belongs to no source any more, in steps that are small enough for a full disk.

        Raises:
            StoreError: it cannot be written. What is left is taken out the next time.
        """
        self._deleting.sweep()

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

    def repair(self) -> Repaired:
        """Checks the file, and builds the index anew from the captures. Sources whose capture is lost are deleted.

        One transaction: a repair that is killed leaves the store as it was.

        Raises:
            StoreError: the database itself is damaged beyond its index.
        """
        with self._database.writing() as connection:
            done = index_anew(connection, self._captures, partial(self._adding.index, connection))
        self._deleting.delete_captures(self._captures.digests())
        self.sweep()
        return done

    @contextlib.contextmanager
    def _open(self, handle: str) -> Iterator[Capture]:
        with self._database.reading() as connection:
            catalogue.get(connection, handle, None)
            digest = catalogue.digest_of(connection, handle)
        with self._captures.open(digest) as capture:
            yield capture
