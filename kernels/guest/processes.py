"""Which processes hang below one, how to end or interrupt them all, and whether others may look into this one.

Processes that end one after the other see each other go: a shell whose `sleep` was killed takes its next command. So all of them
are stopped, from the top downwards, before the first is killed. Nobody waits until they have stopped: a process in vfork(2) stops
only when its child has executed a program. It need not: SIGSTOP is acted on before the next instruction of the program.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Tops = Callable[[], Iterable[int]]
    """Names the processes at the top, asked again at each look."""

_PR_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None)
_TGKILL = {"x86_64": 234, "aarch64": 131}
_WALL = 0x40000000
"""Of any kind, also those that no signal tells of (waitid(2), __WALL)."""
_ROUNDS = 64
"""More looks than any tree needs that does not fork for ever, or wake what was stopped."""
_PATIENCE_S = 5.0
"""How long the killed may take to end: a large one gives back its memory first."""


def children(pid: int) -> list[int]:
    """The direct children of a process, of all its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(word) for word in file.read().split()]
    return found


def has_children() -> bool:
    """Whether this process has any, ended ones among them; a hundredth of what it costs to look for them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WALL)
    except ChildProcessError:
        return False
    return True


def end_all(tops: Tops, keep: Iterable[int] = ()) -> bool:
    """Kill the processes that `tops` names and all below them; none runs on between the first's death and the last's.

    Of the process groups `keep`, and of our own, others stay; each other one dies at once, should something in it have been woken.

    Returns when all have ended. False: after many rounds, or a long wait, some have not; whoever called must end what is above
    them. `tops` is asked again and again, since orphans come to whoever reaps them.
    """
    deadline = time.monotonic() + _PATIENCE_S
    for _ in range(_ROUNDS):
        alive = [pid for pid in stop_all(tops) if not has_ended(pid)]
        if not alive:
            return True
        for group in dict.fromkeys(map(group_of, alive)):
            if group not in (0, os.getpgrp(), *keep):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
        for pid in reversed(alive):  # the lowest first: a group that is left orphaned by a death above it is woken (setpgid(2))
            send(pid, signal.SIGKILL)
        for pid in alive:
            await_end(pid, deadline)
    return not any(not has_ended(pid) for pid in walk(tops()))


def end_descendants(pid: int, spare: Collection[int] = ()) -> bool:
    """The same for everything below a process, but for the children to `spare` and what is below those."""
    return end_all(lambda: [child for child in children(pid) if child not in spare], keep=[group_of(pid)])


def interrupt(pid: int, spare: Collection[int] = ()) -> bool:
    """SIGINT to a process, after all below it have ended; it sees none of them end before the signal. False as of `end_all`.

    `spare`: children that stay, which have the signal too where they are of the process's group.
    """
    send(pid, signal.SIGSTOP)
    ended = end_descendants(pid, spare)
    for one in [pid, *(one for one in walk(spare) if group_of(one) == pid)]:
        send_first_thread(one, signal.SIGINT)
    send(pid, signal.SIGCONT)
    return ended


def signal_all(tops: Tops, signum: int) -> None:
    """A signal to processes and all below them; none can answer it before the last has it.

    Not just when a child has ended that nobody has collected: a shell that learns of that and of SIGINT at once goes on.
    """
    for _ in range(_ROUNDS):
        reached = stop_all(tops)
        if not any(map(has_ended, reached)):
            break
        for pid in reached:
            send(pid, signal.SIGCONT)
        os.sched_yield()
    for pid in reached:
        send_first_thread(pid, signum)
    for pid in reached:
        send(pid, signal.SIGCONT)


def stop_all(tops: Tops) -> list[int]:
    """Stop processes and all below them until a look finds no new ones. Returns those of the last look, from the top.

    After many rounds it returns all the same: what wakes others, or forks on and on, is still running then.
    """
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        before = len(stopped)
        found = walk(tops(), stopped)
        if len(stopped) == before:
            break
    for pid in stopped.difference(found):  # it has ended, or its number was another's by the time it was stopped
        send(pid, signal.SIGCONT)
    return found


def walk(tops: Iterable[int], stopped: set[int] | None = None) -> list[int]:
    """Processes and all below them, from the top. With a set of those that are `stopped`, the others are, before they are read."""
    found: dict[int, None] = {}
    level = list(tops)
    while level:
        for pid in level:
            if stopped is not None and pid not in stopped:
                send(pid, signal.SIGSTOP)
                stopped.add(pid)
        found.update(dict.fromkeys(level))
        level = [child for pid in level for child in children(pid) if child not in found]
    return list(found)


def await_end(pid: int, deadline: float) -> None:
    """Wait until a process that was killed has ended, all its threads with it, or until a moment of the monotonic clock."""
    try:
        watched = os.pidfd_open(pid)
    except OSError:  # it has been collected; or there is no descriptor left, and the next look tells
        return
    try:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(watched)


def send(pid: int, signum: int) -> None:
    """A signal to a process, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signum)


def send_first_thread(pid: int, signum: int) -> None:
    """A signal to a stopped process. Any thread would take it when it goes on: Python's first one would sleep on, not interrupted.

    Where the first thread blocks it, another one waits for it, and may take it.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        blocked = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk:"))
        if not blocked >> (signum - 1) & 1:
            _libc.syscall(_TGKILL[os.uname().machine], pid, pid, signum)
            return
    send(pid, signum)


def send_group(pid: int, signum: int) -> None:
    """A signal to the process group that a process leads; to itself alone in its first moment, when it is no leader yet."""
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if group_of(pid) == pid else os.kill)(pid, signum)


def group_of(pid: int) -> int:
    """The process group of a process; 0 when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


def has_ended(pid: int) -> bool:
    """Whether a process has ended and at most waits to be collected. One whose first thread alone has ended has not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return True
    return fields[0] in (b"Z", b"X") and int(fields[17]) <= 1


def processor_time(pid: int) -> float:
    """Seconds that a process has used, its children not counted; an ended one is asked before it is collected."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def set_dumpable(dumpable: bool) -> None:
    """Let processes of the same user read and write this one's memory and descriptors, or not (prctl(2), PR_SET_DUMPABLE)."""
    _libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)
