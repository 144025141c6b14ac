"""Putting the policy's questions to the user through the client, in both protocol eras.

Up to 2025-11-25 the server sends a request of its own and waits; from 2026-07-28 on the call ends with the questions, and the
client makes it again with the answers. An answer counts for the exact code that was shown: its key is a digest of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from sandboxmcp.tools.asking import AnswersNeeded, Ask, Question, nobody

_ROUNDS_SINCE = "2026-07-28"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow", "description": "Run it this once."}},
    "required": ["allow"],
}


def asker(context: ServerRequestContext[Any], params: types.CallToolRequestParams) -> Ask:
    """Who can be asked during this call."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return nobody

    async def by_rounds(questions: Sequence[Question]) -> Mapping[str, bool]:
        given = params.input_responses or {}
        if any(question.key not in given for question in questions):
            raise AnswersNeeded(questions)
        return {question.key: _allows(given[question.key]) for question in questions}

    async def at_once(questions: Sequence[Question]) -> Mapping[str, bool]:
        return {
            question.key: _allows(await context.session.elicit_form(question.text, _SCHEMA, context.request_id))
            for question in questions
        }

    return by_rounds if context.protocol_version >= _ROUNDS_SINCE else at_once


def questions_result(needed: AnswersNeeded) -> types.InputRequiredResult:
    """The end of a call that must be made again with answers."""
    return types.InputRequiredResult(
        input_requests={
            question.key: types.ElicitRequest(params=types.ElicitRequestFormParams(message=question.text, requested_schema=_SCHEMA))
            for question in needed.questions
        }
    )


def _allows(response: object) -> bool:
    return (
        isinstance(response, types.ElicitResult)
        and response.action == "accept"
        and response.content is not None
        and response.content.get("allow") is True
    )
