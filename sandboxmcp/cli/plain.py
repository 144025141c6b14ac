"""`serve` with nothing but flags that are understood here, started without typer: a client waits for its first answer.

Whatever else is asked (help, a misspelt flag, another command, a bad value) goes the ordinary way, which tells it properly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sandboxmcp.cli.notices import tell_misspelt
from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import KEYS, load_settings

_FLAGS = {"--" + key.name.replace("_", "-").replace(".", "-"): key.name for key in KEYS}


def serve_plainly(arguments: Sequence[str]) -> int | None:
    """Serve and return the exit code, or None: not a plain `serve`."""
    if not arguments or arguments[0] != "serve":
        return None
    pairs = list(_pairs(arguments[1:]))
    if any(value is None or (flag == "--surface" and value != "direct") for flag, value in pairs):
        return None
    flags = {_FLAGS[flag]: value for flag, value in pairs if flag in _FLAGS}
    if len(flags) + sum(flag == "--surface" for flag, _ in pairs) != len(pairs):
        return None
    try:
        settings = load_settings(flags)
    except UsageError:
        return None
    tell_misspelt()
    from sandboxmcp.server.stdio import serve_stdio

    return serve_stdio(settings)


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Flags with their values, from `--flag value` and `--flag=value`; a flag without one has None."""
    remaining = iter(arguments)
    for argument in remaining:
        flag, joined, value = argument.partition("=")
        yield flag, value if joined else next(remaining, None)
