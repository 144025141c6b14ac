"""The knowledge toolset: `ctx_search` and `ctx_sources`. (`ctx_index` and `ctx_read` have modules of their own.) Blocking."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import ContentKind, Scope, Source
from sandboxmcp.core.surface import advice, argument, call, quoted
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import checked_budget, cost, fair_shares, first_fitting, total_cost
from sandboxmcp.render.fence import named, one_line
from sandboxmcp.render.items import Found
from sandboxmcp.render.passages import Section, Seen, query_facts, section, unanswered, wanted
from sandboxmcp.render.receipt import age_of, counted
from sandboxmcp.session import Session
from sandboxmcp.tools.finding import affordable, find
from sandboxmcp.tools.refreshing import refresh

_LISTED = 1_000
"""Sources that a list looks at; more are counted."""


def search(
    session: Session,
    queries: Sequence[str],
    *,
    source: str | None = None,
    kind: ContentKind | None = None,
    limit: int | None = None,
    sort: str = "relevance",
    scope: str = "project",
    budget_tokens: int,
) -> Answer:
    """The best passages for each query; queries share the budget fairly.

    Raises:
        UsageError: no query. StoreError.
    """
    budget_tokens = checked_budget(budget_tokens)
    asked = [text.strip() for text in queries if text.strip()]
    if not asked:
        raise UsageError("queries is empty", "Give at least one with a word in it.")
    where = _scope(session, scope, source, kind)
    session.store.adopt_late()
    waiting = refresh(session, Scope(where.project, source=where.source)).waiting
    order: Literal["relevance", "recent"] = "recent" if sort == "recent" else "relevance"
    answered = affordable(asked, budget_tokens)
    note = [*unanswered(len(asked) - answered), *_missing(waiting, session.store.unadopted, session.store.read_only)]
    found = [find(session, query, where, order) for query in asked[:answered]]
    sections = _share(found, limit, budget_tokens - total_cost(note))
    lines = [line for part in sections for line in part.lines]
    if source and not any(one.hits for one in found) and not session.store.sources(where, limit=1):
        lines = [f"no source has {one_line(source, 60)!r} in its label; {call('ctx_sources')} lists them"]
    facts = {"queries": query_facts(found, sections)} | ({"waiting_files": waiting} if waiting else {})
    return answer([*lines, *note], budget_tokens, facts)


def _missing(changed: int, unadopted: int, read_only: bool) -> list[str]:
    """What the answer does not know of yet."""
    why = ": the store may only be read" if read_only else " yet: search again for the rest"
    lines = [f"{counted(changed, 'changed file')} not read again{why}"] if changed else []
    if unadopted:
        lines.append(
            f"{counted(unadopted, 'captured output')} could not be stored yet: free some space, or see {call('ctx_doctor')}"
        )
    return lines


def _scope(session: Session, scope: str, source: str | None, kind: ContentKind | None) -> Scope:
    project = None if scope == "all" else session.project
    within = session.id if scope == "session" else None
    return Scope(project, session=within, source=source or None, kind=kind)


def _share(found: Sequence[Found], limit: int | None, budget_tokens: int) -> list[Section]:
    alone = len(found) == 1  # then it has all, and what it would take need not be counted
    shares = [budget_tokens] if alone else fair_shares([wanted(one, None, limit) for one in found], budget_tokens)
    spare = budget_tokens - sum(shares)
    sections: list[Section] = []
    seen = Seen()
    for one, share in zip(found, shares, strict=True):
        part = section(one, share + spare, seen, titled=len(found) > 1, limit=limit)
        spare = share + spare - total_cost(part.lines)
        sections.append(part)
    return sections


def sources(
    session: Session, *, action: str = "list", source: str | None = None, handle: str | None = None, budget_tokens: int
) -> Answer:
    """What is stored in this project, newest first; or forget what is named.

    To forget, `handle` may be several handles; `source` is an exact label, or a part of one that only one source has: where
    several have it they are listed, as an error, and nothing is forgotten.

    Raises:
        UsageError: nothing to forget is named, or the handle is unknown. StoreError.
    """
    budget_tokens = checked_budget(budget_tokens)
    if action == "forget":
        return _forget(session, source, handle, budget_tokens)
    listed = [session.store.get(handle, project=session.project)] if handle else _listed(session, source)
    rows = [_row(one) for one in listed]
    lines = first_fitting(rows, budget_tokens - cost(_left_out(_LISTED)))
    left = len(rows) - len(lines)
    note = [_left_out(left)] if left else []
    return answer([*(lines or ["nothing stored"] * (not rows)), *note], budget_tokens, _list_facts(listed, len(lines)))


def _left_out(number: int) -> str:
    how = f"narrow with {argument('source')}, or raise {argument('budget_tokens')}"
    return f"+{counted(number, 'more source')}: {advice('see_more_sources', how)}"


def _listed(session: Session, source: str | None) -> list[Source]:
    refresh(session, Scope(session.project, source=source or None))
    return session.store.sources(Scope(session.project, source=source or None), limit=_LISTED)


def _forget(session: Session, source: str | None, handle: str | None, budget_tokens: int) -> Answer:
    if not source and not handle:
        raise UsageError("nothing is named to forget", f"Give a {quoted('handle')}, or a {quoted('source')}: its label.")
    if handle:
        doomed = [session.store.get(one, project=session.project) for one in handle.replace(",", " ").split()]
    else:
        found = _every(session, source or "")
        doomed = [one for one in found if one.label == source] or found
        if not doomed:
            raise UsageError(f"no source has {source!r} in its label", f"See {advice('list_sources', 'action=list')}.")
        if len(doomed) > 1 and doomed is found:
            return _ambiguous(found, source or "", budget_tokens)
    number = session.store.forget([one.handle for one in doomed], project=session.project)
    return answer(
        [f"forgot {counted(number, 'source')}: " + ", ".join(one.handle for one in doomed)], budget_tokens, {"forgotten": number}
    )


def _every(session: Session, source: str) -> list[Source]:
    """All sources with this in their label, however many."""
    found: list[Source] = []
    while page := session.store.sources(Scope(session.project, source=source), limit=_LISTED, offset=len(found)):
        found += page
    return found


def _ambiguous(found: Sequence[Source], source: str, budget_tokens: int) -> Answer:
    what = f"{len(found)} sources have {one_line(source, 60)!r} in their label, none was forgotten. Give handles or an exact label:"
    rows = first_fitting([_row(one) for one in found], budget_tokens - cost(what))
    return answer([what, *rows], budget_tokens, _list_facts(found, len(rows)), is_error=True)


def _row(one: Source) -> str:
    label = named(one.label, 80)
    counts = f"{one.bytes} B, {counted(one.lines, 'line')}, {age_of(time.time() - one.created_at)}, {counted(one.hits, 'hit')}"
    return f"{one.handle} {label}: {one.kind}, {counts}" + ", its file is gone" * one.gone


def _list_facts(listed: Sequence[Source], shown: int) -> dict[str, Any]:
    rows = [
        {"handle": one.handle, "label": one.label, "kind": one.kind, "bytes": one.bytes, "lines": one.lines, "hits": one.hits}
        for one in listed[:shown]
    ]
    return {"sources": rows, "more": len(listed) - shown}
