"""Writes what is generated from the code: docs/settings.md from the settings, the README's table from the tools.

`--check` only compares.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandboxmcp.core.settings import KEYS, Key
from sandboxmcp.tools.registry import TOOLS

ROOT = Path(__file__).resolve().parent.parent
_INTRO = """\
# Settings

Generated from `sandboxmcp/core/settings.py` by `make docs`; edits here are lost.

Later wins: the default, your own `~/.config/sandboxmcp/sandboxmcp.toml`, the project's `sandboxmcp.toml` or
`.sandboxmcp/sandboxmcp.toml`, the environment variable, the flag. A blank variable counts as unset. A dotted key is a key of a
TOML table: `limits.memory` is `memory` under `[limits]`. An unknown key or a bad value ends the program with exit code 2;
a variable that is called `SANDBOXMCP_…` and is none of these is told on standard error and by `sandboxmcp doctor`.

The last column says what a project's file may do with the key: a cloned repository must not loosen what protects you.

| key | variable | default | what it is | a project may |
|---|---|---|---|---|
"""
_MIB = 1 << 20


def settings_page() -> str:
    """The Markdown of docs/settings.md."""
    return _INTRO + "".join(f"{_row(key)}\n" for key in KEYS)


def _row(key: Key) -> str:
    cells = (f"`{key.name}`", f"`{key.variable}`", _shown(key.default), key.doc, _project_may(key))
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _shown(default: Any) -> str:
    if default is None or default == ():
        return "unset"
    if isinstance(default, tuple):
        return "`" + ", ".join(default) + "`"
    if isinstance(default, int) and default >= _MIB and default % _MIB == 0:
        return f"`{default // _MIB} MiB`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def _project_may(key: Key) -> str:
    if key.tighten is None:
        return "set it"
    if isinstance(key.default, tuple):
        return "narrow it" if key.tighten(("a", "b"), ("a",)) else "not set it"
    if isinstance(key.default, str):
        return "choose a stricter one" if key.tighten(key.default, "ro") else "not set it"
    return "lower it" if key.tighten(2, 1) else "not set it"


_BEGIN, _END = "<!-- tools: written by `make docs` -->\n", "<!-- end of tools -->"


def readme() -> str:
    """The README with the table of tools as it should be.

    Raises:
        ValueError: it has no place for the table.
    """
    page = (ROOT / "README.md").read_text()
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"README.md wants a line {_BEGIN.strip()} and after it a line {_END}")
    return before + begin + tools_table() + end + after


def tools_table() -> str:
    """The rows of the README's table, in the order in which clients are told of the tools."""
    rows = "".join(f"| `{tool.name}` | {_cell(tool.summary)} |\n" for tool in TOOLS.values())
    return "| tool | what it does |\n|---|---|\n" + rows


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {"docs/settings.md": settings_page, "README.md": readme}


def main(arguments: list[str]) -> int:
    stale = False
    for name, page in PAGES.items():
        file, wanted = ROOT / name, page()
        found = file.read_text() if file.is_file() else ""
        if found == wanted:
            continue
        if "--check" in arguments:
            stale = True
            sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), name, "generated"))
        else:
            file.write_text(wanted)
            print(f"{name} written")
    if stale:
        print("Run: make docs")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
