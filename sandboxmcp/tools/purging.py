"""`ctx_purge`: deletes what is stored, after a preview. The first call tells what would go and gives a token; the second takes it.

A token works once, for a minute, for exactly the sources that were previewed: what is stored in between stays. Blocking.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import Scope, Source
from sandboxmcp.core.surface import argument, call, quoted
from sandboxmcp.journal import journal
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import checked_budget, cost, first_fitting
from sandboxmcp.render.fence import one_line
from sandboxmcp.render.receipt import counted
from sandboxmcp.session import Session
from sandboxmcp.store.web.pages import PREVIEW_S

_MOST = 1_000_000


def purge(
    session: Session,
    *,
    scope: str | None = None,
    source: str | None = None,
    handle: str | None = None,
    dry_run: bool = True,
    confirm: str | None = None,
    budget_tokens: int,
) -> Answer:
    """Preview, or with `confirm` the deletion. `scope`: source (by `handle` or a part of the label), session, project or all.

    Raises:
        UsageError: no scope, nothing named for scope=source, dry_run=false without a token, or a token that is not valid (any
            more). StoreError.
    """
    budget_tokens = checked_budget(budget_tokens)
    if confirm:
        return _delete(session, confirm, budget_tokens)
    if not dry_run:
        raise UsageError(
            "nothing is deleted without a preview", f"Call without dry_run, then again with its token as {quoted('confirm')}."
        )
    doomed = _doomed(session, scope, source, handle)
    runs = _doomed_runs(session, scope)
    if not doomed and not runs.number:
        return answer(["nothing is stored there"], budget_tokens, {"sources": 0, "bytes": 0, "confirm": None})
    token = session.store.previews.put(session.project, [one.handle for one in doomed], runs=runs.written)
    return _preview(doomed, runs.number, token, budget_tokens)


class _Runs(NamedTuple):
    """Runs of the journal that a deletion takes: how many, and which, as the preview keeps it."""

    number: int
    written: str | None


def _doomed_runs(session: Session, scope: str | None) -> _Runs:
    """Those of a session, a project or all; a source alone takes none."""
    wanted = {
        "session": journal.Wanted(session.project, session=session.id),
        "project": journal.Wanted(session.project),
        "all": journal.Wanted(None),
    }.get(scope or "")
    if wanted is None:
        return _Runs(0, None)
    number, last = journal.count(session.store.database, wanted)
    return _Runs(number, json.dumps({"project": wanted.project, "session": wanted.session, "last": last}) if number else None)


def _doomed(session: Session, scope: str | None, source: str | None, handle: str | None) -> Sequence[Source]:
    store, project = session.store, session.project
    if scope == "source" and handle:
        return [store.get(handle, project=project)]
    if scope == "source" and not source:
        raise UsageError(
            "scope=source wants to know which", f"Give a {quoted('handle')}, or a {quoted('source')} that labels contain."
        )
    scopes = {
        "source": Scope(project, source=source),
        "session": Scope(project, session=session.id),
        "project": Scope(project),
        "all": Scope(None),
    }
    if scope not in scopes:
        raise UsageError(f"{call('ctx_purge')} wants a {quoted('scope')}", "It is one of source, session, project, all.")
    return store.sources(scopes[scope], limit=_MOST)


def _preview(doomed: Sequence[Source], runs: int, token: str, budget_tokens: int) -> Answer:
    size = sum(one.bytes for one in doomed)
    kinds = ", ".join(f"{number} {origin}" for origin, number in Counter(one.origin for one in doomed).most_common())
    projects = len({one.project for one in doomed})
    where = f" in {projects} projects" if projects > 1 else ""
    till = f"{argument('confirm', token)} within {PREVIEW_S:.0f} s does it"
    logged = f" and {counted(runs, 'run')} of the journal" if runs else ""
    head = f"would delete {counted(len(doomed), 'source')}{where}{f' ({kinds})' if kinds else ''}, {size} B{logged}; {till}"
    rows = [f"{one.handle} {one_line(one.label, 80)}: {one.bytes} B" for one in doomed[:200]]
    shown = first_fitting(rows, budget_tokens - cost(head) - cost("+1000000 more sources"))
    left = len(doomed) - len(shown)
    facts: dict[str, Any] = {"sources": len(doomed), "bytes": size, "runs": runs, "confirm": token, "expires_s": PREVIEW_S}
    return answer([head, *shown, *([f"+{counted(left, 'more source')}"] if left else [])], budget_tokens, facts)


def _delete(session: Session, token: str, budget_tokens: int) -> Answer:
    taken = session.store.previews.take(session.project, token.strip())
    if taken is None:
        raise UsageError(
            f"{token[:40]!r} is not a token that works (any more)",
            "Preview again: a token works once, for a minute, in its project.",
        )
    handles, runs = taken
    number = session.store.forget_all(handles)
    forgotten = journal.forget(session.store.database, journal.Wanted(**json.loads(runs))) if runs else 0
    logged = f" and {counted(forgotten, 'run')} of the journal" if forgotten else ""
    return answer([f"deleted {counted(number, 'source')}{logged}"], budget_tokens, {"deleted": number, "runs": forgotten})
