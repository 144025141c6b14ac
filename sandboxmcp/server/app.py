"""One factory for the MCP server: unconnected, low-level, schemas verbatim. Whoever calls it connects it to a transport."""

from __future__ import annotations

import base64
import json
import logging
import re
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import Any

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.render.answer import Answer, failure, masked
from sandboxmcp.render.budget import MINIMUM
from sandboxmcp.render.fence import one_line
from sandboxmcp.render.structured_budget import condensed
from sandboxmcp.server.asking import asker, questions_result
from sandboxmcp.server.instructions import INSTRUCTIONS, NAME
from sandboxmcp.session import Session
from sandboxmcp.tools.arguments import checked_arguments
from sandboxmcp.tools.asking import ASK, AnswersNeeded
from sandboxmcp.tools.calls import call
from sandboxmcp.tools.registry import TOOLS
from sandboxmcp.tools.usage_stats import count_call

_log = logging.getLogger("sandboxmcp")
Context = ServerRequestContext[Any]


def make_server(session: Session) -> Server[Any]:
    """A server whose tools use `session`; both protocol eras. The caller closes the session."""

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_listed())

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult | types.InputRequiredResult:
        ASK.set(asker(context, params))
        try:
            return _result(await _answered(session, context, params.name, dict(params.arguments or {})))
        except AnswersNeeded as needed:
            return questions_result(needed)

    return Server(
        NAME,
        version=version(NAME),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


@cache
def _listed() -> list[types.Tool]:
    return [types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema) for tool in TOOLS.values()]


async def _answered(session: Session, context: Context, tool: str, arguments: dict[str, Any]) -> Answer:
    """The tool's answer, or its failure as one. Cancellation passes through; a bug of ours is logged and told without details."""

    async def progress(done: int, total: int, label: str) -> None:
        await context.session.report_progress(done, total, one_line(session.masked(label), 200))

    budget = arguments.get("budget_tokens")
    room = max(budget if isinstance(budget, int) else session.settings.budget_tokens, MINIMUM)
    try:
        checked = checked_arguments(tool, arguments)
        reply = await call(TOOLS[tool], session, checked, progress)
    except SandboxmcpError as error:
        return await _fitted(session, context, failure(error, room), room)
    except AnswersNeeded:
        raise
    except Exception:
        _log.exception("%s failed", tool if tool in TOOLS else "an unknown tool")
        bug = SandboxmcpError(f"{tool} failed inside sandboxmcp", "The log on its stderr has the details.")
        return await _fitted(session, context, failure(bug, room), room)
    reply = await _fitted(session, context, reply, room)
    if session.has_store:
        _count(session, tool, reply)  # in memory: no thread needs to wait for it
    else:
        await anyio.to_thread.run_sync(_count, session, tool, reply)
    return reply


async def _fitted(session: Session, context: Context, reply: Answer, room: int) -> Answer:
    """The answer without credentials, with its facts within the same budget; without facts when the client would show them in place
    of the text.
    """
    if not session.can_mask:
        await anyio.to_thread.run_sync(session.masked, reply.text)
    reply = masked(reply, session.masked, room)
    wanted = session.settings.structured_content
    client = context.session.client_params
    hidden = wanted == "auto" and hides_text(client.client_info.name if client is not None else None)
    return replace(reply, structured={} if hidden or wanted == "never" else condensed(reply.structured, room))


def _count(session: Session, tool: str, reply: Answer) -> None:
    returned = len(reply.text.encode()) + (len(json.dumps(reply.structured, ensure_ascii=False)) if reply.structured else 0)
    count_call(session, tool, captured=reply.captured_bytes, returned=returned)


def _result(reply: Answer) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=reply.text)]
    content += [
        types.ImageContent(type="image", data=base64.b64encode(picture.data).decode(), mime_type=picture.mime)
        for picture in reply.pictures
    ]
    return types.CallToolResult(content=content, structured_content=dict(reply.structured) or None, is_error=reply.is_error)


HIDING_TEXT = (
    # Looked up in November 2026. A result that has structuredContent reaches the model without its text:
    "claude-code",  # anthropics/claude-code#79944, shown there with 2.1.280 on 2026-09-22; errors are the other way round, #86032
    "visual-studio-code",  # microsoft/vscode#290063; also its Insiders
    "vscode",
    "codex",  # calls itself codex-mcp-client; anomalyco/opencode#32074 says that it does the same
    "opencode",  # since that pull request, 2026-06-12
    # Not claude-ai (anthropics/claude-code#55677: both arrive) and not Cursor, cursor-vscode (#79944: the text arrives).
)
"""Beginnings of the names that clients give themselves, in small letters with hyphens between the words."""

_BETWEEN_WORDS = re.compile(r"[\s_-]+")


def hides_text(client: str | None) -> bool:
    """Whether a client of that name (`clientInfo.name`; None: it gave none) hides the text beside structured content."""
    name = _BETWEEN_WORDS.sub("-", (client or "").strip().casefold())
    return any(name == known or name.startswith(known + "-") for known in HIDING_TEXT)
