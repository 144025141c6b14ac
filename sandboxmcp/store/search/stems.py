"""Words to stems, by the very tokenizer of the index, so that ranking and matching never disagree."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from sandboxmcp.core.database import sqlite_with_trigrams

TOKENIZER = "porter unicode61 remove_diacritics 2"
_REMEMBERED = 50_000


class Stemmer:
    """Stems words in a database of its own in memory, and remembers them. Shared by threads."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()
        self._connection = sqlite_with_trigrams().connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(word, tokenize='{TOKENIZER}')")
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab('texts', 'instance')")

    def __call__(self, words: Iterable[str]) -> Mapping[str, str]:
        """A mapping with the stem of every given word (and of others). A word that the index would split keeps itself as stem."""
        known = self._known
        new = [word for word in words if word not in known]
        if new:
            with self._lock:
                if len(known) > _REMEMBERED:
                    known = self._known = {}
                    new = list(words)
                known.update(self._stemmed(new))
        return known

    def close(self) -> None:
        self._connection.close()

    def _stemmed(self, words: list[str]) -> dict[str, str]:
        stems = dict(zip(words, words, strict=True))
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO texts(rowid, word) VALUES (?, ?)", enumerate(words))
        for index, stem in self._connection.execute("SELECT doc, min(term) FROM stems GROUP BY doc HAVING count(*) = 1"):
            stems[words[index]] = stem
        self._connection.execute("ROLLBACK")
        return stems
