"""A real client connected in memory to the real server, in both protocol eras."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import Implementation

from sandboxmcp.core.settings import load_settings
from sandboxmcp.server.app import make_server
from sandboxmcp.session import Session

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["legacy", "auto"])
def era(request: pytest.FixtureRequest) -> str:
    """The handshake of 2025-11-25 and before, or the stateless protocol of 2026-07-28."""
    return str(request.param)


@pytest.fixture
def connect(tmp_path: Path, era: str) -> Connect:
    """Opens a client on session of its own; keyword arguments are settings. The session close with it.

    `client`: the name that the client gives itself.
    """

    @asynccontextmanager
    async def connected(client: str = "test", **flags: Any) -> AsyncIterator[Client]:
        project = tmp_path / "project"
        project.mkdir(exist_ok=True)
        flags = {"data_dir": str(tmp_path / "data"), "workspace": str(project)} | flags
        session = Session(load_settings(flags, environ={"HOME": str(tmp_path)}, project=project))
        try:
            about = Implementation(name=client, version="1")
            async with Client(make_server(session), mode=era, client_info=about) as connection:
                yield connection
        finally:
            await session.close()

    return connected
