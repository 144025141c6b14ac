"""What the processes of a sandbox use, read from the host's /proc and file systems. Only measures; watch.py judges."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_TMPFS = ("tmp", "dev/shm", "home")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the host: its number, threads, and resident bytes (an upper bound of its share)."""

    pid: int
    tasks: int
    resident: int


def tree(pid: int) -> Iterator[Process]:
    """A process and all below it, as far as they can still be read."""
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        try:
            fields = Path(f"/proc/{current}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        yield Process(current, int(fields[17]), int(fields[21]) * _PAGE)
        waiting += children(current)


def threads(pid: int) -> int:
    """How many threads a process has; 0 when it is gone."""
    return next((process.tasks for process in tree(pid)), 0)


def children(pid: int) -> list[int]:
    """The direct children of a process, of all its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_bytes().split()]
    return found


def host_pid(init: int, pid_inside: int) -> int:
    """The host's number of a process that the pid namespace of `init` calls `pid_inside`; 0 when there is none."""
    for launcher in children(init):
        for pid in (launcher, *children(launcher)):
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                numbers = next(line for line in lines if line.startswith("NSpid:")).split()
                if int(numbers[-1]) == pid_inside:
                    return pid
    return 0


def memory_of(pid: int, *, with_files: bool = False) -> int:
    """Bytes that a process has of its own, shared ones divided among the sharers, and its page tables; with_files: open memfds too.

    Where the shares cannot be read (a process may make itself opaque to all but root) the resident size stands for them.
    """
    shares: dict[str, int] = {}
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, _, value = line.partition(":")
            shares[name] = int(value.split()[0]) << 10
    except OSError:
        return next((process.resident for process in tree(pid)), 0) + page_tables(pid)
    files = _memory_files(pid) if with_files else 0
    return shares.get("Pss", 0) + max(0, files - shares.get("Pss_Shmem", 0)) + page_tables(pid)


def page_tables(pid: int) -> int:
    """Bytes of the tables of what a process has mapped: looking at one byte here and there takes those, and no other memory."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmPTE:")).split()[1]) << 10
    return 0


def _memory_files(pid: int) -> int:
    sizes: dict[tuple[int, int], int] = {}
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:"):
                    found = os.stat(f"/proc/{pid}/fd/{fd}")
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())


def run_times(pids: Iterable[int]) -> dict[tuple[int, int], bytes]:
    """How long each thread of these processes and of all below them has run, as the system counts: equal only if none has since."""
    found = {}
    for pid in pids:
        for process in tree(pid):
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{process.pid}/task"):
                    with contextlib.suppress(OSError):
                        found[process.pid, int(task)] = Path(f"/proc/{process.pid}/task/{task}/schedstat").read_bytes().split()[0]
    return found


def anybody_runs(pids: Iterable[int]) -> bool:
    """Whether a thread of these processes, or of one below them, runs or waits for a processor at this moment."""
    for pid in pids:
        for process in tree(pid):
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{process.pid}/task"):
                    with contextlib.suppress(OSError):
                        if Path(f"/proc/{process.pid}/task/{task}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"R":
                            return True
    return False


def own_memory() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def thread_seconds(beginning: str) -> float:
    """Processor time, in seconds, of this process's threads whose names begin so (proc(5): comm, schedstat)."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError, ValueError):  # it may end meanwhile
            if (task / "comm").read_text().startswith(beginning):
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def shared_memory() -> int:
    """Bytes of all tmpfs, memfd and shared anonymous memory of the machine."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Shmem:")).split()[1]) << 10
    return 0


def tmpfs_files(processes: list[Process]) -> list[tuple[str, int]]:
    """How many files there are in each tmpfs folder of the sandbox."""
    return [(folder, numbers.f_files - numbers.f_ffree) for folder, numbers in _tmpfs(processes)]


def tmpfs_bytes(processes: list[Process]) -> int:
    """How much the files in the tmpfs folders of the sandbox hold."""
    return sum((numbers.f_blocks - numbers.f_bfree) * numbers.f_frsize for _, numbers in _tmpfs(processes))


def _tmpfs(processes: list[Process]) -> list[tuple[str, os.statvfs_result]]:
    """The numbers of each tmpfs folder, seen through the first process that lets us."""
    for process in processes:
        root = f"/proc/{process.pid}/root"
        found = []
        for folder in _TMPFS:
            with contextlib.suppress(OSError):
                if os.stat(f"{root}/{folder}").st_dev != os.stat(f"/{folder}").st_dev:  # before pivot_root it is the host's
                    found.append((folder, os.statvfs(f"{root}/{folder}")))
        if found:
            return found
    return []


def full_folders(init: int, workspace: Path) -> frozenset[str]:
    """The memory folders of the sandbox and the workspace, as paths, where no byte or no file more can be written."""
    places = {f"/{folder}": f"/proc/{init}/root/{folder}" for folder in _TMPFS} | {str(workspace): str(workspace)}
    return frozenset(path for path, seen in places.items() if _is_full(seen))


def _is_full(path: str) -> bool:
    """Some file systems count no files, or nothing at all: 0 of 0 is not full."""
    try:
        room = os.statvfs(path)
    except OSError:
        return False
    return bool((room.f_blocks and not room.f_bavail) or (room.f_files and not room.f_favail))


def written_by(pid: int) -> int:
    """Bytes that a process and its collected children have written to disks; 0 when it hides that."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("write_bytes:")).split()[1])
    return 0


def changed_since(folder: Path, since: float) -> tuple[int, int]:
    """Bytes on disk and number of whatever is below a folder and changed at or after a time: folders and links take room too."""
    size = count = 0
    waiting = [os.fspath(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    found = entry.stat(follow_symlinks=False)
                    if found.st_ctime >= since:
                        size += found.st_blocks * 512
                        count += 1
    return size, count


def held_open(pids: Iterable[int], device: int) -> tuple[int, int, bool]:
    """Bytes and number of the files without a name that processes have open on a device, and whether one hides what it has open.

    Not seen: what is mapped or on its way through a socket and open nowhere.
    """
    sizes: dict[int, int] = {}
    hidden = False
    for pid in pids:
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
        except OSError as error:
            hidden = hidden or isinstance(error, PermissionError)
            continue
        for fd in fds:
            with contextlib.suppress(OSError):
                found = os.stat(f"/proc/{pid}/fd/{fd}")
                if found.st_nlink == 0 and found.st_dev == device and stat.S_ISREG(found.st_mode):
                    sizes[found.st_ino] = found.st_blocks * 512
    return sum(sizes.values()), len(sizes), hidden
