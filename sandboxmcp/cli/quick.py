"""`policy explain` answered without the packs, where what is known of them from last time proves that the code is allowed.

What was known counts only while every file that it came from, the environment and the folder are as they were.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandboxmcp.core.settings import Settings
    from sandboxmcp.policy.judge import Engine

_FLAGS = {"--setting", "--language", "--lang"}


def explain_quickly(arguments: Sequence[str]) -> int | None:
    """Print the verdict and return the exit code, or None: ask the packs."""
    asked = _asked(arguments)
    if asked is None:
        return None
    code, language = asked
    known = _known()
    if known is None:
        return None
    from sandboxmcp.policy.prefilter import surely_allowed, surely_without_network

    if not surely_allowed(code, language, known["words"]) or not surely_without_network(code, known["words"]):
        return None
    print("allow.")
    return 0


def remember(engine: Engine, settings: Settings) -> None:
    """Keep what the prefilter needs of an engine that was made for these settings; not being able to is no failure."""
    from pathlib import Path

    from sandboxmcp.policy.prefilter import words_of
    from sandboxmcp.policy.sources import files_of

    place = _place()
    if place is None:
        return
    stamps = [[file, *_stamp(file)] for file in files_of(engine, settings, Path.cwd())]
    document = {"environment": _environment(), "stamps": stamps, "words": words_of(engine)}
    partial = f"{place}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(document, file)
        os.replace(partial, place)
    except OSError:
        return


def _asked(arguments: Sequence[str]) -> tuple[str, str] | None:
    """The code and its language of `policy explain [--setting S] [--language L] [--] CODE`; None for anything else."""
    if list(arguments[:2]) != ["policy", "explain"] or len(arguments) < 3:
        return None
    *flags, code = arguments[2:]
    if flags and flags[-1] == "--":
        flags.pop()
    elif code.startswith("-"):
        return None
    values = dict(zip(flags[::2], flags[1::2], strict=False))
    if len(flags) % 2 or not set(values) <= _FLAGS or values.get("--setting", "kernel") not in ("kernel", "host"):
        return None
    return code, values.get("--language", values.get("--lang", "shell"))


def _known() -> Any:
    """What was remembered, if it is the user's own file and everything it came from is as it was."""
    place = _place()
    if place is None:
        return None
    try:
        with open(place, "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & 0o022:
                return None
            known = json.load(file)
        fresh = (
            "network" in known["words"]
            and known["environment"] == _environment()
            and all(_stamp(file) == [*rest] for file, *rest in known["stamps"])
        )
        return known if fresh else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place() -> str | None:
    """Where it is remembered for this working folder."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.join(os.environ.get("HOME", ""), ".cache")
    try:
        name = os.getcwd().replace("%", "%%").replace("/", "%")
    except OSError:
        return None
    return os.path.join(base, "sandboxmcp", f"{name}.json") if os.path.isabs(base) and len(name) < 200 else None


def _environment() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("SANDBOXMCP_") or name in ("HOME", "XDG_CONFIG_HOME")
    }
    return {**kept, "": sys.version}


def _stamp(file: str) -> list[int]:
    """When a file was changed, and its size; empty when it is not there."""
    try:
        about = os.stat(file)
    except OSError:
        return []
    return [about.st_mtime_ns, about.st_size, about.st_ino]
