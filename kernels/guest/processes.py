"""Which processes hang below one, how to end them all, and whether others may look into this one."""

import contextlib
import ctypes
import os
import signal

_PR_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None)
_WALL = 0x40000000
"""Of any kind, also those that no signal tells of (waitid(2), __WALL)."""
_ROUNDS = 64
"""More looks than any tree needs that does not fork for ever; one that does ends with the process above it."""


def children(pid):
    """The direct children of a process, of all its threads."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(word) for word in file.read().split()]
    return found


def has_children():
    """Whether this process has any, ended ones among them; a hundredth of what it costs to look for them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
    except ChildProcessError:
        return False
    return True


def kill_descendants(pid):
    """Kill everything below a process, again and again until nothing new appears there.

    Complete for a child subreaper: orphans come to it, so none gets out of sight between two looks.
    """
    for _ in range(_ROUNDS):
        below, level = [], [pid]
        while level:
            level = [child for parent in level for child in children(parent)]
            below += level
        alive = [one for one in below if not is_zombie(one)]
        if not alive:
            return
        for one in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)


def kill_tree(pid):
    """Kill a process and everything below it, the process itself last: while it lives, its orphans stay below it."""
    kill_descendants(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_zombie(pid):
    """Whether a process has ended and waits to be collected."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def set_dumpable(dumpable):
    """Let processes of the same user read and write this one's memory and descriptors, or not (prctl(2), PR_SET_DUMPABLE)."""
    _libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)
