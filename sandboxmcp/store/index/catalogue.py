"""The table of sources: rows in, `Source` values out, handles made and mended."""

from __future__ import annotations

import difflib
import json
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import ContentKind, NewSource, Scope, Source
from sandboxmcp.core.surface import call
from sandboxmcp.core.text import storable
from sandboxmcp.store.captures.captures import Draft
from sandboxmcp.store.chunking.forms import VERSION
from sandboxmcp.store.index.indexer import Indexed
from sandboxmcp.store.search.scope import conditions

if TYPE_CHECKING:
    from sqlite3 import Connection

_FIRST_LETTERS = "abcdefghjkmnpqrstuvwxyz"
_LETTERS = _FIRST_LETTERS + "23456789"
"""Without i, l, o, 0 and 1, which are read for one another. A letter comes first: no handle is a number."""
_HANDLE_LENGTH = 6
_NEAR_HANDLES = 3
_FIELDS = (
    "handle, label, origin, kind, project, session, batch, bytes, total_bytes, lines, chunks, indexed_bytes, created_at, hits, path"
    ", mime, digest, gone"
)


def insert(connection: Connection, new: NewSource, kind: ContentKind, draft: Draft, indexed_bytes: int) -> tuple[int, str]:
    """A new row, not yet indexed. Returns its id and its handle."""
    handle = _new_handle(connection)
    row: dict[str, Any] = {
        "handle": handle,
        "label": new.label,
        "origin": new.origin,
        "kind": kind,
        "project": new.project,
        "session": new.session,
        "batch": new.batch,
        "path": new.path,
        "mime": new.mime,
        "digest": draft.digest,
        "bytes": draft.bytes,
        "total_bytes": draft.bytes if new.total_bytes is None else max(draft.bytes, new.total_bytes),
        "lines": draft.lines,
        "chunks": 0,
        "indexed_bytes": indexed_bytes,
        "created_at": time.time(),
        "hits": 0,
        "passages": 0,
        "words": 0,
        "first_passage": 0,
        "last_passage": -1,
        "terms": "[]",
        "stamp": new.stamp,
    }
    cursor = connection.execute(
        f"INSERT INTO sources({', '.join(row)}) VALUES ({', '.join(f':{name}' for name in row)})",  # noqa: S608 (names are ours)
        row,
    )
    return int(cursor.lastrowid or 0), handle


def record(connection: Connection, source: int, indexed: Indexed) -> None:
    """Adds to a row what indexing found."""
    connection.execute(
        "UPDATE sources SET chunks = ?, passages = ?, words = ?, first_passage = ?, last_passage = ?, terms = ?, cut_by = ?"
        " WHERE id = ?",
        (
            indexed.chunks,
            indexed.passages,
            indexed.words,
            indexed.first_passage,
            indexed.last_passage,
            json.dumps(indexed.terms, ensure_ascii=False),
            VERSION,
            source,
        ),
    )


def get(connection: Connection, handle: str, project: str | None) -> Source:
    """The source with this handle, in this project (None: in any).

    Raises:
        UsageError: there is none; names near handles.
    """
    row = connection.execute(
        f"SELECT {_FIELDS} FROM sources WHERE handle = ? AND (?2 IS NULL OR project = ?2) AND replaced_by IS NOT id",  # noqa: S608
        (storable(handle), None if project is None else storable(project)),
    ).fetchone()
    if row is None:
        raise UsageError(f"There is no source {handle[:40]!r}", _near(connection, handle, project))
    return _source(row)


def get_all(connection: Connection, handles: Iterable[str]) -> dict[str, Source]:
    """Those of the sources with these handles that there are."""
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM sources WHERE handle IN (SELECT value FROM json_each(?)) AND replaced_by IS NOT id",  # noqa: S608
        (json.dumps(list(handles)),),
    )
    return {source.handle: source for source in map(_source, rows)}


def _source(row: Sequence[Any]) -> Source:
    return replace(Source(*row[:-2]), digest=row[-2], gone=bool(row[-1]))


class StoredFile(NamedTuple):
    """A file that was stored: where it was, and its time and size when it was read."""

    handle: str
    label: str
    path: str
    stamp: str
    gone: int


def files(connection: Connection, scope: Scope, limit: int) -> list[StoredFile]:
    """The files in scope, those that were read last first."""
    where, values = conditions(scope)
    rows = connection.execute(
        f"SELECT handle, label, path, stamp, gone FROM sources WHERE origin = 'file' AND path IS NOT NULL AND {where}"  # noqa: S608
        " ORDER BY id DESC LIMIT ?",
        (*values, limit),
    )
    return [StoredFile(*row) for row in rows]


def known(connection: Connection, handles: Sequence[str]) -> list[str]:
    """Those of the handles that there are."""
    rows = connection.execute(
        "SELECT handle FROM sources WHERE handle IN (SELECT value FROM json_each(?)) AND replaced_by IS NOT id",
        (json.dumps(handles),),
    )
    return [handle for (handle,) in rows]


def expired(connection: Connection, origins: Sequence[str], before: float, limit: int) -> list[str]:
    """Handles of sources of these origins that are older than a time, the oldest first."""
    rows = connection.execute(
        "SELECT handle FROM sources WHERE origin IN (SELECT value FROM json_each(?)) AND created_at < ?"
        " AND replaced_by IS NULL ORDER BY created_at LIMIT ?",
        (json.dumps(list(origins)), before, limit),
    )
    return [handle for (handle,) in rows]


def digest_of(connection: Connection, handle: str) -> str:
    (digest,) = connection.execute("SELECT digest FROM sources WHERE handle = ?", (handle,)).fetchone()
    return str(digest)


def listed(connection: Connection, scope: Scope, limit: int, offset: int) -> list[Source]:
    """The sources in scope, newest first."""
    where, values = conditions(scope)
    rows = connection.execute(
        f"SELECT {_FIELDS} FROM sources WHERE {where} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?",  # noqa: S608
        (*values, limit, offset),
    )
    return [_source(row) for row in rows]


def same(connection: Connection, new: NewSource, digest: str) -> tuple[int, str] | None:
    """Id and handle of the live source of this project with the same origin, label, path and content."""
    row: tuple[int, str] | None = connection.execute(
        "SELECT id, handle FROM sources WHERE digest = ? AND project = ? AND origin = ? AND label = ? AND path IS ?"
        " AND replaced_by IS NULL ORDER BY id DESC",
        (digest, new.project, new.origin, new.label, new.path),
    ).fetchone()
    return row


def same_stamp(connection: Connection, new: NewSource) -> tuple[int, str] | None:
    """Id and handle of the live source that was read from the same file when it had the same stamp.

    Not if the file was written less than a second before it was stored: it may have changed again without a newer time.
    """
    if not new.stamp:
        return None
    row: tuple[int, str] | None = connection.execute(
        "SELECT id, handle FROM sources WHERE path = ? AND stamp = ? AND project = ? AND origin = ? AND label = ?"
        " AND replaced_by IS NULL AND created_at > ? ORDER BY id DESC",
        (new.path, new.stamp, new.project, new.origin, new.label, int(new.stamp.partition(":")[0]) / 1e9 + 1),
    ).fetchone()
    return row


def unused(connection: Connection, digests: Sequence[str]) -> list[str]:
    """Those of the digests that no source has."""
    rows = connection.execute(
        "SELECT value FROM json_each(?) j WHERE NOT EXISTS (SELECT 1 FROM sources WHERE digest = j.value)", (json.dumps(digests),)
    )
    return [digest for (digest,) in rows]


def has_content(connection: Connection, digest: str, project: str, session: str) -> bool:
    """Did this session of the project store this content?"""
    found = connection.execute(
        "SELECT 1 FROM sources WHERE digest = ? AND project = ? AND session = ?", (digest, storable(project), storable(session))
    )
    return found.fetchone() is not None


def replace_older(connection: Connection, new: NewSource, source: int) -> None:
    """Marks the sources that new content of a file or page replaces: same place and label in the project."""
    connection.execute(
        "UPDATE sources SET replaced_by = ?1 WHERE replaced_by IN (SELECT id FROM sources"
        " WHERE project = ?2 AND origin = ?3 AND label = ?4 AND path IS ?5 AND id <> ?1 AND replaced_by IS NULL)",
        (source, new.project, new.origin, new.label, new.path),
    )
    connection.execute(
        "UPDATE sources SET replaced_by = ?1"
        " WHERE project = ?2 AND origin = ?3 AND label = ?4 AND path IS ?5 AND id <> ?1 AND replaced_by IS NULL",
        (source, new.project, new.origin, new.label, new.path),
    )


def disown(connection: Connection, handles: Iterable[str]) -> set[str]:
    """Makes these sources, and those that they replaced, unknown; returns the digests of their captures.

    What is left of one is a row that has replaced itself, until its passages are taken out of the index.
    """
    rows = connection.execute(
        "WITH chosen AS (SELECT id FROM sources WHERE handle IN (SELECT value FROM json_each(?)))"
        " SELECT id, digest FROM sources WHERE id IN chosen OR replaced_by IN chosen",
        (json.dumps(list(handles)),),
    ).fetchall()
    connection.executemany(
        "UPDATE sources SET replaced_by = id, handle = '-' || id, digest = '', label = '', project = '', session = '', path = NULL"
        " WHERE id = ?",
        [(source,) for source, _ in rows],
    )
    return {digest for _, digest in rows}


def terms(connection: Connection, handles: Sequence[str], limit: int) -> list[str]:
    """Distinctive words of these sources, taken in turns, the best of each first."""
    rows = connection.execute(
        "SELECT terms FROM sources WHERE handle IN (SELECT value FROM json_each(?))", (json.dumps(list(handles)),)
    )
    lists = [json.loads(text) for (text,) in rows]
    turns = [words[turn] for turn in range(max(map(len, lists), default=0)) for words in lists if turn < len(words)]
    return list(dict.fromkeys(turns))[:limit]


def _new_handle(connection: Connection) -> str:
    while True:
        handle = secrets.choice(_FIRST_LETTERS) + "".join(secrets.choice(_LETTERS) for _ in range(_HANDLE_LENGTH - 1))
        if connection.execute("SELECT 1 FROM sources WHERE handle = ?", (handle,)).fetchone() is None:
            return handle


def _near(connection: Connection, handle: str, project: str | None) -> str:
    rows = connection.execute(
        "SELECT handle FROM sources WHERE (?1 IS NULL OR project = ?1) AND replaced_by IS NOT id ORDER BY id DESC LIMIT 5000",
        (None if project is None else storable(project),),
    )
    near = difflib.get_close_matches(handle.lower()[:40], [name for (name,) in rows], _NEAR_HANDLES)
    meant = f"Did you mean {', '.join(near)}? " if near else ""
    return f"{meant}{call('ctx_sources')} lists them."
