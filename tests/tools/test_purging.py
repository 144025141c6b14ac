"""ctx_purge: nothing goes without a preview, and only what was previewed."""

from __future__ import annotations

from typing import Any

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.session import Session
from sandboxmcp.store.web.pages import PREVIEW_S
from sandboxmcp.tools.purging import purge


def add(own: Session, label: str, **more: str) -> str:
    facts: dict[str, Any] = {"project": own.project, "session": own.id} | more
    return own.store.add(NewSource(label, "text", **facts), f"text of {label}\n").handle


def labels(session: Session) -> set[str]:
    return {one.label for one in session.store.sources(Scope(None))}


@pytest.fixture
def filled(session: Session) -> Session:
    for label, more in (("mine", {}), ("older", {"session": "before"}), ("other", {"project": "/elsewhere"})):
        add(session, label, **more)
    return session


@pytest.mark.parametrize(
    ("scope", "left"), [("session", {"older", "other"}), ("project", {"other"}), ("all", set()), ("source", {"older", "other"})]
)
def test_a_scope_goes_once_its_preview_is_confirmed(filled: Session, scope: str, left: set[str]) -> None:
    preview = purge(filled, scope=scope, source="min", budget_tokens=300)
    assert preview.text.startswith("would delete ") and len(labels(filled)) == 3
    purge(filled, confirm=preview.structured["confirm"], budget_tokens=300)
    assert labels(filled) == left


def test_a_token_works_once_and_takes_only_what_was_shown(filled: Session) -> None:
    token = purge(filled, scope="project", budget_tokens=300).structured["confirm"]
    add(filled, "newer")
    assert purge(filled, confirm=token, budget_tokens=300).text == "deleted 2 sources" and labels(filled) == {"newer", "other"}
    with pytest.raises(UsageError, match="not a token that works"):
        purge(filled, confirm=token, budget_tokens=300)


def test_a_token_is_good_for_a_minute_and_for_its_project(session: Session) -> None:
    previews = session.store.previews
    token = previews.put("p", ["a"], now=1_000.0)
    assert previews.take("q", token, now=1_001.0) is None
    token = previews.put("p", ["a"], now=1_000.0)
    assert previews.take("p", token, now=1_001.0 + PREVIEW_S) is None
    assert previews.take("p", previews.put("p", ["a"], now=1_000.0), now=1_059.0) == (["a"], None)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({}, "wants a `scope`"), ({"scope": "source"}, "wants to know which"), ({"dry_run": False}, "without a preview")],
)
def test_what_is_to_go_must_be_said(session: Session, arguments: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        purge(session, **arguments, budget_tokens=300)  # type: ignore[arg-type]
