"""`sandboxmcp run`: one script from the terminal, the way an agent would run it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from sandboxmcp.cli.commands import show, use
from sandboxmcp.cli.kernel_run import ask_at_terminal, kernel_called, run_in_joined
from sandboxmcp.cli.scripts import language_of, language_to_run, script_text
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings
from sandboxmcp.render.answer import Answer
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.session import Session
from sandboxmcp.tools.arguments import language_called
from sandboxmcp.tools.toolspec import BUDGET

_EXIT_CODES = {"ok": 0, "denied": 3}


def run(settings: Settings, as_json: bool, given: dict[str, Any]) -> int:
    """Run a file or the code that is given; returns the exit code."""
    file, code, lang = given["file"], given["code"], given["language"]
    if (file is None) == (code is None):
        raise UsageError("run wants either a FILE (- for standard input) or -c CODE")
    text = code if code is not None else script_text(file or "")
    if file != "-":
        ask_at_terminal(as_json=as_json)
    language = language_called(lang) if lang else language_of(file or "", text, "")
    queries = tuple(given["queries"] or ())
    asked = _Given(file or "", text, language, given["kernel"], queries, given["timeout_s"], given[BUDGET])
    reply = use(settings, "ctx_execute", _run, given=asked)
    exit_code = _EXIT_CODES.get(str(reply.structured["status"]), 1)
    show(reply, as_json, ok=exit_code == 0)
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
