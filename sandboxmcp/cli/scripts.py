"""A script named on the command line: its text and its language."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sandboxmcp.core.errors import UsageError

_SUFFIXES = {
    ".py": "python", ".sh": "shell", ".bash": "shell", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript",
    ".rb": "ruby", ".go": "go", ".rs": "rust", ".php": "php", ".pl": "perl", ".r": "r",
    ".ex": "elixir", ".exs": "elixir", ".cs": "csharp", ".ps1": "powershell",
}  # fmt: skip


_PROGRAMS = {
    "python": "python", "sh": "shell", "bash": "shell", "dash": "shell", "ksh": "shell", "zsh": "shell", "node": "javascript",
    "tsx": "typescript", "deno": "typescript", "ruby": "ruby", "php": "php", "perl": "perl", "Rscript": "r", "elixir": "elixir",
    "pwsh": "powershell",
}  # fmt: skip
_FIRST_LINE = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+|\w+=\S*\s+)*)?(?:\S*/)?([A-Za-z]+)[\d.]*(?:\s|$)")


def script_text(file: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        UsageError: it cannot be read or is not UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text") from None


def language_of(file: str, text: str, otherwise: str) -> str:
    """The language that the ending of a file's name means, or else the program in its first line (`#!`)."""
    return _SUFFIXES.get(Path(file).suffix.lower()) or _PROGRAMS.get(_program(text), otherwise)


def language_to_run(file: str, text: str) -> str:
    """The same for a script that is to run: python where neither an ending nor a first line is there to tell.

    Raises:
        UsageError: what is there names no language that we know.
    """
    told = language_of(file, text, "")
    suffix = Path(file).suffix
    if told or not (suffix or text.startswith("#!")):
        return told or "python"
    where = f"the first line names {_program(text)!r}" if _program(text) else f"{Path(file).name[:60]!r} ends in {suffix!r}"
    endings = ", ".join(sorted(ending for ending, spoken in _SUFFIXES.items() if spoken != "powershell"))
    raise UsageError(f"no language is known for this script: {where}", f"Name it with --language; known endings: {endings}.")


def _program(text: str) -> str:
    """The interpreter in a script's first line, without its folder and its version; "" when it names none."""
    match = _FIRST_LINE.match(text)
    return match[1] if match else ""
