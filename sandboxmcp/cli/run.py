"""`sandboxmcp run`: one script from the terminal, the way an agent would run it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from sandboxmcp.cli.commands import command, show, use
from sandboxmcp.cli.kernel_run import ask_at_terminal, kernel_called, run_in_joined
from sandboxmcp.cli.scripts import language_of, language_to_run, script_text
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings
from sandboxmcp.render.answer import Answer
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.server.arguments import language_called
from sandboxmcp.session import Session

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
            str | None,
            typer.Option("--lang", "--language", help="Language; default: by the file's ending or first line, else python."),
        ] = None,
        kernel: Annotated[
            str | None,
            typer.Option(help="Named kernel of a running server of this project; else one that ends with this command."),
        ] = None,
        query: Annotated[
            list[str] | None, typer.Option("-q", "--query", help="What to look for in the output; repeatable.")
        ] = None,
        timeout: Annotated[float | None, typer.Option(help="Seconds until it is stopped; default 120.")] = None,
        budget: Annotated[int | None, typer.Option(help="Tokens of the answer; default 2,000.")] = None,
    ) -> int:
        """Run a script in the sandbox; show what an agent would see."""
        if (file is None) == (code is None):
            raise UsageError("run wants either a FILE (- for standard input) or -c CODE")
        text = code if code is not None else script_text(file or "")
        if file != "-":
            ask_at_terminal(as_json=as_json)
        language = language_called(lang) if lang else language_of(file or "", text, "")
        given = _Given(file or "", text, language, kernel, tuple(query or ()), timeout, budget)
        reply = use(settings, "ctx_execute", _run, given=given)
        exit_code = _EXIT_CODES.get(str(reply.structured["status"]), 1)
        show(reply, as_json, ok=exit_code == 0, labelled=len(query or []) > 1)
        return exit_code


@dataclass(frozen=True, slots=True)
class _Given:
    """What the command line says of one run."""

    file: str
    """Its name; empty when the code was given itself."""
    code: str
    language: str
    """Empty when nothing tells."""
    kernel: str | None
    queries: tuple[str, ...]
    timeout_s: float | None
    budget: int | None


async def _run(session: Session, given: _Given) -> Answer:
    from sandboxmcp.tools.execution import execute

    kernel = kernel_called(session.settings, given.kernel, here=True) if given.kernel is not None else None
    if kernel is None:
        if given.kernel is not None:
            print(f"note: no running server has a kernel {given.kernel[:64]!r} here: it ends with this command", file=sys.stderr)
        return await execute(
            session,
            given.code,
            language=given.language or language_to_run(given.file, given.code),
            kernel=given.kernel,
            queries=given.queries,
            timeout_s=given.timeout_s,
            budget_tokens=given.budget,
        )
    if given.language not in ("", kernel.language):
        raise UsageError(f"the kernel {kernel.name!r} runs {kernel.language}, not {given.language}", "Name another with --kernel.")
    budget = checked_budget(session.settings.budget_tokens if given.budget is None else given.budget)
    return await run_in_joined(session, kernel, given.code, given.queries, given.timeout_s, budget)
