"""What another process ran, answered as if it had run here: from the row that is known of it and what the store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import Outcome, Script, Source
from sandboxmcp.core.reasons import Reason, from_json
from sandboxmcp.render.answer import Answer
from sandboxmcp.render.items import Item, Stream
from sandboxmcp.session import Session
from sandboxmcp.tools.answering import answer_of
from sandboxmcp.tools.remember import stored_stream
from sandboxmcp.tools.script_runs import Job


def recalled_answer(
    session: Session, row: Mapping[str, Any], language: str, asked: Sequence[str], budget: int, facts: Mapping[str, Any]
) -> Answer:
    """The answer to a single execution. `row` is as receipt.record gives it, `facts` are added to the structured ones. Blocking."""
    item = recalled_item(session, row, language)
    batch = next((stream.source.batch for stream in item.streams if stream.source.batch), "")
    job = Job((item.outcome.script,), ("",), (f"execute:{language}",), "execute", batch)
    return answer_of(session, job, [item], asked, budget, facts=facts)


def recalled_item(session: Session, row: Mapping[str, Any], language: str) -> Item:
    """The item with those of its streams and artifacts that are still stored."""
    outcome = Outcome(Script("", language, ""), row["status"], row["exit_code"], float(row["wall_s"]), reasons=_reasons(row))
    stored = [_source(session, one["handle"]) for one in row.get("artifacts", ())]
    artifacts = tuple(one for one in stored if one is not None)
    return Item("", outcome, _stream(session, row.get("handle")), _stream(session, row.get("stderr")), artifacts)


def _reasons(row: Mapping[str, Any]) -> tuple[Reason, ...]:
    """Rows of older versions have a sentence only."""
    if "reasons" in row:
        return from_json(row["reasons"])
    return (Reason("recorded", {"text": str(row["reason"])}),) if row.get("reason") else ()


def _stream(session: Session, handle: str | None) -> Stream | None:
    source = _source(session, handle) if handle else None
    return None if source is None else stored_stream(session, source)


def _source(session: Session, handle: str) -> Source | None:
    """None: it has been forgotten meanwhile."""
    try:
        return session.store.get(handle, project=session.project)
    except UsageError:
        return None
