"""What `cmd /c` runs, said in the shell's words: the same commands joined the same ways, with other quotes and other variables.

Source: cmd /? and `help set`; a caret takes the meaning of the next letter, `%NAME%` and `!NAME!` are filled in.
"""

from __future__ import annotations

import re

from sandboxmcp.policy.facts import UNKNOWN_NAME

_PIECE = re.compile(r'"[^"]*"?|\^(.)|%[^%\s]+%|![^!\s]+!|%%?~?\w|.', re.DOTALL)


def as_shell(code: str) -> str:
    """Shell code that starts what the batch code starts. Labels and blocks stay what they are: unknown commands."""
    text = code.strip()
    if len(text) > 1 and text[0] == text[-1] == '"' and text.count('"') % 2 == 0:
        text = text[1:-1]  # `cmd /s /c "…"` takes the outer ones away
    return _PIECE.sub(_said, text)


def _said(match: re.Match[str]) -> str:
    piece = match[0]
    if match[1]:
        return _plain(match[1])
    if piece[0] == '"':
        inner = piece.strip('"').replace("\\", "/").replace("'", "'\\''")
        return f"'{inner}'"
    if piece[0] in "%!" and len(piece) > 1:
        return f"${{{UNKNOWN_NAME}}}"
    return _plain(piece)


def _plain(letter: str) -> str:
    """Letters that mean something to a shell and nothing to cmd; `@` before a command only keeps it from being shown."""
    return {"\\": "/", "'": "\\'", "`": "\\`", "$": "\\$", "#": "\\#", ";": " ", "@": "", "*": "\\*", "!": "\\!"}.get(
        letter, letter
    )
