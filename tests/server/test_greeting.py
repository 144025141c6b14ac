"""The early answer to `initialize` is the SDK's answer, and it is given to nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from sandboxmcp.core.settings import load_settings
from sandboxmcp.server.app import make_server
from sandboxmcp.server.instructions import REVISIONS, greeting
from sandboxmcp.session import Session


def request(**changes: Any) -> dict[str, Any]:
    params = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "a", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params | changes.pop("params", {})} | changes


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


async def answered_by_the_sdk(message: dict[str, Any]) -> Any:
    server = make_server(Session(load_settings(environ={"HOME": "/nowhere"}, project=Path("/nowhere"))))
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](1)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](1)
    async with anyio.create_task_group() as group:
        group.start_soon(server.run, incoming, outgoing, server.create_initialization_options())
        await to_server.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message, by_name=False)))
        answer = await from_server.receive()
        group.cancel_scope.cancel()
    for stream in (to_server, incoming, outgoing, from_server):
        stream.close()
    return answer.message.model_dump(by_alias=True, mode="json", exclude_none=True)


def test_it_knows_the_revisions_of_the_sdk() -> None:
    assert REVISIONS == HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize("revision", [*REVISIONS, "1999-01-01", "2026-07-28"])
@pytest.mark.parametrize("number", [1, "one"])
def test_it_is_what_the_sdk_answers(revision: str, number: int | str) -> None:
    message = request(id=number, params={"protocolVersion": revision})
    assert greeting(encoded(message)) == anyio.run(answered_by_the_sdk, message)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{nonsense\n",
        b"[]\n",
        encoded(request(method="tools/list")),
        encoded(request(id=True)),
        encoded(request(id=None)),
        encoded(request(params={"protocolVersion": 7})),
        encoded(request(params={"clientInfo": {"name": "a"}})),
        encoded(request(params={"capabilities": []})),
        encoded(request(params={"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})),
        encoded({"jsonrpc": "2.0", "method": "initialize"}),
    ],
)
def test_everything_else_is_left_to_the_sdk(line: bytes) -> None:
    assert greeting(line) is None
