"""Clients that hide the text beside structured content are known by the names that they give themselves."""

from __future__ import annotations

import pytest

from sandboxmcp.server.app import hides_text

NAMES = [
    ("claude-code", True),
    ("Claude Code", True),
    ("CLAUDE_CODE", True),
    ("Visual Studio Code", True),
    ("Visual Studio Code - Insiders", True),
    ("vscode", True),
    ("codex-mcp-client", True),
    ("claude-ai", False),
    ("cursor-vscode", False),
    ("claude-codec", False),
    ("", False),
    (None, False),
]


@pytest.mark.parametrize(("name", "hides"), NAMES)
def test_a_client_is_known_however_it_writes_its_name(name: str | None, hides: bool) -> None:
    assert hides_text(name) == hides
