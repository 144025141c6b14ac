"""Why something ended, was refused, limited, cut or lost: a code and facts. Each surface says it in its own words.

`render/reasons.py` has the words. Nothing reads a code or a fact back from a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. The values of `facts` are JSON: numbers are bytes, seconds or counts, as the code's words say."""

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    next_step: str = ""
    """The code of what its reader can do; empty where there is nothing, or where the words of the reason say it."""

    def as_json(self) -> dict[str, Any]:
        """What is stored, and told to other processes."""
        return {"code": self.code, "facts": dict(self.facts), "next_step": self.next_step}


def from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[Reason, ...]:
    """Reasons as `as_json` gave them."""
    return tuple(Reason(str(one["code"]), dict(one.get("facts", {})), str(one.get("next_step", ""))) for one in stored)


def coded(reasons: Iterable[Reason], *codes: str) -> Reason | None:
    """The first reason that has one of these codes."""
    return next((one for one in reasons if one.code in codes), None)
