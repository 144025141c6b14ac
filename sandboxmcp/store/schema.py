"""The tables of the store, as steps from version to version; core/migrations.py has their order.

    sources 1 ─ n chunks 1 ─ n passages        passages_fts indexes passages through the view passage_text (text stored once)
    words                                      every word of every passage with how often it occurs; words_fts finds them by
                                               trigram
    usage                                      what each tool captured and returned
    pages                                      what was fetched under which label, when, and how to ask whether it changed
    previews                                   what a deletion would take, for a minute, under a token

The ids of a source's passages are consecutive, since a source is written in one transaction: a scope is a few id ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxmcp.core.words import Kept, words_in
from sandboxmcp.store.search.vocabulary import Vocabulary, learn

if TYPE_CHECKING:
    from sqlite_utils import Database

_SOURCE = {
    "id": int,
    "handle": str,
    "label": str,
    "origin": str,
    "kind": str,
    "project": str,
    "session": str,
    "batch": str,
    "path": str,
    "mime": str,
    "digest": str,
    "bytes": int,
    "total_bytes": int,
    "lines": int,
    "chunks": int,
    "indexed_bytes": int,
    "created_at": float,
    "hits": int,
    "passages": int,
    "words": int,
    "first_passage": int,
    "last_passage": int,
    "terms": str,
    "replaced_by": int,
}
_OPTIONAL = {"batch", "path", "replaced_by"}
_CHUNK = {"id": int, "source_id": int, "title": str, "first_line": int, "last_line": int}
_PASSAGE = {
    "id": int,
    "chunk_id": int,
    "first_line": int,
    "last_line": int,
    "partial": int,
    "words": int,
    "body": str,
    "pieces": str,
}
_PAGE = {
    "project": str,
    "label": str,
    "url": str,
    "handle": str,
    "fetched_at": float,
    "etag": str,
    "modified": str,
}
_PREVIEW = {"token": str, "project": str, "expires_at": float, "handles": str}
_USAGE = {"tool": str, "calls": int, "bytes_captured": int, "bytes_returned": int}


def sources(database: Database) -> None:
    """The first tables."""
    table = database.table("sources").create(_SOURCE, pk="id", not_null=set(_SOURCE) - _OPTIONAL - {"id"})
    table.create_index(["handle"], unique=True)
    for column in ("project", "digest", "path", "first_passage", "replaced_by"):
        table.create_index([column])
    chunks = database.table("chunks").create(
        _CHUNK, pk="id", foreign_keys=[("source_id", "sources", "id")], not_null=set(_CHUNK) - {"id"}
    )
    chunks.create_index(["source_id"])
    # No foreign key to chunks: it would need an index as large as a fifteenth of the text; passages go by ranges of ids.
    database.table("passages").create(_PASSAGE, pk="id", not_null=set(_PASSAGE) - {"id"})
    database.table("words").create({"id": int, "word": str, "uses": int}, pk="id", not_null={"word", "uses"}).create_index(
        ["word"], unique=True
    )
    database.table("usage").create(_USAGE, pk="tool", not_null=set(_USAGE))
    for statement in _FULL_TEXT:
        database.execute(statement)


_FULL_TEXT = (
    "CREATE VIEW passage_text AS SELECT p.id AS id, c.title AS title, p.body AS body, p.pieces AS pieces"
    " FROM passages p JOIN chunks c ON c.id = p.chunk_id",
    "CREATE VIRTUAL TABLE passages_fts USING fts5(title, body, pieces, content='passage_text', content_rowid='id',"
    " tokenize='porter unicode61 remove_diacritics 2')",
    "INSERT INTO passages_fts(passages_fts, rank) VALUES ('rank', 'bm25(2.0, 1.0, 1.0)')",
    "CREATE VIRTUAL TABLE words_fts USING fts5(word, content='words', content_rowid='id', tokenize='trigram', detail=none)",
)


def changes(database: Database) -> None:
    """Files that change and vanish, pages that were fetched, deletions that were previewed."""
    table = database.table("sources")
    table.add_column("stamp", str, not_null_default="")
    table.add_column("gone", int, not_null_default=0)
    database.table("pages").create(_PAGE, pk=("project", "label", "url"), not_null=set(_PAGE))
    database.table("previews").create(_PREVIEW, pk="token", not_null=set(_PREVIEW))


def occurrences(database: Database) -> None:
    """Words are counted by occurrences instead of by sources; the index takes in more before it writes a part of itself."""
    connection = database.conn
    for statement in (
        "INSERT INTO words_fts(words_fts) VALUES ('delete-all')",
        "DELETE FROM words",
        "INSERT INTO passages_fts(passages_fts, rank) VALUES ('hashsize', 8388608)",
    ):
        connection.execute(statement)
    rows = connection.execute("SELECT body, pieces FROM passages")
    vocabulary = Vocabulary(Kept())
    while some := rows.fetchmany(1_000):
        vocabulary.add(word for body, pieces in some for word in (*words_in(body), *pieces.split()))
        learn(connection, vocabulary.taken())


def unranked_trigrams(database: Database) -> None:
    """The trigrams of words are no longer ranked by SQLite: their table needs no sizes."""
    for statement in (
        "DROP TABLE words_fts",
        "CREATE VIRTUAL TABLE words_fts USING fts5(word, content='words', content_rowid='id', tokenize='trigram', detail=none,"
        " columnsize=0)",
        "INSERT INTO words_fts(rowid, word) SELECT id, word FROM words",
    ):
        database.execute(statement)


def cut_by(database: Database) -> None:
    """Which version cut a source."""
    table = database.table("sources")
    table.add_column("cut_by", int, not_null_default=0)
    table.create_index(["cut_by"])


def preview_scope(database: Database) -> None:
    """Which part of the journal goes with a previewed deletion."""
    database.table("previews").add_column("runs", str)
