"""How a function becomes a command: every setting is a flag of it, `--json` too, and its answer is printed one way."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import Any

import typer

from sandboxmcp.cli.notices import tell_misspelt
from sandboxmcp.core.settings import KEYS, Key, Settings, load_settings
from sandboxmcp.render.answer import Answer, masked
from sandboxmcp.session import Session
from sandboxmcp.tools.usage_stats import count_call

Body = Callable[..., int]
_PANEL = "Settings"
_EPILOG = "Settings: sandboxmcp help settings, or docs/settings.md"
_ROOM = 1_000_000
"""Tokens that a masked answer may have: it was laid out within its budget."""
_NEARLY_EVERYWHERE = ("workspace", "data_dir")


def command(group: typer.Typer, name: str, acts: Sequence[str] = _NEARLY_EVERYWHERE) -> Callable[[Body], Body]:
    """Register a function `(settings, as_json, …) -> exit code`: the first two come from flags, the rest is as typer reads it.

    Every setting is a flag of every command; its help shows those that `acts` names.
    """

    def register(body: Body) -> Body:
        @wraps(body)
        def run(**given: Any) -> int:
            flags = {key.name: given.pop(_parameter(key)) for key in KEYS}
            settings = load_settings(flags)
            tell_misspelt()
            return body(settings, given.pop("as_json"), **given)

        own = [one for one in inspect.signature(body, eval_str=True).parameters.values() if one.name not in ("settings", "as_json")]
        flags_shown = [_flag(key, hidden=key.name not in acts) for key in KEYS]
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, _json_flag(), *flags_shown)]
        run.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        group.command(name, epilog=_EPILOG)(run)
        return body

    return register


def _parameter(key: Key) -> str:
    return "setting_" + key.name.replace(".", "_")


def flag_of(key: Key) -> str:
    """The setting's flag."""
    return "--" + key.name.replace("_", "-").replace(".", "-")


def _flag(key: Key, hidden: bool) -> inspect.Parameter:
    option = typer.Option(
        None, flag_of(key), help=key.doc, metavar="VALUE", rich_help_panel=_PANEL, show_default=False, hidden=hidden
    )
    return inspect.Parameter(_parameter(key), inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str | None)


def _json_flag() -> inspect.Parameter:
    option = typer.Option(False, "--json", help="One JSON document on standard output, also for errors.", show_default=False)
    return inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=option, annotation=bool)


def show(reply: Answer, as_json: bool, *, ok: bool | None = None) -> None:
    """Print an answer: its text, or one JSON document with its facts and its text. A refusal goes to stderr, on one line;
    several on a line each.

    `ok` in the document says whether what was asked for came about; default: the answer is no error.
    """
    text = reply.text
    if as_json:
        print(json.dumps({"ok": not reply.is_error if ok is None else ok, **reply.structured, "text": text}, ensure_ascii=False))
    elif reply.is_error:
        lines = text.split("\n")
        print("sandboxmcp: " + (": " if len(lines) == 2 else "\n").join(lines), file=sys.stderr)
    else:
        print(text)


def use(settings: Settings, tool: str, function: Callable[..., Any], *, masks: bool = False, **arguments: Any) -> Answer:
    """Run one tool, blocking or not, on parts of its own, which are closed again. The call is counted under the tool's name.

    `masks`: its answer may hold credentials that were given, such as those of a URL.
    """
    import anyio

    session = Session(settings)
    if inspect.iscoroutinefunction(function):
        reply: Answer = anyio.run(partial(_used, session, tool, function, arguments))
        return masked(reply, session.masked, _ROOM) if masks else reply
    try:
        reply = function(session, **arguments)
        count_call(session, tool, captured=reply.captured_bytes, returned=len(reply.text.encode()))
        return reply
    finally:
        anyio.run(session.close)


async def _used(session: Session, tool: str, function: Callable[..., Awaitable[Answer]], arguments: dict[str, Any]) -> Answer:
    """The same in an event loop, which kernels need from their start to their end."""
    import anyio

    try:
        reply = await function(session, **arguments)
        count_call(session, tool, captured=reply.captured_bytes, returned=len(reply.text.encode()))
        return reply
    finally:
        with anyio.CancelScope(shield=True):
            await session.close()
