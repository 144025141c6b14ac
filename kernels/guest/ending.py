"""How the process of a script ends: as an interpreter does, whether it is the kernel itself or a child that the script forked."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
import threading

import processes
from tracebacks import script_traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ipykernel.zmqshell import ZMQInteractiveShell
    from IPython.core.interactiveshell import ExecutionResult


def finish_as_interpreter(shell: ZMQInteractiveShell) -> None:
    """What the end of a script does: wait for its threads, run its atexit functions, close its files, end its children.

    The host kills the whole item anyway. Done here too, it is done before the answer says that the script has ended.
    """
    wait_for_threads()
    run_exit_functions()
    close_files(shell)
    if processes.has_children():
        processes.end_descendants(os.getpid())
    flush_streams()


def end_as_child(shell: Any, result: ExecutionResult) -> NoReturn:
    """The end of a process that a script forked and that came to the script's end: it must not go on as a second kernel."""
    wait_for_threads()
    if shell.runs_one_script:
        run_exit_functions()
    close_files(shell)
    flush_streams()
    os._exit(exit_code(result.error_before_exec or result.error_in_exec))


def exit_code(error: BaseException | None) -> int:
    """The exit code of an interpreter that ended with this exception, or without one."""
    if error is None or (isinstance(error, SystemExit) and error.code is None):
        return 0
    return error.code & 0xFF if isinstance(error, SystemExit) and isinstance(error.code, int) else 1


def wait_for_threads() -> None:
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread() and thread is not threading.main_thread():
            thread.join()


def run_exit_functions() -> None:
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    try:
        atexit._run_exitfuncs()
    except BaseException as error:  # as at an interpreter's end: reported, and the exit code stays
        sys.stderr.write(script_traceback(type(error), error))


def close_files(shell: ZMQInteractiveShell) -> None:
    """Let go of all that the script named: its open files write what they hold back."""
    shell.user_ns.clear()
    gc.collect()


def flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
