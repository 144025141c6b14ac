"""Which clients show their model only the structured half of a result: for them ours leaves it out, so that the text arrives."""

from __future__ import annotations

import re

HIDING_TEXT = (
    # Looked up in November 2026. A result that has structuredContent reaches the model without its text:
    "claude-code",  # anthropics/claude-code#79944, shown there with 2.1.280 on 2026-09-22; errors are the other way round, #86032
    "visual-studio-code",  # microsoft/vscode#290063; also its Insiders
    "vscode",
    "codex",  # calls itself codex-mcp-client; anomalyco/opencode#32074 says that it does the same
    "opencode",  # since that pull request, 2026-06-12
    # Not claude-ai (anthropics/claude-code#55677: both arrive) and not Cursor, cursor-vscode (#79944: the text arrives).
)
"""Beginnings of the names that clients give themselves, in small letters with hyphens between the words."""

_BETWEEN_WORDS = re.compile(r"[\s_-]+")


def hides_text(client: str | None) -> bool:
    """Whether a client of that name (`clientInfo.name`; None: it gave none) hides the text beside structured content."""
    name = _BETWEEN_WORDS.sub("-", (client or "").strip().casefold())
    return any(name == known or name.startswith(known + "-") for known in HIDING_TEXT)
