"""`sandboxmcp doctor | version`: is everything there, and which version is it."""

from __future__ import annotations

import json
from importlib.metadata import version as installed_version
from typing import Any

import typer

from sandboxmcp.cli.commands import command, show, use
from sandboxmcp.core.settings import Settings

_EXIT_CODES = {"sqlite": 5, "store": 5, "policy": 6}
_NO_SANDBOX = 4


def add_to(group: typer.Typer) -> None:
    """Register `version`; the others are tools."""

    @command(group, "version", acts=())
    def version(settings: Settings, as_json: bool) -> int:
        """Print the version."""
        number = installed_version("sandboxmcp")
        print(json.dumps({"ok": True, "version": number}) if as_json else number)
        return 0


def doctor(settings: Settings, as_json: bool, given: dict[str, Any]) -> int:
    """Check, or repair the store; returns an exit code that tells what is wrong."""
    if given["repair"]:
        from sandboxmcp.tools.admin import repair

        mended = use(settings, "ctx_doctor", repair)
        show(mended, as_json)
        return _EXIT_CODES["store"] if mended.is_error else 0
    from sandboxmcp.tools.admin import doctor as examine

    reply = use(settings, "ctx_doctor", examine)
    if as_json:
        show(reply, as_json)
    else:
        print(reply.text)
    failed = [check["name"] for check in reply.structured["checks"] if not check["ok"] and not check["optional"]]
    return _EXIT_CODES.get(failed[0], _NO_SANDBOX) if failed else 0
