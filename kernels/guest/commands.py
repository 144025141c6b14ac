"""From a script's text and the table of its language to a command line: for one-shot scripts and for the wrapper kernel.

The table (its words come from kernels/<language>/script.toml, see sandboxmcp/kernels/languages.py):

    argv         `{code}`: the text; `{file}`, `{folder}`: the text's own file in a fresh private folder, and that folder
    name         the file's name
    stdin        the text is standard input too, so that relative imports start at the working folder
    wrap         [[before, after, unless]]: text put round the code, in this order, unless the pattern is found in it
    files        {name: text} beside the script's file
    environment  {variable: value}, with `{folder}` in the value
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Table = dict[str, Any]
    """The table of a language, as above."""

INLINE = 96 << 10
"""The operating system takes at most 128 KiB in one argument; a larger text is passed as a file."""


def wrapped(table: Table, code: bytes) -> bytes:
    """The code (bytes) with what its language wants round it."""
    for before, after, unless in table.get("wrap", ()):
        if not (unless and re.search(os.fsencode(unless), code)):
            code = os.fsencode(before) + code + os.fsencode(after)
    return code


def prepare(table: Table, code: bytes, folder: str) -> tuple[list[str | bytes], int | None]:
    """Write the files, set the environment. Returns (argv, descriptor of the text for stdin or None).

    Raises OSError: the folder cannot be made or written (its file system may be full).
    """
    code = wrapped(table, code)
    file = os.path.join(folder, table.get("name") or "")
    files = {name: os.fsencode(text) for name, text in table.get("files", {}).items()}
    if table.get("name"):
        files[table["name"]] = code
    if files:
        os.mkdir(folder, 0o700)
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as target:
            target.write(content)
    for name, value in table.get("environment", {}).items():
        os.environ[name] = value.replace("{folder}", folder)
    argv: list[str | bytes] = list(table["argv"])
    if "{code}" in argv:
        argv = inline(argv, code)
    argv = [word.replace("{file}", file).replace("{folder}", folder) if isinstance(word, str) else word for word in argv]
    return argv, memory_file(code) if table.get("stdin") else None


def inline(argv: list[str | bytes], code: bytes) -> list[str | bytes]:
    """The text in the place of `{code}`; a long one becomes the file that its program reads instead."""
    if len(code) <= INLINE:
        return [code if word == "{code}" else word for word in argv]
    fd = memory_file(code)
    os.set_inheritable(fd, True)
    return [f"/proc/self/fd/{fd}" if word == "{code}" else word for word in argv if word != "-c"]


def memory_file(content: bytes) -> int:
    """A descriptor at the start of a file without a name."""
    fd = os.memfd_create("script", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
