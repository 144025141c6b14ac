"""The first process of ours inside the sandbox: everything imported once, then a fork for each item.

    python -I launcher.py FD LIMITS [MODULE…]
    FD: the control socket (SOCK_SEQPACKET); LIMITS: JSON {name: number}; MODULE: imported beforehand too, at the user's wish

Orders arrive as one JSON document a message, with descriptors beside it; the launcher takes no other input:

    {"op": "kernel", "id": n, "key": text, "mode": text, "language": {} or null}
                                                                 + shell, iopub, stdin, control (listening), stdout, stderr
    {"op": "foreign", "id": n, "key": text, "argv": [text]}       + the same: any other Jupyter kernel, {connection_file} in argv
    {"op": "script", "id": n, "table": {}, "folder": text, "cwd": text}   + script file, stdout, stderr: see commands.py
    {"op": "copy", "id": n, "folder": text, "name": text}        + a pipe, stdout, stderr: what comes through it into a new file
    {"op": "signal", "id": n, "signum": k}                       to the item's process group; SIGINT: see INTERRUPTERS
    {"op": "settled", "id": n}                                   what a foreign kernel has started by now, an interrupt spares
    {"op": "end", "id": n}                                       kill the item and all that it started

Answers: {"ready": pid} (+ the broker's listening socket), {"forked": n, "pid": p}, {"refused": n, "why": text},
{"ended": n, "status": waitstatus, "cpu_s": seconds, "swept": count}, {"overrun": true}: an item forks faster than it can be killed,
and the launcher ends, and the sandbox with it.

The launcher trusts nobody below it. It is not dumpable, so no item can read or write its memory; when the control socket closes,
it ends, and with it (it is bubblewrap's only child) every process of the sandbox. One thread, since threads do not survive a fork.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from functools import partial

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves out the script's own folder

import commands
import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Order = dict[str, Any]
    """One order as it arrived: the table above says which keys each has."""

PRELOAD = "IPython.core.logger ipykernel.debugger ipykernel.ipkernel ipykernel.kernelapp ipykernel.zmqshell kernel foreign".split()
"""What a kernel cannot start without. None of what is imported here or below starts a thread."""
PRELOAD_LATER = (
    "IPython.core.completerlib IPython.core.debugger IPython.core.oinspect IPython.extensions.storemagic IPython.utils.wildcard "
    "encodings.idna encodings.latin_1 faulthandler pdb cProfile profile pstats sqlite3 tornado.gen tornado.locks "
    "tornado.platform.asyncio tornado.queues unicodedata"
).split()
"""What starts and first executions import besides."""
BROKER = b"\0sandboxmcp/broker"
"""The address that shims/shim.py asks."""
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Launcher:
    """The running items by number, and the socket to the host."""

    def __init__(self, control: socket.socket, cpu_s: int) -> None:
        self.control = control
        self.cpu_s = cpu_s
        self.wake: tuple[int, ...] = ()
        self.items: dict[
            int, tuple[int, str]
        ] = {}  # pid of the item's first process → its number and kind; no key of it, which the next fork could read
        self.spared: dict[int, frozenset[int]] = {}
        """The same → its children that an interrupt leaves alone."""

    def run(self) -> None:
        """Serve orders until the host closes the socket."""
        wake_r, wake_w = self.wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_w)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.announce()
        later = preparations()
        watched: list[socket.socket | int] = [self.control, wake_r]
        while True:
            readable, _, _ = select.select(watched, [], [], 0 if later else None)
            if not readable and later:
                later.popleft()()
            if wake_r in readable:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake_r, 4096)
                self.reap()
            if self.control in readable:
                message, fds, _, _ = socket.recv_fds(self.control, 1 << 20, 16)
                if not message:
                    return
                try:
                    self.obey(json.loads(message), fds)
                finally:
                    for fd in fds:
                        os.close(fd)

    def announce(self) -> None:
        """Say that we are ready, and pass out the socket on which brokered programs are asked for; the host accepts there.

        Made inside, it is in the sandbox's own namespace: nothing of the host's becomes visible. Its name is abstract and stays
        taken while the host holds it, and our copy is closed before any fork: no item can accept in the host's place.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(BROKER)
            listener.listen(128)
            message = json.dumps({"ready": os.getpid()}).encode()
            socket.send_fds(self.control, [message], [listener.fileno()])

    def tell(self, **answer: object) -> None:
        """One message to the host. A host that is gone is seen as the closed socket."""
        with contextlib.suppress(OSError):
            self.control.send(json.dumps(answer).encode())

    def obey(self, order: Order, fds: list[int]) -> None:
        """Carry out one order."""
        if order["op"] in STARTERS:
            self.fork(order, fds)
            return
        pid = next((pid for pid, (number, _) in self.items.items() if number == order["id"]), None)
        if pid is None:
            return
        if order["op"] == "settled":
            self.spared[pid] = frozenset(processes.children(pid))
        elif order["op"] == "end":
            self.end(pid)
        elif order["signum"] == signal.SIGINT:
            _, kind = self.items[pid]
            if not INTERRUPTERS[kind](self, pid):
                self.end(pid)
        else:
            processes.send_group(pid, order["signum"])

    def end(self, pid: int) -> None:
        """Kill an item, and what of it is not below it but beside: clone(2) may make a sibling (CLONE_PARENT)."""
        if not processes.end_all(lambda: [pid, *self.strays()], keep=[one for one in self.items if one != pid]):
            self.give_up()

    def give_up(self) -> NoReturn:
        """End, and with us the sandbox: something in it cannot be ended otherwise."""
        self.tell(overrun=True)
        os._exit(1)

    def interrupt_kernel(self, pid: int) -> bool:
        """A Python kernel runs its own `except` and `finally`."""
        return processes.interrupt(pid)

    def interrupt_wrapper(self, pid: int) -> bool:
        """The wrapper sees to its script's processes itself."""
        processes.send(pid, signal.SIGINT)
        return True

    def interrupt_foreign(self, pid: int) -> bool:
        """The relay, and what the kernel started before its first cell, is part of it."""
        return processes.interrupt(pid, self.spared.get(pid, frozenset(processes.children(pid))))

    def interrupt_script(self, pid: int) -> bool:
        """All of it has the signal that Ctrl-C would give it, wherever it moved to: a shell ends if what it waits for does so."""
        processes.signal_all(lambda: [pid, *self.strays()], signal.SIGINT)
        return True

    def fork(self, order: Order, fds: list[int]) -> None:
        """A process of its own for the item, as leader of its own session."""
        try:
            pid = os.fork()
        except OSError as error:  # the items have taken all processes that there may be
            self.tell(refused=order["id"], why=error.strerror)
            return
        if pid == 0:
            try:
                self.control.close()  # before the child can be looked into
                prepare_child(self.cpu_s)
                for fd in self.wake:
                    os.close(fd)
                STARTERS[order["op"]](order, fds)
            except BaseException as error:  # the child must never return into the launcher's loop
                print(f"launcher: the item could not start: {error!r}", file=sys.stderr, flush=True)
            finally:
                os._exit(126)
        self.items[pid] = order["id"], "wrapper" if order.get("language") else order["op"]
        self.tell(forked=order["id"], pid=pid)

    def reap(self) -> None:
        """Collect what ended; whatever an ended item left behind has become our child and is killed."""
        ended = []
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                cpu_s = processes.processor_time(found.si_pid)
                _, status = os.waitpid(found.si_pid, 0)
                self.spared.pop(found.si_pid, None)
                if (item := self.items.pop(found.si_pid, None)) is not None:
                    ended.append((item[0], status, cpu_s))
        swept = self.sweep()
        for number, status, cpu_s in ended:
            self.tell(ended=number, status=status, cpu_s=cpu_s, swept=swept)

    def strays(self) -> list[int]:
        """Our children that are no item: orphans of one that has ended, or siblings that one made."""
        return [pid for pid in processes.children(os.getpid()) if pid not in self.items]

    def sweep(self) -> int:
        """Kill every stray and all below it. Returns how many there were."""
        swept = 0
        while strays := self.strays():
            if not processes.end_all(self.strays, keep=self.items):
                self.give_up()
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)
                    swept += 1
        return swept


def preparations() -> collections.deque[Callable[[], object]]:
    """What every fork would do again, in steps that are taken while no order waits: the first one need not wait for them."""
    return collections.deque([transform_a_cell, *(partial(__import__, name) for name in PRELOAD_LATER), gc.freeze])


def transform_a_cell() -> None:
    """Compiles the regular expressions by which a first cell is read; nothing is run."""
    from IPython.core.inputtransformer2 import TransformerManager

    TransformerManager().transform_cell("0")


def prepare_child(cpu_s: int) -> None:
    """Undo what only the launcher needs: its signals and its invisibility; limit the processor time, in seconds."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 2))  # first SIGXCPU, two seconds later SIGKILL
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    processes.set_dumpable(True)
    # Daemons of the item stay below it while it lives, so that its end finds them. Survives exec.
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # else every fork would draw the same numbers


def become_kernel(order: Order, fds: list[int]) -> None:
    """Run an IPython kernel until it is told to shut down or killed."""
    import kernel

    sockets = dict(zip(("shell", "iopub", "stdin", "control"), fds, strict=False))
    kernel.serve(sockets, fds[4], fds[5], order["key"], order["mode"], order["language"])


def become_foreign_kernel(order: Order, fds: list[int]) -> None:
    """Replace this process by any other Jupyter kernel, and relay its sockets."""
    import foreign

    foreign.become(order["argv"], fds[:4], fds[4], fds[5], order["key"])


def become_script(order: Order, fds: list[int]) -> None:
    """Replace this process by what runs the script."""
    script, out, err = fds
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores both, and what is ignored stays so across exec
    os.dup2(out, 1)
    os.dup2(err, 2)
    try:
        if order.get("cwd"):
            os.chdir(order["cwd"])
        with open(script, "rb", closefd=False) as file:
            argv, stdin = commands.prepare(order["table"], file.read(), order["folder"])
        if stdin is not None:
            os.dup2(stdin, 0)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"the script could not be started: {error.strerror}: {error.filename}\n".encode(errors="replace"))
        os._exit(126)


def copy_in(order: Order, fds: list[int]) -> None:
    """Write a new file in a new folder; its bytes come from the host, where the script cannot see the file itself."""
    pipe, out, err = fds
    os.dup2(err, 2)
    os.close(out)
    try:
        os.mkdir(order["folder"], 0o700)
        target = os.open(os.path.join(order["folder"], order["name"]), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o400)
        while os.splice(pipe, target, 1 << 20):
            pass
        os._exit(0)
    except OSError as error:
        os.write(2, (error.strerror or "unknown").encode())
        os._exit(1)


INTERRUPTERS = {
    "kernel": Launcher.interrupt_kernel,
    "wrapper": Launcher.interrupt_wrapper,
    "foreign": Launcher.interrupt_foreign,
    "script": Launcher.interrupt_script,
    "copy": Launcher.interrupt_script,
}
"""What SIGINT means to each kind of item. False: it could not be interrupted, and is ended."""
STARTERS = {"kernel": become_kernel, "foreign": become_foreign_kernel, "script": become_script, "copy": copy_in}


def apply_limits(limits: dict[str, int]) -> None:
    """Set the limits that the operating system enforces per user namespace or process; they cannot be raised again."""
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(number)
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (ceiling, ceiling))


def main() -> None:
    """Prepare once, then serve."""
    gc.disable()  # nothing that is imported here becomes garbage; each item switches it on again
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    limits = json.loads(sys.argv[2])
    cpu_s = limits.pop("CPU")  # of an item, not of all of them together
    apply_limits(limits)
    # ipykernel takes an ImportError as "no debugger": saves a third of a kernel's start and 8 MiB each.
    sys.modules["debugpy"] = None  # type: ignore[assignment] # what the import system takes for "not there"
    for name in PRELOAD:
        __import__(name)
    for name in sys.argv[3:]:
        with contextlib.suppress(ImportError):  # a script that needs it will say so itself
            __import__(name)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    processes.set_dumpable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    Launcher(control, cpu_s).run()


if __name__ == "__main__":
    main()
