"""The tool `ctx_jobs`, at the terminal `jobs list | result | cancel`: background jobs."""

from __future__ import annotations

from dataclasses import replace

from sandboxmcp.tools.specs.common import BUDGET_TOKENS
from sandboxmcp.tools.toolspec import Argument, Command, Group, ToolSpec

_GROUP = Group("jobs", "Background jobs of running and earlier servers.")
_JOB = Argument("job", "string", help="The job's handle.", is_positional=True)
_THIS_JOB = (replace(_JOB, required=True), "budget_tokens")

SPEC = ToolSpec(
    name="ctx_jobs",
    toolset="execution",
    description="Background jobs of ctx_execute.",
    summary="background jobs: list, result, cancel",
    runs="sandboxmcp.tools.jobs:jobs",
    is_read_only=False,
    is_destructive=True,
    is_open_world=False,
    arguments=(Argument("action", "string", choices=("list", "result", "cancel")), _JOB, BUDGET_TOKENS),
    commands=(
        Command("list", "List this project's jobs, newest first.", _GROUP, ("budget_tokens",), {"action": "list"}),
        Command("result", "Show what a job printed, or how far it is.", _GROUP, _THIS_JOB, {"action": "result"}),
        Command("cancel", "Stop a job with all it started; what it had printed is kept.", _GROUP, _THIS_JOB, {"action": "cancel"}),
    ),
)
