"""The answer of a tool: its rendered text, held to the budget whatever went into it, and its facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.render.budget import MINIMUM, Page, checked_budget, cut
from sandboxmcp.render.fence import harmless

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


def masked(reply: Answer, mask: Callable[[str], str], budget_tokens: int) -> Answer:
    """The answer without credentials that a caller gave (a label, a query, a URL): what was stored has none already."""
    text = mask(reply.text)
    if text != reply.text:  # a mark may be longer than what it stands for
        text = answer(text.split("\n"), max(budget_tokens, MINIMUM)).text
    return replace(reply, text=text, structured=masked_facts(mask, reply.structured))


def masked_facts(mask: Callable[[str], str], facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Facts with every text in them masked, however deep."""
    whole = json.dumps(facts, ensure_ascii=False, default=str)
    return facts if mask(whole) == whole else {name: _masked_value(mask, value) for name, value in facts.items()}


def _masked_value(mask: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(name)): _masked_value(mask, one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_masked_value(mask, one) for one in value]
    return value
