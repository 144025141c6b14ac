"""The answer to a line that is no message: an error with the id of the request, wherever one can be found in it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]')
_ID = re.compile(r'\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.)*+")\s*(?:[,}]|$)')
_COLON = re.compile(r"\s*:")
_LONGEST_NAME = 10
"""With its quotes: what is longer is none of the names that are looked for."""


def refusal(line: str, error: Exception) -> JSONRPCError | None:
    """The answer; none to a blank line, and to a broken answer of the client's.

    `error` is what the parser said.
    """
    members = dict(_members(line))
    if not line.strip() or "result" in members or "error" in members:
        return None
    return JSONRPCError(jsonrpc="2.0", id=_id(members.get("id", "")), error=_said(error))


def _members(line: str) -> Iterator[tuple[str, str]]:
    """Names of the members of the outermost object, and what follows each; however deep and broken the rest is."""
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif (
            depth == 1
            and len(token[0]) <= _LONGEST_NAME
            and (value := _ID.match(line, token.end()) or _COLON.match(line, token.end()))
        ):
            yield token[0][1:-1], value[1] if value.re is _ID else ""


def _id(value: str) -> int | str | None:
    try:
        found = json.loads(value)
    except ValueError:
        return None
    return found if isinstance(found, int | str) else None


def _said(error: Exception) -> ErrorData:
    if not isinstance(error, ValidationError):
        return ErrorData(code=PARSE_ERROR, message=f"Parse error: {error}")
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return ErrorData(code=PARSE_ERROR, message=f"Parse error: {first['msg']}")
    return ErrorData(code=INVALID_REQUEST, message="Invalid Request: neither a request nor a notification of JSON-RPC 2.0")
