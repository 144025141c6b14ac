"""From what scripts have done to the answer: their outcomes, what was found of what was asked, and the facts beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sandboxmcp.core.model import NewSource, Scope, Source
from sandboxmcp.render.answer import Answer, Picture, answer
from sandboxmcp.render.budget import total_cost
from sandboxmcp.render.extract import worth_searching
from sandboxmcp.render.fence import one_line
from sandboxmcp.render.items import Found, Item
from sandboxmcp.render.layout import all_whole, lay_out, must_condense
from sandboxmcp.render.passages import Section, query_facts
from sandboxmcp.render.receipt import receipt, row
from sandboxmcp.session import Session
from sandboxmcp.tools.finding import affordable, find
from sandboxmcp.tools.remember import with_error_lines
from sandboxmcp.tools.script_runs import Job

_PICTURE_BYTES = 1 << 20
"""Larger images are not sent inline; their handle is in the answer all the same."""
_TERMS = 20
_TERMS_ASKED = 60
"""Of which some will not be worth a search."""
_NOTICE = 200
"""Characters of a notice; with a budget of fewer tokens it waits for the next answer."""


def answer_of(
    session: Session,
    job: Job,
    items: list[Item],
    asked: Sequence[str],
    budget: int,
    *,
    everywhere: bool = False,
    images: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> Answer:
    """What a job's items answer to what was asked: found in them alone, or `everywhere` in the project. Blocking.

    `facts` are added to the structured ones.
    """
    store = session.store
    full_list = _store_receipts(session, items) if must_condense(items, budget) else None
    scope = Scope(session.project) if everywhere else Scope(session.project, batch=job.batch)
    needless = not everywhere and full_list is None and all_whole(items, budget)
    answered = affordable(asked, budget)
    found = [] if needless else [find(session, query, scope) for query in asked[:answered]]
    hits = any(one.hits for one in found)
    items = [item if hits and item.outcome.status == "ok" else _with_error_lines(session, item) for item in items]
    long = [stream.source.handle for item in items for stream in item.streams if stream.whole is None]
    terms = worth_searching(store.terms(long, limit=_TERMS_ASKED), asked)[:_TERMS] if long else []
    notices = [one_line(f"note: {notice}", _NOTICE) for notice in _notices(session, job)] if budget > _NOTICE else []
    unasked = 0 if needless else len(asked) - answered
    laid = lay_out(items, found, terms, budget - total_cost(notices), full_list, unasked)
    return answer(
        [*notices, *laid.lines],
        budget,
        {**_facts(job, items, found, laid.sections, full_list), **(facts or {})},
        is_error=all(item.outcome.status in ("denied", "skipped") for item in items),
        pictures=_pictures(session, items) if images else (),
        captured_bytes=sum(stream.source.total_bytes for item in items for stream in item.streams),
    )


def _journal_trouble(session: Session) -> list[str]:
    """Once, that the journal cannot be written."""
    journal = session.journal
    if journal is None or not journal.trouble:
        return []
    told, journal.trouble = journal.trouble, ""
    return [told]


def _notices(session: Session, job: Job) -> list[str]:
    return [*job.notes, *_journal_trouble(session), *session.runner.take_mode(), *session.runner.take_notices()]


def _with_error_lines(session: Session, item: Item) -> Item:
    """Those of stderr only where the item did not end well: else its end is enough."""
    stdout = with_error_lines(session, item.stdout) if item.stdout else None
    stderr = with_error_lines(session, item.stderr) if item.stderr and item.outcome.status != "ok" else item.stderr
    return replace(item, stdout=stdout, stderr=stderr)


def _store_receipts(session: Session, items: Sequence[Item]) -> Source:
    text = "\n".join(receipt(item, whole=False) for item in items)
    new = NewSource("batch receipts", "batch", session.project, session.id, kind="log")
    return session.store.add(new, text)


def _facts(
    job: Job, items: Sequence[Item], found: Sequence[Found], sections: Sequence[Section], full_list: Source | None
) -> dict[str, Any]:
    """Handles, sizes and citations; none of the text."""
    rows = [row(item) for item in items]
    counts = dict(Counter(item.outcome.status for item in items))
    alone = {name: value for name, value in rows[0].items() if name != "label"}
    facts: dict[str, Any] = {"counts": counts, "items": rows} if job.origin == "batch" else alone
    if found:
        facts["queries"] = query_facts(found, sections)
    if full_list is not None:
        facts["receipts"] = full_list.handle
    return facts


def _pictures(session: Session, items: Sequence[Item]) -> tuple[Picture, ...]:
    """The images that the scripts displayed, up to 1 MiB in all."""
    pictures: list[Picture] = []
    room = _PICTURE_BYTES
    for artifact in (artifact for item in items for artifact in item.artifacts):
        if artifact.mime.startswith("image/") and artifact.mime != "image/svg+xml" and artifact.bytes <= room:
            room -= artifact.bytes
            pictures.append(Picture(b"".join(session.store.raw(artifact.handle)), artifact.mime))
    return tuple(pictures)
