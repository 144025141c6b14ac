"""An IPython kernel on sockets that it is given, writing its output to plain descriptors.

Differences from `python -m ipykernel`, each with its reason:

- The sockets are already listening when they arrive (ZMQ_USE_FD): no shared folder, and clients can connect before we run.
- stdout and stderr are the descriptors themselves. Sent as messages, output is lost when a client stalls; through a pipe it is not.
  What a notebook would show as text (results, tracebacks) is written there too, in order; only rich data goes out as messages.
- A kernel that runs one script finishes as an interpreter would before it answers: it waits for threads, runs atexit functions
  and closes files. Nobody else will: it is killed right after its answer.

Modes: `script` (as above), `session` (the same streams, many cells), `notebook` (ipykernel's own messages, for Jupyter's clients),
`wrapper` (the same for other languages: wrapper.py).
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import io
import logging
import os
import subprocess
import sys
import warnings

import ipykernel.kernelapp
import network_hint
import processes
import zmq
import zmq.utils.garbage  # here: imported while a script runs, it would let go at the script's end of what is still being sent
from displaying import DisplayHook, DisplayPublisher
from ending import end_as_child, finish_as_interpreter
from ipykernel.control import ControlThread
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.shellchannel import ShellChannelThread
from ipykernel.zmqshell import ZMQInteractiveShell
from publishing import PublishingThread
from tracebacks import SCRIPT_NAME, script_traceback
from traitlets import Type
from traitlets.config import Config
from wrapper import WrapperKernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, NoReturn

    from IPython.core.interactiveshell import ExecutionResult

_COLOUR = ("CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "PAGER", "GIT_PAGER")
"""What ipykernel sets for notebooks; it makes node and others print escape sequences into a pipe."""


class Shell(ZMQInteractiveShell):
    """Reports errors as Python does: a traceback of the script's own frames, to stderr."""

    displayhook_class = Type(DisplayHook)
    display_pub_class = Type(DisplayPublisher)

    runs_one_script = False

    def run_cell(self, *args: Any, **kwargs: Any) -> ExecutionResult:
        """As its caller, but the script sees no running event loop: `asyncio.run` works as it does in any script."""
        kernel = os.getpid()
        loop = asyncio.events._get_running_loop()
        asyncio.events._set_running_loop(None)
        try:
            result: ExecutionResult = super().run_cell(*args, **kwargs)
        finally:
            asyncio.events._set_running_loop(loop)
            asyncio.set_event_loop(loop)
        return result if os.getpid() == kernel else end_as_child(self, result)

    async def run_cell_async(self, *args: Any, **kwargs: Any) -> ExecutionResult:
        kernel = os.getpid()
        result: ExecutionResult = await super().run_cell_async(*args, **kwargs)
        return result if os.getpid() == kernel else end_as_child(self, result)

    def _showtraceback(self, etype: type[BaseException], evalue: BaseException, stb: list[str]) -> None:
        mend_streams()
        sys.stdout.flush()
        if not isinstance(evalue, SystemExit):
            sys.stderr.write(script_traceback(etype, evalue))
        elif isinstance(evalue.code, str):
            sys.stderr.write(evalue.code + "\n")  # sys.exit("why") says why
        sys.stderr.flush()
        super()._showtraceback(etype, evalue, [])


class SessionKernel(IPythonKernel):
    """A kernel whose streams are descriptors, for many cells."""

    shell_class = Type(Shell)

    async def do_execute(self, code: str, silent: bool, *args: Any, **kwargs: Any) -> dict[str, Any]:
        reply: dict[str, Any] = await super().do_execute(code, silent, *args, **kwargs)
        mend_streams()
        return reply

    _execute_sleep = 0  # half a millisecond in which stream messages get ahead of the answer; there are none


class ScriptKernel(SessionKernel):
    """The same for one script, which it ends as an interpreter would."""

    def raw_input(self, prompt: str = "") -> NoReturn:
        """What `input` does at the end of its input: there is none."""
        print(prompt, end="", flush=True)
        raise EOFError("EOF when reading a line: scripts have no standard input")

    def getpass(self, prompt: str = "", stream: object = None, **_more: object) -> NoReturn:
        """The same."""
        self.raw_input(prompt)

    def _publish_execute_input(self, code: str, parent: dict[str, Any], execution_count: int) -> None:
        """Nobody else listens who would want to see what is run."""

    def _publish_status(self, status: str, channel: str, parent: dict[str, Any] | None = None) -> None:
        if status != "busy":  # who asks knows that; each message costs both ends a tenth of an execution
            super()._publish_status(status, channel, parent)

    async def do_execute(self, code: str, silent: bool, *args: Any, **kwargs: Any) -> dict[str, Any]:
        if not silent:
            processes.set_dumpable(True)
        reply = await super().do_execute(code, silent, *args, **kwargs)
        if not silent:
            shell: Any = self.shell  # ipykernel says that there may be none; one that has executed has one
            finish_as_interpreter(shell)
        return reply


KERNELS = {"script": ScriptKernel, "session": SessionKernel, "notebook": IPythonKernel, "wrapper": WrapperKernel}


class App(IPKernelApp):
    """ipykernel's application with our sockets and without its files, heartbeat and debugger."""

    sockets: ClassVar[dict[str, int]] = {}
    """Channel to descriptor: set once per process, before the only instance is made."""

    def parse_command_line(self, argv: list[str] | None = None) -> None:
        """There is none; to prepare for one took a third of a kernel's start."""

    def load_config_file(self, *_args: object, **_kwargs: object) -> None:
        """None is read: the home is shared by all items of a session, and one must not configure the next."""

    def _run_startup_files(self) -> None:
        """None is run, for the same reason."""

    def init_connection_file(self) -> None:
        self.transport, self.ip = "ipc", "/run/kernel"
        for channel in ("shell", "iopub", "stdin", "control", "hb"):
            setattr(self, f"{channel}_port", 1)
        self._order = iter(("shell", "stdin", "control", "iopub"))  # the order in which init_sockets binds

    def _try_bind_socket(self, socket: zmq.Socket[bytes], port: int) -> int:
        channel = next(self._order)
        socket.setsockopt(zmq.USE_FD, self.sockets[channel])
        # Endless queues: at a limit ZeroMQ drops what a slow reader has not taken yet, the end of an execution too.
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.bind(f"ipc://{self.ip}-{channel}")
        return port

    def init_control(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self.control_port = self._bind_socket(self.control_socket, self.control_port)
        self.control_socket.router_handover = 1
        self.debugpy_socket = context.socket(zmq.STREAM)
        self.debug_shell_socket = context.socket(zmq.DEALER)
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = ShellChannelThread(context, daemon=True)

    def init_iopub(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        ipykernel.kernelapp.IOPubThread = PublishingThread  # type: ignore[attr-defined] # which imported it for itself
        super().init_iopub(context)

    def init_heartbeat(self) -> None:
        self.heartbeat = None

    def write_connection_file(self, **kwargs: object) -> None:
        """There is none."""

    def log_connection_info(self) -> None:
        self._ports = {}


def serve(sockets: dict[str, int], out: int, err: int, key: str, mode: str, language: dict[str, Any] | None = None) -> None:
    """Be a kernel on the listening `sockets` (channel → descriptor), its output going to `out` and `err`.

    `language`, for the wrapper: {"info": as in a kernel_info_reply, "table": see commands.py}.
    """
    if language is not None:
        WrapperKernel.table, WrapperKernel.language_info = language["table"], language["info"]
    App.sockets = sockets
    # Until the kernel serves, its complaints go where the launcher's go; from then on they are the script's.
    replace_streams()
    # While it waits for its script, the others of its session must not reach into it; once it runs, it is one of them.
    processes.set_dumpable(mode != "script")
    app = App.instance(config=configuration(key, mode))
    app.initialize([])
    shell: Any = app.shell
    for name in _COLOUR:
        os.environ.pop(name, None)
    if mode == "script":
        become_plain(shell)
    if mode in ("script", "session"):
        # The first run of a cell imports and builds what the later ones only use; its output goes nowhere yet.
        shell.run_cell("0", silent=False)
        shell.compile.get_code_name = lambda *_: SCRIPT_NAME
        for target, fd in ((1, out), (2, err)):
            os.dup2(fd, target)
    for fd in (out, err):
        os.close(fd)
    gc.freeze()
    gc.enable()
    warnings.filterwarnings("ignore", message="To exit: use", module="IPython")
    app.start()


def configuration(key: str, mode: str) -> Config:
    """IPython's settings: no history file, no colour, nothing printed of its own."""
    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "NoColor"
    # A completion that analyses libraries takes seconds, in which the kernel answers nothing; the objects themselves know more.
    settings.IPCompleter.use_jedi = False
    settings.IPKernelApp.log_level = 50
    settings.IPKernelApp.kernel_class = KERNELS[mode]
    if mode in ("script", "session"):
        settings.IPKernelApp.outstream_class = None
    settings.Session.key = key.encode()
    return settings


def become_plain(shell: Shell) -> None:
    """Take away what a script does not expect from IPython: its own `exit` and `open`, its atexit functions."""
    for name in ("exit", "quit", "open"):
        shell.user_ns.pop(name, None)
        shell.builtin_trap.auto_builtins.pop(name, None)
    shell.runs_one_script = True
    atexit._clear()
    atexit.register(logging.shutdown)


def replace_streams() -> None:
    """stdout and stderr as a script started by a shell has them, byte-exact both ways."""
    for name, fd, errors, by_line in (("stdout", 1, "surrogateescape", False), ("stderr", 2, "backslashreplace", True)):
        raw = io.FileIO(fd, "w", closefd=False)
        stream = io.TextIOWrapper(io.BufferedWriter(raw, 1 << 16), "utf-8", errors, line_buffering=by_line)
        stream.mode = "w"  # type: ignore[misc] # typeshed has it read-only; programs look for it
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.addaudithook(flush_before_children)
    os.system = system
    network_hint.install()


def system(command: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> int:
    """As os.system, but interrupted with the script: system(3) ignores SIGINT, and the next statement would run."""
    child = subprocess.Popen(command, shell=True, close_fds=False)  # noqa: S602 - that is what it is for
    try:
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        raise
    return -code if code < 0 else code << 8


def mend_streams() -> None:
    """Streams again where a script has closed its own: whoever flushes them next would fail, and the answer never be sent."""
    for name, fd in (("stdout", 1), ("stderr", 2)):
        if getattr(getattr(sys, name), "closed", True):
            setattr(sys, name, open(fd, "w", errors="backslashreplace", closefd=False))  # noqa: SIM115


def flush_before_children(event: str, _arguments: tuple[object, ...]) -> None:
    """A child that writes to the same pipe must find what was printed before it already there."""
    if event in ("subprocess.Popen", "os.fork", "os.system", "os.posix_spawn", "os.exec"):
        with contextlib.suppress(Exception):
            sys.stdout.flush()
