"""What a rule is, which facts it is about, and when it matches one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sandboxmcp.core.model import Action, Setting
from sandboxmcp.policy.conditions import CONDITIONS, Subject
from sandboxmcp.policy.facts import Key, Touch, Url, keys_of
from sandboxmcp.policy.paths import covers

STRICTNESS: Mapping[Action, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Example:
    """Code with the verdict that the pack must give it."""

    code: str
    language: str
    verdict: Action
    setting: Setting = "kernel"


@dataclass(frozen=True, slots=True)
class Rule:
    """All of `when` must hold, and none of `unless`."""

    id: str
    verdict: Action
    because: str
    instead: str
    keys: frozenset[Key] = frozenset()
    """What it is about, alternatives."""
    paths: tuple[str, ...] = ()
    """Patterns of paths, see paths.py; for a fact that is a path."""
    urls: tuple[str, ...] = ()
    """Globs, likewise."""
    when: tuple[tuple[str, Any], ...] = ()
    unless: tuple[tuple[str, Any], ...] = ()
    settings: frozenset[Setting] = frozenset({"kernel", "host"})
    examples: tuple[Example, ...] = ()


def matches(rule: Rule, subject: Subject) -> bool | None:
    """Whether the rule applies; None when that is known only at run time."""
    fact = subject.fact
    if rule.keys.isdisjoint(keys_of(fact)):
        return False
    if isinstance(fact, Touch) and not covers(rule.paths, subject.path, fact.access):
        return False
    if isinstance(fact, Url) and not any(fnmatchcase(fact.text, pattern) for pattern in rule.urls):
        return False
    held = [CONDITIONS[name].holds(subject, value) for name, value in rule.when]
    exempt = [CONDITIONS[name].holds(subject, value) for name, value in rule.unless]
    if False in held or True in exempt:
        return False
    return None if None in held or None in exempt else True
