"""The lists of protected.toml: paths that turn a write into execution, and files in which agents are told what to do."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("protected.toml")


@dataclass(frozen=True, slots=True)
class Tool:
    """What one tool obeys in a workspace."""

    name: str
    obeys: str
    """What it does with these paths."""
    source: str
    """Where its documentation says so."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """Names, in small letters, of files with rules in words that agents obey, in any folder."""

    names: frozenset[str]
    endings: tuple[str, ...]
    folders: frozenset[str]
    """Every file in a folder of such a name is one."""


def load_tools(document: dict[str, Any]) -> tuple[Tool, ...]:
    """The tools of the document that protected.toml holds."""
    return tuple(Tool(one["name"], one["obeys"], one["source"], tuple(one["paths"])) for one in document["tool"])


def load_rules(document: dict[str, Any]) -> Rules:
    """The rules of the document that protected.toml holds."""
    rules = document["rules"]
    return Rules(frozenset(rules["names"]), tuple(rules["endings"]), frozenset(rules["folders"]))


_document = tomllib.loads(_FILE.read_text(encoding="utf-8"))
TOOLS = load_tools(_document)
RULES = load_rules(_document)
PROTECTED = tuple(dict.fromkeys(path for tool in TOOLS for path in tool.paths))
"""Paths that are protected, relative to the workspace."""
