"""A question in a person's words becomes weighted search words. Pure; the store adds what only its vocabulary knows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sandboxmcp.store.words import STOP_WORDS, folded, pieces_of, words_in

Role = Literal["word", "piece", "glued", "kin", "repair"]

PIECE_WEIGHT = 0.8
GLUED_WEIGHT = 0.8
KIN_WEIGHT = 0.4
_LONGEST_QUERY = 64
"""Words of a query that are looked at; no question needs more and each costs a look into the index."""
_LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class Word:
    """One thing to look for. `text` is letters and digits only, so no search syntax can hide in it."""

    text: str
    weight: float = 1.0
    role: Role = "word"
    origin: str = ""
    """For everything but `word`: the query's word that it stands for."""


def query_words(query: str) -> tuple[Word, ...]:
    """What to look for, each text once at its highest weight: the words, identifier pieces, glued neighbours, near synonyms.

    Stop words are left out unless there is nothing else. Empty for a query without letters and digits.
    """
    found: dict[str, Word] = {}
    for word in _all_words(query):
        if word.text not in found or found[word.text].weight < word.weight:
            found[word.text] = word
    return tuple(found.values())


def match_any(words: list[str]) -> str:
    """The FTS5 expression that matches passages with any of the words. Quoted: FTS5's operators are words as well."""
    return " OR ".join(f'"{word}"' for word in words)


def _all_words(query: str) -> Iterator[Word]:
    raw = [word[:_LONGEST_WORD] for word in words_in(query)[: 4 * _LONGEST_QUERY]]
    raw = ([word for word in raw if folded(word) not in STOP_WORDS] or raw)[:_LONGEST_QUERY]
    for word in raw:
        text = folded(word)
        yield Word(text)
        for piece in pieces_of(word):
            yield Word(folded(piece), PIECE_WEIGHT, "piece", text)
    for first, second in itertools.pairwise(raw):
        yield Word(folded(first + second)[:_LONGEST_WORD], GLUED_WEIGHT, "glued", folded(first))
    for word in raw:
        for kin in _KIN.get(folded(word), ()):
            yield Word(kin, KIN_WEIGHT, "kin", folded(word))


_KIN_GROUPS = """
error errors fail failed failure failures failing exception fatal broken wrong
crash crashed abort aborted panic segfault killed died
warning warn caution deprecated obsolete
denied forbidden refused rejected unauthorized permission permissions disallowed
login logon signin authentication credentials password
missing absent lacks nonexistent unknown undefined
slow latency delay duration elapsed timeout
timeout timed deadline expired exceeded
stop stopped halt terminated exited shutdown quit
start started launch boot begin startup
delete deleted remove removed erase purge drop uninstall
create created add added make generate insert
change changed modify modified edit update updated alter
upgrade bump update newer
install installed setup
memory ram heap oom
disk storage space filesystem volume
processor cpu cores
network connection host route socket interface
connect connection reach reachable unreachable
folder directory dir path
file filename document
config configuration configure settings options preferences
option flag argument parameter switch
default fallback standard
limit maximum max cap threshold quota
minimum min least lowest
list listing enumerate show display print
find search locate lookup
copy duplicate replicate clone mirror
duplicate repeated already exists unique
retry retries attempt attempts again
download fetch pull retrieve get
upload push send publish
size length bytes large
count number total amount
time date timestamp when
user account owner username
author committer contributor maintainer
database db sql schema
test tests spec suite assertion
version release tag revision
invalid illegal malformed corrupt bad
ignore ignored skip skipped exclude excluded
enable enabled activate on
disable disabled deactivate off
parallel concurrent simultaneous jobs threads
environment env variable variables
encrypt encryption tls ssl cipher
certificate cert x509
vulnerability cve advisory insecure security
dependency dependencies requires required package
link url address href
picture image photo
temporary temp tmp
backup snapshot dump archive
hang hung stuck deadlock blocked
port listen listening bind
""".strip().splitlines()
"""Words that developers use for one another, from common usage; every word of a line stands for the others at low weight."""


def _kin_table() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for line in _KIN_GROUPS:
        group = line.split()
        for word in group:
            table.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return {word: tuple(others) for word, others in table.items()}


_KIN = _kin_table()
