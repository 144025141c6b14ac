"""A script in a named kernel that a running server has: the server runs it, judges it and stores what it prints."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings
from sandboxmcp.render.answer import Answer
from sandboxmcp.render.fence import one_line
from sandboxmcp.session import Session
from sandboxmcp.tools.asking import ASK, Question

if TYPE_CHECKING:
    from sandboxmcp.kernels.registry import Shared


def kernel_called(settings: Settings, name: str, *, here: bool = False) -> Shared | None:
    """The kernel of that name (or PID:NAME, NAME@PID) of a running server; with `here` only of this project. None: there is none.

    Raises:
        UsageError: several servers have one.
    """
    from sandboxmcp.kernels.registry import shared_kernels

    known = [one for one in shared_kernels(settings.data_dir) if not here or one.workspace == str(settings.workspace)]
    fitting = [one for one in known if name in (one.name, f"{one.pid}:{one.name}", f"{one.name}@{one.pid}")]
    if len(fitting) > 1:
        names = ", ".join(f"{one.pid}:{one.name}" for one in fitting)
        raise UsageError(f"several kernels are called {name[:80]!r}", f"Use one of: {names}.")
    return fitting[0] if fitting else None


async def run_in_joined(
    session: Session, kernel: Shared, code: str, queries: Sequence[str], timeout_s: float | None, budget_tokens: int
) -> Answer:
    """What a fresh execution would answer.

    Raises:
        UsageError: the server does not answer, or refuses. KernelGone: the kernel ended before the script's turn.
    """
    import anyio.to_thread

    from sandboxmcp.shell.kernel_targets import Joined
    from sandboxmcp.tools.recalling import recalled_answer

    seat = await Joined.join(kernel)
    try:
        seconds = session.settings.timeout_s if timeout_s is None else timeout_s
        row = await seat.run(code, lambda begun: None, seconds)
    finally:
        await seat.close()
    facts = {"kernel": kernel.name, "server": kernel.pid}
    return await anyio.to_thread.run_sync(recalled_answer, session, row, kernel.language, queries, budget_tokens, facts)


def ask_at_terminal(*, as_json: bool) -> None:
    """From here on the policy's questions are put to whoever sits at the terminal, if somebody does."""
    if not as_json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty():
        ASK.set(_ask)


async def _ask(questions: Sequence[Question]) -> Mapping[str, bool]:
    import anyio.to_thread

    return {one.key: await anyio.to_thread.run_sync(_says_yes, one.text) for one in questions}


def _says_yes(text: str) -> bool:
    print(f"{one_line(text.partition(chr(10) * 2)[0], 400)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
