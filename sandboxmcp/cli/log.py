"""`sandboxmcp log`: what was run."""

from __future__ import annotations

from typing import Annotated

import typer

from sandboxmcp.cli.commands import command, show
from sandboxmcp.core.settings import Settings


def add_to(group: typer.Typer) -> None:
    """Register the command."""

    @command(group, "log", acts=("workspace", "data_dir", "journal"))
    def log(
        settings: Settings,
        as_json: bool,
        which: Annotated[
            str | None, typer.Argument(help="A session by the beginning of its id, or one run by its number.", show_default=False)
        ] = None,
        tool: Annotated[str | None, typer.Option("--tool", help="Only runs of this tool, such as ctx_execute.")] = None,
        status: Annotated[
            str | None, typer.Option("--status", help="Only runs with an item that ended so: ok, failed, denied, killed, lost, …")
        ] = None,
        since: Annotated[str | None, typer.Option("--since", help="Only runs of the last 30min, 2h or 7d.")] = None,
        limit: Annotated[int, typer.Option("--limit", help="How many runs, newest first.")] = 20,
        all_projects: Annotated[bool, typer.Option("--all-projects", help="Those of other projects too.")] = False,
        budget: Annotated[int | None, typer.Option("--budget", help="Tokens of the answer; default 2,000.")] = None,
    ) -> int:
        """Show what was run: sessions, runs, their code.

        Lists runs, newest first. With the number of one it shows that run and its code.
        """
        import anyio

        from sandboxmcp.session import Session
        from sandboxmcp.tools.run_log import run_log

        session = Session(settings)
        try:
            reply = run_log(
                session,
                which=which,
                tool=tool,
                status=status,
                since=since,
                limit=limit,
                all_projects=all_projects,
                budget_tokens=settings.budget_tokens if budget is None else budget,
            )
        finally:
            anyio.run(session.close)
        show(reply, as_json)
        return 0
