"""The tool `ctx_fetch_and_index`, at the terminal `fetch`: fetch pages and store their text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, INTENT, SOURCE
from sandboxmcp.tools.toolspec import Alias, Argument, Bare, Command, ToolSpec


def _arranged(given: dict[str, Any], read_input: Callable[[], str]) -> dict[str, Any]:
    """Each URL is a request."""
    return {"requests": [{"url": url} for url in given.pop("urls")], **given}


_FETCH = Command(
    "fetch",
    "Fetch pages and store their text, where the policy allows.",
    parameters=(
        Argument("urls", "strings", required=True, help="One or more URLs.", is_positional=True),
        "source",
        "intent",
        "force",
        "budget_tokens",
    ),
    arrange=_arranged,
)

SPEC = ToolSpec(
    name="ctx_fetch_and_index",
    toolset="knowledge",
    description="Fetch pages (HTML, JSON, text, PDF) and store them for search; a day's cache.",
    summary="fetches pages, as far as the policy lets curl fetch, and stores their text: HTML as Markdown, JSON, feeds, PDF",
    runs="sandboxmcp.tools.fetching:fetch_and_index",
    is_read_only=False,
    is_destructive=False,
    is_open_world=True,
    arguments=(
        Argument("url", "string"),
        replace(SOURCE, description="label", help="The label; default: the URL."),
        Argument(
            "requests",
            "objects",
            fields=(Argument("url", "string", required=True), Argument("source", "string")),
            bare=Bare("url", "a URL"),
        ),
        Argument("concurrency", "integer", minimum=1),
        Argument("ttl_s", "number", minimum=0, aliases=(Alias("ttl", divide_by=1000),)),
        Argument("force", "boolean", help="Fetch again what is still young."),
        replace(INTENT, help="What you want to know."),
        BUDGET_TOKENS,
    ),
    commands=(_FETCH,),
)
