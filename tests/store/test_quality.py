"""A regression test of search quality: made texts of several kinds, questions in other words, and how many find their evidence.

The counts are exact: a change that moves one is looked at, and the number is changed with its reason in the same commit.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store

_THINGS = "invoice parcel customer warehouse shipment refund voucher catalogue courier pallet".split()
_TROUBLE = {
    "refused": "connection to {} was refused by the peer",
    "disk": "no space left on device while writing {}",
    "timeout": "gave up on {} after the deadline was exceeded",
    "permission": "access to {} is forbidden for this user",
    "memory": "{} worker was killed: out of memory",
}
_ASKED = {
    "refused": "{} rejected connecting",
    "disk": "{} storage full",
    "timeout": "{} timed out",
    "permission": "{} permission denied",
    "memory": "{} oom",
}


def _log() -> tuple[str, list[tuple[str, str]]]:
    lines = [
        f"2026-02-03 10:{n // 60 % 60:02d}:{n % 60:02d} INFO handled {_THINGS[n % 10]} {n} in {n % 70} ms" for n in range(3_000)
    ]
    wanted = []
    for number, (thing, trouble) in enumerate((thing, trouble) for thing in _THINGS for trouble in _TROUBLE):
        line = 40 + number * 57
        lines[line] = f"2026-02-03 11:00:00 ERROR {_TROUBLE[trouble].format(thing)} trace=T{number:03d}"
        wanted.append((_ASKED[trouble].format(thing), f"trace=T{number:03d}"))
    return "\n".join(lines), wanted


def _records() -> tuple[str, list[tuple[str, str]]]:
    names = [f"{first}{second.title()}" for first in _THINGS for second in _THINGS if first != second]
    records = [{"id": n, "handlerName": name, "retries": n % 5, "key": f"K{n:03d}"} for n, name in enumerate(names)]
    return json.dumps(records), [(f"{record['handlerName']} retries", f"K{record['id']:03d}") for record in records[::3]]


def _manual() -> tuple[str, list[tuple[str, str]]]:
    parts, wanted = ["# Manual"], []
    for number, thing in enumerate(_THINGS):
        parts += [f"## Handling a {thing}", "General words that every section has, about the work and the day.", "### Options"]
        for name, what in (("prune", "removes"), ("limit", "bounds the number of"), ("trace", "writes a record for")):
            parts.append(f"`--{thing}-{name}`: {what} {thing}s that nobody asked for, mark M{number}{name}.")
            wanted.append((f"option that {what.split()[0]} {thing}", f"M{number}{name}"))
    return "\n\n".join(parts), wanted


def _typos() -> tuple[str, list[tuple[str, str]]]:
    text, wanted = _log()
    draw = random.Random(3)

    def misspelt(query: str) -> str:
        word = max(query.split(), key=len)
        at = draw.randrange(1, len(word) - 2)
        return query.replace(word, word[:at] + word[at + 1] + word[at] + word[at + 2 :])

    return text, [(misspelt(query), mark) for query, mark in wanted[::2]]


def _man_page() -> tuple[str, list[tuple[str, str]]]:
    parts, wanted = ["STORE(1)      User Commands      STORE(1)", "NAME\n       store - keep things", "OPTIONS"], []
    for number, thing in enumerate(_THINGS):
        parts.append(f"       --drop-{thing}\n              Remove every {thing} before the program ends, mark D{number}.")
        parts.append(f"       --max-{thing}=N\n              Bound how many of them there may be. The rest waits in line.")
        wanted += [(f"delete {thing}", f"mark D{number}"), (f"{thing} limit", f"--max-{thing}")]
    return "\n\n".join(parts), wanted


def _history() -> tuple[str, list[tuple[str, str]]]:
    parts, wanted = [], []
    for number, (thing, trouble) in enumerate((thing, trouble) for thing in _THINGS for trouble in ("Speed up", "Forbid")):
        parts.append(
            f"commit {number:040d}\nAuthor: A <a@b>\nDate:   Mon\n\n    {trouble} the {thing} screen\n\n x/{number}.py | 2 +-\n"
        )
        wanted.append((f"{'faster' if trouble == 'Speed up' else 'prohibited'} {thing}", f"{trouble} the {thing}"))
    return "\n".join(parts), wanted


def _code() -> tuple[str, list[tuple[str, str]]]:
    parts, wanted = ["import os"], []
    for number, thing in enumerate(_THINGS):
        for verb in ("load", "send"):
            parts.append(
                f"def {verb}_{thing}(path):\n    rows = os.listdir(path)\n\n    return len(rows) + {number}  # {verb} R{number}"
            )
            wanted.append((f"{verb}{thing.title()} return", f"{verb} R{number}"))
    return "\n\n\n".join(parts), wanted


def _table() -> tuple[str, list[tuple[str, str]]]:
    states = ("Running", "Pending", "Evicted")
    rows = [f"{thing:12}{thing}-{state.lower()}-x{n}   1/1    {state}" for n, thing in enumerate(_THINGS) for state in states]
    return "\n".join(["NAMESPACE   NAME        READY   STATUS", *rows]), [
        (f"{thing} pod pending", f"{thing}-pending-x{n}") for n, thing in enumerate(_THINGS)
    ]


def _test_run() -> tuple[str, list[tuple[str, str]]]:
    parts, wanted = ["collected 40 items", "=================== FAILURES ==================="], []
    for number, thing in enumerate(_THINGS):
        parts.append(f"____________ test_total_of_{thing} ____________\n\n    def test_total_of_{thing}():")
        parts.append(f">       assert total('{thing}') == {number}\nE       AssertionError: assert X{number} == {number}")
        wanted.append((f"why does the {thing} test fail", f"X{number} =="))
    return "\n".join(parts), wanted


def _snapshot() -> tuple[str, list[tuple[str, str]]]:
    parts, wanted = ["- banner:", '  - link "Home"'], []
    for number, thing in enumerate(_THINGS):
        parts += [f'- region "Every {thing}":', f'  - button "Print N{number}"', f'  - link "Remove P{number}":', "    - /url: /x"]
        wanted += [(f"print {thing} button", f"Print N{number}"), (f"delete {thing} link", f"Remove P{number}")]
    return "\n".join(parts), wanted


KINDS = {
    "log": (_log, 50, 50),
    "records": (_records, 30, 30),
    "manual": (_manual, 30, 30),
    "typos": (_typos, 22, 24),
    "man page": (_man_page, 20, 20),
    "history": (_history, 20, 20),
    "code": (_code, 20, 20),
    "table": (_table, 10, 10),
    "test run": (_test_run, 10, 10),
    "snapshot": (_snapshot, 19, 20),
}
"""For each kind: how many find it among the first three passages, and among the first ten."""


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_questions_find_their_evidence_as_before(tmp_path: Path, kind: str) -> None:
    make, *expected = KINDS[kind]
    text, wanted = make()
    with Store(tmp_path) as store:
        store.add(NewSource("made", "text", "p", "s"), text)
        found = [[hit.text for hit in store.search(query, Scope("p"))[:10]] for query, _ in wanted]
    assert [
        sum(mark in "".join(texts[:most]) for texts, (_, mark) in zip(found, wanted, strict=True)) for most in (3, 10)
    ] == expected
