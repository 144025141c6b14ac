"""`sandboxmcp serve`: what an agent's MCP configuration starts."""

from __future__ import annotations

from typing import Annotated

import typer

from sandboxmcp.cli.commands import command
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings

_ACTS = ("workspace", "data_dir", "policy_packs", "budget_tokens", "timeout_s", "concurrency", "structured_content")
_SURFACES = ("direct",)


def add_to(group: typer.Typer) -> None:
    """Register the command."""

    @command(group, "serve", acts=_ACTS)
    def serve(
        settings: Settings,
        as_json: bool,
        surface: Annotated[str, typer.Option(help=f"How the tools are listed: {', '.join(_SURFACES)}.")] = "direct",
    ) -> int:
        """Serve the tools to one MCP client on the standard streams."""
        if surface not in _SURFACES:
            raise UsageError(f"unknown surface {surface!r}", f"Known: {', '.join(_SURFACES)}.")
        from sandboxmcp.server.stdio import serve_stdio

        return serve_stdio(settings)
