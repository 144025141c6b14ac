"""The tool `ctx_search`, at the terminal `search`: search everything that is stored."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, QUERIES, SOURCE, scope
from sandboxmcp.tools.toolspec import Alias, Argument, Command, ToolSpec

SPEC = ToolSpec(
    name="ctx_search",
    toolset="knowledge",
    description="Search everything stored: outputs, files, texts.",
    summary="searches everything that is stored",
    runs="sandboxmcp.tools.knowledge:search",
    is_read_only=True,
    is_destructive=False,
    is_open_world=False,
    arguments=(
        replace(QUERIES, required=True, help="One or more questions.", is_positional=True),
        replace(SOURCE, description="part of the label"),
        Argument(
            "kind",
            "string",
            choices=("code", "prose", "log", "data"),
            aliases=(Alias("contentType"),),
            help="code, prose, log or data.",
        ),
        Argument("limit", "integer", "max per query, weak matches too", minimum=1, help="At most this many passages per query."),
        Argument(
            "sort",
            "string",
            choices=("relevance", "recent"),
            synonyms={"timeline": "recent"},
            default="relevance",
            help="relevance or recent.",
        ),
        replace(scope("project", "session", "all"), default="project", help="project or all."),
        BUDGET_TOKENS,
    ),
    commands=(Command("search", "Search what is stored; passages are cited handle:first-last."),),
)
