"""The tool `ctx_purge`, at the terminal `purge`: delete what is stored, after a preview."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS, SOURCE, scope
from sandboxmcp.tools.toolspec import Argument, Command, ToolSpec

_HELP = """\
Delete what is stored, after a preview.

The first call shows what would go and gives the token that does it.
"""

SPEC = ToolSpec(
    name="ctx_purge",
    toolset="knowledge",
    description="Delete what is stored: previews first, then wants the token.",
    summary="deletes a source, a session, a project or everything, after a preview",
    runs="sandboxmcp.tools.purging:purge",
    is_read_only=False,
    is_destructive=True,
    is_open_world=False,
    arguments=(
        replace(scope("source", "session", "project", "all"), help="source, project or all.", is_positional=True),
        SOURCE,
        Argument("handle", "string", is_hidden=True),
        Argument("dry_run", "boolean", is_hidden=True),
        Argument("confirm", "string", "the preview's token", help="The token of a preview, to delete."),
        BUDGET_TOKENS,
    ),
    commands=(Command("purge", _HELP),),
)
