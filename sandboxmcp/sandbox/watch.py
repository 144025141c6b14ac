"""The watchdog: what the operating system does not limit is watched from the host, and a breach ends the item that caused it.

Watched: memory of all processes of the items together (exact shares are read only when the cheap upper bound says so), memory held
in files without a name (memfd), page tables, files in the tmpfs folders, growth of the workspace. What setrlimit(2) limits well is
set by the launcher inside. Not covered: memory of the kernel itself (buffers of sockets and pipes), which needs a control group.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sandboxmcp.core.reasons import Reason
from sandboxmcp.sandbox.usage import (
    Process,
    changed_since,
    held_open,
    memory_of,
    own_memory,
    page_tables,
    shared_memory,
    tmpfs_bytes,
    tmpfs_files,
    tree,
    written_by,
)

_PERIOD_S = 0.05
_SLOW_EVERY = 5
"""Files and file systems are looked at in every fifth round."""
_SERVER_GROWTH = 160 << 20
"""Bytes by which our own process may grow by what items send. Output does not pass through our memory and messages are few: who
makes us grow is sending messages without end (ZeroMQ keeps every part of one until the last, and knows no limit for that)."""
_RECEIVED_S = 0.02
"""Seconds of processor time that receiving so much takes at least. Where the sandbox's receiving thread had less, others made us
grow: another session that indexes, say."""
_GRACE_S = 1.0
"""An item that is still there so long after its breach takes its sandbox with it (it may have stopped the launcher)."""


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """What the items of one sandbox may use together."""

    memory: int
    """Bytes."""
    workspace: int
    """Bytes that the workspace may grow by."""
    files: int
    """New files in the workspace; files in each tmpfs folder."""


@dataclass(slots=True, eq=False)
class Watched:
    """One item while it runs. The thread writes, its owner reads when the item has ended."""

    pid: int
    """The host's number of its first process; 0 when it had ended before it could be found."""
    sends: bool = False
    """Whether it is a kernel, which can send us messages."""
    breach: Reason | None = None
    """Why it was ended."""
    breached_at: float = 0.0
    most_tasks: int = 0
    """The largest number of processes and threads seen."""
    kill: Callable[[], None] = field(default=lambda: None)


class Watchdog:
    """A thread that sleeps while nothing runs. `end_sandbox`, told why, is its last resort, also where the thread itself fails."""

    def __init__(
        self, workspace: Path, limits: WatchLimits, end_sandbox: Callable[[Reason], None], received_s: Callable[[], float]
    ) -> None:
        """`received_s`: the processor time, in seconds, of the thread that receives what the sandbox's kernels send."""
        self._workspace = workspace
        self._received_s = received_s
        self._limits = limits
        self._end_sandbox = end_sandbox
        self._items: list[Watched] = []
        self._changed = threading.Condition()
        self._stopped = False
        self._disk = _DiskBaseline(workspace)
        self._shared_at_start = shared_memory()
        self._own_at_start = own_memory()
        self._received_at_start = received_s()
        threading.Thread(target=self._watch, daemon=True, name="sandboxmcp-watchdog").start()

    def begin(self, pid: int, kill: Callable[[], None], *, sends: bool = False) -> Watched:
        """Watch the item whose first process has this number on the host; `kill` is called from the watchdog's thread."""
        item = Watched(pid, sends, kill=kill)
        with self._changed:
            if not self._items:
                self._shared_at_start = shared_memory()
                self._disk = _DiskBaseline(self._workspace)
                self._rebase()
            self._items.append(item)
            self._changed.notify()
        return item

    @property
    def watched(self) -> int:
        """How many items it looks at."""
        return len(self._items)

    def finish(self, item: Watched) -> None:
        with self._changed:
            self._items.remove(item)

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _watch(self) -> None:
        try:
            self._watch_until_stopped()
        except BaseException as error:  # nothing runs unwatched
            self._end_sandbox(Reason("watchdog_failed", {"error": f"{type(error).__name__}: {error}"}))
            raise

    def _watch_until_stopped(self) -> None:
        rounds = 0
        while True:
            with self._changed:
                while not self._items and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                items = list(self._items)
            self._look(items, thoroughly=rounds % _SLOW_EVERY == 0)
            rounds += 1
            time.sleep(_PERIOD_S)

    def _look(self, items: list[Watched], *, thoroughly: bool) -> None:
        overdue = [item for item in items if item.breach and time.monotonic() - item.breached_at > _GRACE_S]
        if overdue:
            self._end_sandbox(Reason("neighbour_overran"))
            return
        trees = {id(item): list(tree(item.pid)) for item in items if item.pid and not item.breach}
        for item in items:
            item.most_tasks = max(item.most_tasks, sum(process.tasks for process in trees.get(id(item), [])))
        everyone = [process for processes in trees.values() for process in processes]
        tables = sum(page_tables(process.pid) for process in everyone) if thoroughly else 0
        if sum(process.resident for process in everyone) + tables > self._limits.memory:
            self._judge_memory(items, trees)
        if own_memory() - self._own_at_start > _SERVER_GROWTH:
            self._judge_messages(items)
        if thoroughly:
            self._judge_shared(items, trees, everyone)
            self._judge_files(items, everyone)

    def _rebase(self) -> None:
        """Count the growth of our own process from here."""
        self._own_at_start, self._received_at_start = own_memory(), self._received_s()

    def _judge_messages(self, items: list[Watched]) -> None:
        """Our process has grown: by what this sandbox's kernels send, or by something else."""
        if self._received_s() - self._received_at_start < _RECEIVED_S:
            self._rebase()
            return
        self._breach([item for item in items if item.sends], Reason("messages_limit", next_step="print_instead"))

    def _judge_memory(self, items: list[Watched], trees: dict[int, list[Process]], *, with_files: bool = False) -> None:
        """Exact shares; the item with the largest goes."""
        shares = {key: sum(memory_of(process.pid, with_files=with_files) for process in tree) for key, tree in trees.items()}
        total = sum(shares.values())
        if total > self._limits.memory:
            largest = max(shares, key=lambda key: shares[key])
            self._breach([item for item in items if id(item) == largest], self._over("memory_limit", total, "memory"))

    def _judge_shared(self, items: list[Watched], trees: dict[int, list[Process]], everyone: list[Process]) -> None:
        """Memory in nameless files: by who has them open, and where nobody shows them, by how much the machine's has grown."""
        grown = shared_memory() - self._shared_at_start
        if grown > self._limits.memory // 2:
            self._judge_memory(items, trees, with_files=True)
        if grown - tmpfs_bytes(everyone) > self._limits.memory:
            self._breach(items, self._over("shared_memory_limit", grown, "memory"))

    def _judge_files(self, items: list[Watched], everyone: list[Process]) -> None:
        for folder, count in tmpfs_files(everyone):
            if count > self._limits.files:
                self._breach(items, self._over("tmpfs_files_limit", count, "files", folder=folder))
                self._end_sandbox(Reason("tmpfs_filled"))  # what was created stays, and takes memory, until the sandbox ends
                return
        size, count = self._disk.growth(self._limits, [process.pid for process in everyone])
        if size > self._limits.workspace:
            self._breach(items, self._over("workspace_size_limit", size, "workspace"))
        elif count > self._limits.files:
            self._breach(items, self._over("workspace_files_limit", count, "files"))

    def _over(self, code: str, used: int, limit: str, **more: str) -> Reason:
        """More than a limit allows: bytes or files, by the limit's name."""
        facts = {"used": used, "limit": getattr(self._limits, limit), "setting": f"limits.{limit}", **more}
        return Reason(code, facts, "raise_limit")

    def _breach(self, items: list[Watched], reason: Reason) -> None:
        for item in items:
            if not item.breach:
                item.breach, item.breached_at = reason, time.monotonic()
                item.kill()


class _DiskBaseline:
    """What was written and how full the file system was when we last looked closely, so that only a change makes us look again."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._since = time.time()
        self._used = self._now()
        self._written = 0
        self._device = workspace.stat().st_dev if workspace.exists() else 0

    def _now(self) -> tuple[int, int]:
        """Bytes and files in use; others may fill or free the same disk meanwhile."""
        try:
            numbers = os.statvfs(self._workspace)
        except OSError:
            return 0, 0
        return (numbers.f_blocks - numbers.f_bfree) * numbers.f_frsize, numbers.f_files - numbers.f_ffree

    def growth(self, limits: WatchLimits, pids: list[int]) -> tuple[int, int]:
        """Bytes and files new in the workspace; (0, 0) while neither the items nor the disk show as much as a limit.

        Files that have no name any more are their openers'. Who hides what it has open answers for all that has grown.
        """
        size, count = self._now()
        written = sum(map(written_by, pids))
        grown = size - self._used[0], count - self._used[1]
        if grown[0] <= limits.workspace and grown[1] <= limits.files and written - self._written <= limits.workspace:
            return 0, 0
        found = changed_since(self._workspace, self._since)
        held = held_open(pids, self._device)
        new = found[0] + held[0], found[1] + held[1]
        if held[2]:
            new = max(new[0], grown[0]), max(new[1], grown[1])
        # What others wrote, or was overwritten, is not growth: look again only after the same amount once more.
        self._used = size - new[0], count - new[1]
        self._written = written - new[0]
        return new
