"""The shell's own commands, each a line that begins with a colon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import anyio.to_thread

from sandboxmcp.core.errors import SandboxmcpError, UsageError
from sandboxmcp.kernels.registry import Shared
from sandboxmcp.render.answer import Answer
from sandboxmcp.render.fence import one_line
from sandboxmcp.shell.kernel_targets import Joined, Own
from sandboxmcp.shell.shell_session import Leave, ShellSession

Handler = Callable[[ShellSession, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Command:
    """What one does: how it is written, what it is for."""

    usage: str
    does: str
    handler: Handler


async def carry_out(shell: ShellSession, line: str) -> None:
    """Run the command of a line without its colon.

    Raises:
        UsageError: there is no such command, or its argument is wrong. Leave: it was `:quit`.
    """
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"Did you mean :{near[0]}? " if near else ""
        raise UsageError(f"there is no command :{name[:40]}", f"{hint}:help lists them.")
    await command.handler(shell, argument.strip())


async def _help(shell: ShellSession, argument: str) -> None:
    rows = [("input", "what it does"), *((f":{command.usage}", command.does) for command in COMMANDS.values()), *_BESIDE]
    shell.face.table(rows)


_BESIDE = (
    ("NAME? NAME??", "what the kernel knows of a name; with its source"),
    ("!LINE", "run a line of shell in the sandbox, fresh"),
    ("Tab", "complete; Alt-Enter: a new line; Ctrl-R: search the history"),
    ("Ctrl-C", "interrupt what runs; twice: end it. Ctrl-D: leave"),
)


async def _more(shell: ShellSession, argument: str) -> None:
    if shell.more is None:
        raise UsageError("there is no more to show", "Give a handle: :read HANDLE.")
    handle, line = shell.more
    await _page(shell, handle, from_line=line)


async def _read(shell: ShellSession, argument: str) -> None:
    if not argument:
        raise UsageError(":read wants a handle or a citation", "See :sources.")
    await _page(shell, argument)


async def _page(shell: ShellSession, handle: str, from_line: int | None = None) -> None:
    """A page of a stored text; `:more` goes on behind it."""
    from sandboxmcp.tools.reading import read

    to_line = (from_line or 1) + shell.face.rows() - 1
    wanted: dict[str, Any] = {} if ":" in handle else {"from_line": from_line, "to_line": to_line}
    reply = await _use(shell, partial(read, handle=handle, **wanted), pages=True)
    facts = reply.structured
    last = int(facts["to_line"])
    ended = last >= int(facts["lines"])
    shell.more = None if ended else (str(facts["handle"]), last + 1)
    lines = reply.text.split("\n")
    shell.face.say("\n".join(lines[:-1] if facts["cursor"] else lines))  # the last line is how a tool goes on
    if not ended:
        shell.face.note(f"{int(facts['lines']) - last:,} more lines: :more")


async def _search(shell: ShellSession, argument: str) -> None:
    from sandboxmcp.tools.knowledge import search

    shell.face.say((await _use(shell, partial(search, queries=[argument]))).text)


async def _sources(shell: ShellSession, argument: str) -> None:
    from sandboxmcp.tools.knowledge import sources

    shell.face.say((await _use(shell, partial(sources, source=argument or None))).text)


async def _use(shell: ShellSession, tool: Callable[..., Answer], *, pages: bool = False) -> Answer:
    """A blocking tool on a thread; a person's page is bounded by the screen, an answer by the budget."""
    budget = 1_000_000 if pages else shell.session.settings.budget_tokens
    return await anyio.to_thread.run_sync(partial(tool, shell.session, budget_tokens=budget))


async def _policy(shell: ShellSession, argument: str) -> None:
    if not argument:
        raise UsageError(":policy wants code", "Such as: :policy import requests")
    language, code = ("shell", argument[1:].strip()) if argument.startswith("!") else (shell.language, argument)
    verdict = await anyio.to_thread.run_sync(lambda: shell.session.engine.judge(code, language))
    rule = f" by {verdict.pack}/{verdict.rule}" if verdict.rule else ""
    why = " ".join(filter(None, (verdict.because, verdict.instead)))
    shell.face.say(one_line(f"{verdict.action}{rule}{': ' if why else ''}{why}", 1_000))


async def _kernels(shell: ShellSession, argument: str) -> None:
    here = str(shell.session.settings.workspace)
    rows: list[tuple[str, ...]] = [("kernel", "language", "where", "state", "calls", "memory", "variables")]
    rows += [_row(state, state["name"], "here") for state in await shell.desk.states()]
    others = await shell.others()
    for states, one in zip(await asyncio.gather(*map(_states_of, others)), others, strict=True):
        where = "this project" if one.workspace == here else one.workspace
        mine = next((state for state in states if state["name"] == one.name), {})
        rows.append(_row({"language": one.language, **mine}, f"{one.name}@{one.pid}", where))
    shell.face.table(rows)


async def _states_of(kernel: Shared) -> list[dict[str, Any]]:
    """What the owner of a kernel says of all it has; nothing when it does not answer."""
    try:
        joined = await Joined.join(kernel)
        try:
            return await joined.states()
        finally:
            await joined.close()
    except SandboxmcpError:
        return []


def _row(state: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    if "busy" not in state:
        return name, str(state["language"]), where, "no answer", "", "", ""
    variables = "" if state["variables"] is None else str(state["variables"])
    memory = f"{state['memory'] / (1 << 20):.0f} MiB"
    return name, str(state["language"]), where, "busy" if state["busy"] else "idle", str(state["calls"]), memory, variables


async def _connect(shell: ShellSession, argument: str) -> None:
    name, _, pid = argument.partition("@")
    if not name:
        raise UsageError(":connect wants the name of a kernel", "See :kernels.")
    if not pid and any(state["name"] == name for state in await shell.desk.states()):
        shell.own_kernel = name
        await shell.speak("python")
        return
    here = str(shell.session.settings.workspace)
    found = [one for one in await shell.others() if one.name == name and pid in ("", str(one.pid))]
    near = [one for one in found if one.workspace == here] or found
    if not near:
        raise UsageError(f"no kernel {name[:40]!r} runs anywhere", "See :kernels.")
    if len(near) > 1:
        names = ", ".join(f"{one.name}@{one.pid}" for one in near)
        raise UsageError(f"{len(near)} processes have a kernel {name!r}", f"Use one of: {names}.")
    await shell.join(near[0])
    shell.face.note(f"joined {shell.seat.title if shell.seat else name}: what you run there, its owner runs, judges and stores")


async def _restart(shell: ShellSession, argument: str) -> None:
    if shell.seat is None:
        raise UsageError(f"{shell.language} keeps no state, so there is no kernel to restart")
    await shell.seat.restart()
    shell.face.note(f"{shell.seat.title} runs again, empty")


async def _leave(shell: ShellSession, argument: str) -> None:
    """Back from a joined kernel."""
    if isinstance(shell.seat, Own):
        raise UsageError("this is your own kernel already", "Ctrl-D leaves the shell.")
    await shell.speak("python")


async def _lang(shell: ShellSession, argument: str) -> None:
    if argument:
        await shell.speak(argument)
        return
    runner = await anyio.to_thread.run_sync(lambda: shell.session.runner)
    shell.face.say(f"{shell.language}; known: {', '.join(runner.languages())}")


async def _quit(shell: ShellSession, argument: str) -> None:
    raise Leave


COMMANDS: dict[str, Command] = {
    "more": Command("more", "the next page of the output or text shown last", _more),
    "read": Command("read HANDLE", "a stored text, page by page; a citation shows its lines", _read),
    "search": Command("search QUERY", "search everything that is stored in this project", _search),
    "sources": Command("sources [TEXT]", "what is stored, newest first; with TEXT in its label", _sources),
    "policy": Command("policy CODE", "the policy's verdict on code (!LINE: on shell), without running it", _policy),
    "kernels": Command("kernels", "kernels that run, here and in other processes", _kernels),
    "connect": Command("connect NAME", "join a kernel, such as one that an agent is using", _connect),
    "leave": Command("leave", "back from a joined kernel to your own", _leave),
    "restart": Command("restart", "start your kernel anew, empty", _restart),
    "lang": Command("lang [LANGUAGE]", "go on in another language", _lang),
    "help": Command("help", "this list", _help),
    "quit": Command("quit", "leave", _quit),
}
