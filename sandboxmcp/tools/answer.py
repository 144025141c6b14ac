"""The one exit: what every tool returns, its rendered text within the budget whatever went into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.tools.budget import MINIMUM, Page, checked_budget, cut
from sandboxmcp.tools.fence import harmless

DEFAULT_BUDGET = 2_000


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that the caller asked to see."""

    data: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: `text` for the model, `structured` facts without any of the snippets, pictures when asked for."""

    text: str
    structured: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False
    pictures: tuple[Picture, ...] = ()
    captured_bytes: int = 0
    """What the call captured, for the statistics."""


def answer(
    lines: Sequence[str],
    budget_tokens: int,
    structured: Mapping[str, Any] | None = None,
    *,
    is_error: bool = False,
    pictures: tuple[Picture, ...] = (),
    captured_bytes: int = 0,
) -> Answer:
    """Lines that were laid out for a budget, held to it: what does not fit is cut at the end, visibly.

    Raises:
        UsageError: the budget is below the minimum.
    """
    page = Page(checked_budget(budget_tokens))
    if not page.add_all(lines):
        page.add_cut(lines[len(page.lines)])
    return Answer(page.text, structured or {}, is_error, pictures, captured_bytes)


def failure(error: SandboxmcpError, budget_tokens: int = DEFAULT_BUDGET) -> Answer:
    """An error that its reader can act on, on one line: what happened and what to do next."""
    text = " ".join(harmless(line).strip() for line in str(error).splitlines() if line.strip())
    said = cut(text, max(budget_tokens, MINIMUM))
    return Answer(said, {"error": type(error).__name__, "exit_code": error.exit_code, "message": said}, is_error=True)
