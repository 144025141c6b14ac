"""`sandboxmcp jobs`: the background jobs of this project's servers."""

from __future__ import annotations

from typing import Annotated

import typer

from sandboxmcp.cli.commands import command, show, use
from sandboxmcp.core.settings import Settings

_Job = Annotated[str, typer.Argument(help="The job's handle.", show_default=False)]
_Budget = Annotated[int | None, typer.Option("--budget", help="Tokens of the answer; default 2,000.", show_default=False)]


def add_to(group: typer.Typer) -> None:
    """Register the group."""
    jobs = typer.Typer(name="jobs", help="Background jobs of running and earlier servers.", no_args_is_help=True)
    group.add_typer(jobs)

    @command(jobs, "list")
    def listed(settings: Settings, as_json: bool, budget: _Budget = None) -> int:
        """List this project's jobs, newest first."""
        return _tell(settings, as_json, budget, "list")

    @command(jobs, "result")
    def result(settings: Settings, as_json: bool, job: _Job, budget: _Budget = None) -> int:
        """Show what a job printed, or how far it is."""
        return _tell(settings, as_json, budget, "result", job)

    @command(jobs, "cancel")
    def cancel(settings: Settings, as_json: bool, job: _Job, budget: _Budget = None) -> int:
        """Stop a job with all it started; what it had printed is kept."""
        return _tell(settings, as_json, budget, "cancel", job)


def _tell(settings: Settings, as_json: bool, budget: int | None, action: str, job: str | None = None) -> int:
    from sandboxmcp.tools.jobs import jobs

    tokens = settings.budget_tokens if budget is None else budget
    reply = use(settings, "ctx_jobs", jobs, action=action, job=job, budget_tokens=tokens)
    show(reply, as_json)
    return 1 if reply.is_error else 0
