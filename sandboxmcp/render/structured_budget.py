"""Structured content within a budget of its own: some clients send it to the model in place of the text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sandboxmcp.core.tokens import costs_at_most, estimate_tokens

_TEXT_LENGTHS = (200, 80, 20)
"""Characters that one text may keep, tried in turn; handles and citations are shorter than the last."""


def condensed(facts: Mapping[str, Any], budget_tokens: int) -> dict[str, Any]:
    """The facts, as they are when they cost at most the budget by themselves.

    Otherwise every list keeps as many of its first rows as fit, and `left_out` says by name how many are missing.
    """
    if costs_at_most(_as_json(facts), budget_tokens):
        return dict(facts)
    for length in _TEXT_LENGTHS:
        if facts_cost(_cut(facts, 0, length)) <= budget_tokens:
            return _cut(facts, _most_rows(facts, length, budget_tokens), length)
    return {"left_out": len(facts)}


def facts_cost(facts: Mapping[str, Any]) -> int:
    """Tokens of the facts as JSON."""
    return estimate_tokens(_as_json(facts))


def _as_json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def _most_rows(facts: Mapping[str, Any], length: int, budget_tokens: int) -> int:
    low, high = 0, max(map(_longest, facts.values()), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if facts_cost(_cut(facts, middle, length)) <= budget_tokens else (low, middle - 1)
    return low


def _cut(facts: Mapping[str, Any], rows: int, length: int) -> dict[str, Any]:
    left_out: Counter[str] = Counter()
    short = {name: _shortened(value, rows, length, name, left_out) for name, value in facts.items()}
    return short | ({"left_out": dict(left_out)} if left_out else {})


def _shortened(value: Any, rows: int, length: int, name: str, left_out: Counter[str]) -> Any:
    if isinstance(value, str):
        return value if len(value) <= length else value[: length - 1] + "…"
    if isinstance(value, list | tuple):
        if len(value) > rows:
            left_out[name] += len(value) - rows
        return [_shortened(one, rows, length, name, left_out) for one in value[:rows]]
    if _is_table(value):
        if len(value) > rows:
            left_out[name] += len(value) - rows
        return {key: _shortened(one, rows, length, name, left_out) for key, one in list(value.items())[:rows]}
    if isinstance(value, Mapping):
        return {key: _shortened(one, rows, length, key, left_out) for key, one in value.items()}
    return value


def _is_table(value: Any) -> bool:
    """Rows by their names."""
    return isinstance(value, Mapping) and bool(value) and all(isinstance(one, Mapping) for one in value.values())


def _longest(value: Any) -> int:
    if isinstance(value, Mapping):
        return max(len(value), *map(_longest, value.values())) if value else 0
    if isinstance(value, list | tuple):
        return max(len(value), *map(_longest, value)) if value else 0
    return 0
