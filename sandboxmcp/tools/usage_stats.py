"""Counting a call for ctx_stats, whoever made it."""

from __future__ import annotations

import logging

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.session import Session

_log = logging.getLogger("sandboxmcp")


def count_call(session: Session, tool: str, *, captured: int, returned: int) -> None:
    """Bytes that the call captured and returned. An answer is not lost because it could not be counted. Blocking."""
    try:
        session.store.add_usage(tool, captured=captured, returned=returned)
    except SandboxmcpError as error:
        _log.warning("%s was not counted: %s", tool, error.what)  # whoever needed the store has told the fix
