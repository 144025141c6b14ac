"""A script's working folder, and the file that it is about, bound to FILE_PATH and FILE_CONTENT.

A file that the sandbox sees is read inside, so that whatever became of its path meanwhile is resolved inside too. One of another
folder of the host's is copied in through a pipe. Its descriptor is not passed: opened again through /proc/self/fd it would give
what the user may do with the file, writing included.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sandboxmcp.core.errors import KernelError, UsageError
from sandboxmcp.core.model import BoundFile, Script
from sandboxmcp.kernels.capture import ItemCapture
from sandboxmcp.kernels.launcher import Launcher

_PIECE = 1 << 20
_CHDIR = "__import__('os').chdir({cwd!r})\n"
_BIND = """\
FILE_PATH = FILE_CONTENT_PATH = {file!r}
with open(FILE_PATH, 'rb') as FILE_CONTENT:
    FILE_CONTENT = ('utf-16', 'replace') if FILE_CONTENT.read(2) in (b'\\xff\\xfe', b'\\xfe\\xff') else ('utf-8', 'surrogateescape')
with open(FILE_PATH, encoding=FILE_CONTENT[0], errors=FILE_CONTENT[1], newline='') as FILE_CONTENT:
    FILE_CONTENT = FILE_CONTENT.read()
"""


def prelude(script: Script, file: str | None) -> str:
    """What a Python kernel runs before the script, unseen; empty: nothing."""
    folder = _CHDIR.format(cwd=script.cwd) if script.cwd is not None else ""
    return folder + (_BIND.format(file=file) if file is not None else "")


def private_folder(purpose: str) -> str:
    """The name of a folder inside that nothing has yet."""
    return f"/tmp/.{purpose}-{secrets.token_hex(8)}"


async def remove_folder(launcher: Launcher, folder: str) -> None:
    """Remove a folder inside; what cannot be removed stays until the sandbox ends."""
    with contextlib.suppress(KernelError), open(os.devnull, "wb") as null:
        item = await launcher.fork_script({"argv": ["/bin/rm", "-rf", "--", folder]}, b"", (null.fileno(), null.fileno()))
        await item.ended


@asynccontextmanager
async def bound(launcher: Launcher, file: BoundFile | None, captures: Path) -> AsyncIterator[str | None]:
    """The path inside under which the file can be read while the block lasts; None for none.

    Raises:
        UsageError: it may not be read (as its `opened` says), or does not fit into the sandbox.
        KernelError: the sandbox has ended.
    """
    if file is None or file.opened is None:
        yield None if file is None else str(file.path)
        return
    folder = private_folder("file")
    name = file.path.name[:200] or "file"
    try:
        with file.opened() as source:
            await _copy_in(launcher, source, folder, name, captures)
        yield f"{folder}/{name}"
    finally:
        await asyncio.shield(asyncio.ensure_future(remove_folder(launcher, folder)))


async def _copy_in(launcher: Launcher, source: Path, folder: str, name: str, captures: Path) -> None:
    capture = ItemCapture(captures, secrets.token_hex(8), _PIECE)
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        with os.fdopen(write_end, "wb", buffering=0) as sink:
            with os.fdopen(read_end, "rb", buffering=0) as pipe:
                item = await launcher.fork_copy(pipe.fileno(), folder, name, capture.streams)
            try:
                await asyncio.get_running_loop().run_in_executor(None, _pour, source, sink.fileno())
            except asyncio.CancelledError:
                item.kill()
                raise
        capture.close_writers()
        code = await item.ended
        _, stderr = await capture.finish()
        if code != 0:
            why = stderr.path.read_text(errors="replace") or "the copying ended"
            raise UsageError(f"{name} could not be copied into the sandbox: {why}", "Raise limits.tmpfs or limits.file.")
    finally:
        capture.discard()


def _pour(source: Path, sink: int) -> None:
    """The whole file into the pipe; a reader that has ended says itself why."""
    with source.open("rb") as file, contextlib.suppress(BrokenPipeError):
        while os.sendfile(sink, file.fileno(), None, _PIECE):
            pass
