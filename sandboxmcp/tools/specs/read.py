"""The tool `ctx_read`, at the terminal `read`: show a stored text."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, scope
from sandboxmcp.tools.toolspec import Argument, Command, ToolSpec

SPEC = ToolSpec(
    name="ctx_read",
    toolset="knowledge",
    description="Read stored text by handle or citation, page by page.",
    summary="reads stored text by handle or citation, page by page",
    runs="sandboxmcp.tools.reading:read",
    is_read_only=True,
    is_destructive=False,
    is_open_world=False,
    arguments=(
        Argument("handle", "string", help="A handle or a citation such as HANDLE:98-102.", is_positional=True),
        Argument("from_line", "integer", minimum=1, help="First line.", flags=("--from",)),
        Argument("to_line", "integer", minimum=1, help="Last line.", flags=("--to",)),
        Argument(
            "around",
            "string",
            "a citation, shown with 10 lines on each side",
            help="A citation, shown with 10 lines on each side.",
        ),
        Argument("grep", "string", "only lines with this text", help="Only lines that hold this text."),
        Argument("cursor", "string", "of the next page", help="Where the page before ended."),
        replace(scope("project", "all"), is_hidden=True),
        BUDGET_TOKENS,
    ),
    commands=(Command("read", "Show a stored text, page by page."),),
)
