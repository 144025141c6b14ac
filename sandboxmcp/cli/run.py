"""`sandboxmcp run`: one script from the terminal, the way an agent would run it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from sandboxmcp.cli.commands import command, show
from sandboxmcp.cli.scripts import language_of, script_text
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings
from sandboxmcp.services import Services
from sandboxmcp.tools.answer import Answer
from sandboxmcp.tools.counting import count_call

_EXIT_CODES = {"ok": 0, "denied": 3}


def add_to(group: typer.Typer) -> None:
    """Register the command."""

    @command(group, "run", acts=("workspace", "data_dir", "policy_packs"))
    def run(
        settings: Settings,
        as_json: bool,
        file: Annotated[str | None, typer.Argument(help="A script, or - for standard input.", show_default=False)] = None,
        code: Annotated[str | None, typer.Option("-c", "--code", help="The script itself.", show_default=False)] = None,
        lang: Annotated[
            str | None, typer.Option(help="Language; default: by the file's ending or first line, else python.")
        ] = None,
        query: Annotated[
            list[str] | None, typer.Option("-q", "--query", help="What to look for in the output; repeatable.")
        ] = None,
        timeout: Annotated[float | None, typer.Option(help="Seconds until it is stopped; default 120.")] = None,
        budget: Annotated[int | None, typer.Option(help="Tokens of the answer; default 2,000.")] = None,
    ) -> int:
        """Run a script in the sandbox and show what an agent would see of its output."""
        if (file is None) == (code is None):
            raise UsageError("run wants either a FILE (- for standard input) or -c CODE")
        text = code if code is not None else script_text(file or "")
        language = lang or language_of(file or "", text, "python")
        reply = _run(Services(settings), text, language=language, queries=query or [], timeout_s=timeout, budget_tokens=budget)
        exit_code = _EXIT_CODES.get(str(reply.structured["status"]), 1)
        show(reply, as_json, ok=exit_code == 0, labelled=len(query or []) > 1)
        return exit_code


def _run(services: Services, code: str, **arguments: Any) -> Answer:
    import anyio

    from sandboxmcp.tools.execution import execute

    async def run_and_close() -> Answer:
        try:
            reply = await execute(services, code, **arguments)
            count_call(services, "ctx_execute", captured=reply.captured_bytes, returned=len(reply.text.encode()))
            return reply
        finally:
            with anyio.CancelScope(shield=True):
                await services.close()

    return anyio.run(partial(run_and_close))
