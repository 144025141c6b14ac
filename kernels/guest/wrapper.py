"""A Jupyter kernel for languages that have none: each cell is a script of its own, run as a process group.

What users of kernelspecs expect: output as it comes, stderr apart, an interrupt that ends the script and what it started within a
second and a half however deaf it is, and its exit code in the reply (`ename` ExitCode, `evalue` the code). No state is kept
between cells. What a script leaves running ends with its cell.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

import commands
import processes
from ipykernel.kernelbase import Kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, ClassVar

_STEPS = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.5), (signal.SIGKILL, 5.0))
"""What an interrupt sends, and how many seconds each has to work."""
_PIECE = 1 << 16


class WrapperKernel(Kernel):
    """Runs scripts by the table of their language (see commands.py)."""

    implementation = "sandboxmcp"
    implementation_version = "1"
    banner = "Each cell is a script of its own; no variable lives on."
    table: ClassVar[commands.Table] = {}
    """Set once per process, before the only instance is made."""

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, Any] | None = None,
        allow_stdin: bool = False,
        **_more: object,
    ) -> dict[str, Any]:
        """Run one cell to its end."""
        folder = tempfile.mktemp(prefix=".script-", dir="/tmp")  # noqa: S306 - made by mkdir, which fails where one is
        try:
            ended, interrupted = await self._run(code.encode(errors="surrogateescape"), folder, silent)
        except OSError as error:
            return self._failed("OSError", f"the script could not be started: {error.strerror}: {error.filename}", 126, silent)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if interrupted:
            return self._failed("KeyboardInterrupt", "", ended, silent)
        if ended:
            return self._failed("ExitCode", str(ended), ended, silent)
        reply = {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}
        return {**reply, "sandboxmcp": {"exit_code": 0}}

    def _failed(self, name: str, value: str, code: int, silent: bool) -> dict[str, Any]:
        error = {"ename": name, "evalue": value, "traceback": [f"{name}: {value}" if value else name]}
        if not silent:
            self.send_response(self.iopub_socket, "error", error)
        return {"status": "error", "execution_count": self.execution_count, **error, "sandboxmcp": {"exit_code": code}}

    async def _run(self, code: bytes, folder: str, silent: bool) -> tuple[int, bool]:
        """The exit code as a shell gives it, and whether it was interrupted."""
        loop = asyncio.get_running_loop()
        interrupt = asyncio.Event()
        loop.add_signal_handler(signal.SIGINT, interrupt.set)
        script = None
        try:
            script = self._start(code, folder)
            streams = {"stdout": script.stdout, "stderr": script.stderr}
            pumps = [asyncio.ensure_future(self._pump(name, pipe, silent)) for name, pipe in streams.items() if pipe is not None]
            interrupted = await self._ended(script, interrupt)
            # What it left behind holds its pipes: once that has ended, so have they.
            processes.end_descendants(os.getpid())
            await asyncio.gather(*pumps)
            return script.returncode if script.returncode >= 0 else 128 - script.returncode, interrupted
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            processes.end_descendants(os.getpid())
            collect()

    def _start(self, code: bytes, folder: str) -> subprocess.Popen[bytes]:
        argv, stdin = commands.prepare(self.table, code, folder)
        passed = [int(word.rpartition(b"/")[2]) for word in map(os.fsencode, argv) if word.startswith(b"/proc/self/fd/")]
        try:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
                pass_fds=passed,
            )
        finally:
            for fd in (*passed, *([] if stdin is None else [stdin])):
                os.close(fd)

    async def _ended(self, script: subprocess.Popen[bytes], interrupt: asyncio.Event) -> bool:
        """Wait for the script and no longer than an interrupt takes; True when there was one. Its pipes may be open still."""
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        watched = os.pidfd_open(script.pid)
        loop.add_reader(watched, gone.set)
        waiting = [asyncio.ensure_future(event.wait()) for event in (gone, interrupt)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            interrupted = not gone.is_set()
            for number, wait_s in _STEPS if interrupted else ():
                if number == signal.SIGKILL:
                    processes.end_descendants(os.getpid())
                else:
                    processes.signal_all(lambda: processes.children(os.getpid()), number)
                await asyncio.wait(waiting[:1], timeout=wait_s)
                if gone.is_set():
                    break
            script.wait()
            return interrupted
        finally:
            loop.remove_reader(watched)
            os.close(watched)
            for one in waiting:
                one.cancel()

    async def _pump(self, name: str, pipe: IO[bytes], silent: bool) -> None:
        """A stream's pieces as messages; letters are never torn apart."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=2 * _PIECE)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            piece = await reader.read(_PIECE)
            text = decoder.decode(piece, final=not piece)
            if text and not silent:
                self.send_response(self.iopub_socket, "stream", {"name": name, "text": text})
            if not piece:
                transport.close()
                return


def collect() -> None:
    """Children that have ended and that nobody waited for: orphans come to us (PR_SET_CHILD_SUBREAPER)."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
