"""The system-call filter: what the namespaces do not cover is refused here. Pure: numbers in, BPF program out.

Covered: the doors that a network namespace leaves open (AF_VSOCK talks to the hypervisor, AF_ALG, raw netlink), kernel surface
with a long record of bugs (io_uring, bpf, userfaultfd, perf, keyrings, the new mount API), new namespaces, tracing of other
processes, memory that nobody is seen to hold (large System V segments and sets of semaphores, its message queues, whose limits a
namespace may raise itself; secret memory), terminal injection (TIOCSTI, CVE-2017-5226) and the second ABIs that would go round the
filter (x32, int 0x80), and set-id files; what is counted for the whole machine (asynchronous I/O, huge pages, the machine code of
socket filters, flushing of all disks), what has the kernel load modules (line disciplines, bridges, VLANs, unusual protocols), and
leases, for which others wait. Not covered: bugs in the calls that stay allowed.

Design: flatpak's block list, and CVE-2021-41133 (clone3 answers ENOSYS, since its flags lie in memory that a filter cannot read,
and libc then falls back to clone).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_LOAD, _JUMP, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EPROTONOSUPPORT, _EAFNOSUPPORT = 1, 38, 93, 97
_NUMBER, _ARCHITECTURE, _ARGUMENT_0, _ARGUMENT_1, _ARGUMENT_2, _ARGUMENT_3 = 0, 4, 16, 24, 32, 40
"""Offsets in struct seccomp_data of the low halves (both machines are little-endian)."""

_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_SET_ID = 0o6000
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _NETLINK_ROUTE = 1, 2, 10, 16, 0
_UNUSUAL_SOCKET_TYPE = 0xC
"""Bits of none of SOCK_STREAM, SOCK_DGRAM and SOCK_RAW: DCCP and SCTP are loaded by type as well as by protocol."""
_PROTOCOLS = (0, 1, 6, 17, 58)
"""The default one, ICMP, TCP, UDP, ICMPv6. For others the kernel loads a module, at anybody's wish (net/ipv4/af_inet.c)."""
_IOCTLS = {
    "TIOCSTI": 0x5412,
    "TIOCLINUX": 0x541C,
    "TIOCSETD": 0x5423,  # loads tty-ldisc-N
    "SIOCGIFBR": 0x8940,  # these four load bridge
    "SIOCSIFBR": 0x8941,
    "SIOCBRADDBR": 0x89A0,
    "SIOCBRDELBR": 0x89A1,
    "SIOCGIFVLAN": 0x8982,  # these two load 8021q
    "SIOCSIFVLAN": 0x8983,
    "FS_IOC_ADD_ENCRYPTION_KEY": 0xC0506617,  # counts as the user's keys
}
"""Refused requests; the kernel looks at the low 32 bits, and so does the filter."""
_F_SETLEASE, _F_NOTIFY = 1024, 1026
_SOL_SOCKET = 1
_SOCKET_FILTERS = (26, 50, 51, 52)
"""SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF and _REUSEPORT_EBPF: their machine code counts against bpf_jit_limit, of all users."""
_MAP_HUGETLB, _MFD_HUGETLB, _SHM_HUGETLB = 0x40000, 0x4, 0o4000
_IDLE_CLASS = 3 << 13
"""The lowest I/O priority as ioprio_set(2) takes it, and the only one that may be chosen."""
_SMALL_SEGMENT = 64 << 10
"""Of System V shared memory: no process shows what it holds there, so only what cannot add up to much is given."""
_FEW_SEMAPHORES = 32
"""In one set, likewise: the kernel's own limits allow 32,000 in each of 32,000 sets, 64 bytes each."""
_PERSONALITIES = (0x0, 0x0040000, 0xFFFFFFFF)
"""Linux, without address randomisation (debuggers, runtimes), and "only tell me"."""

ABSENT = frozenset(
    "bpf clone3 fsconfig fsmount fsopen fspick io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit "
    "io_uring_enter io_uring_register io_uring_setup memfd_secret mount_setattr "
    "msgget move_mount open_tree open_tree_attr openat2 perf_event_open userfaultfd".split()
)
"""Answered as if this kernel did not have them: programs then take their older way."""
REFUSED = frozenset(
    "acct add_key adjtimex chroot clock_adjtime clock_settime delete_module fanotify_init finit_module init_module kcmp "
    "kexec_file_load kexec_load keyctl lookup_dcookie mbind migrate_pages mount move_pages name_to_handle_at "
    "open_by_handle_at pidfd_getfd pivot_root process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd "
    "reboot request_key set_mempolicy set_mempolicy_home_node setdomainname sethostname setns settimeofday swapoff swapon sync "
    "syncfs syslog umount2 unshare vhangup "
    "vmsplice iopl ioperm modify_ldt nfsservctl sysfs uselib ustat".split()
)
"""Answered with EPERM. The last few exist on x86_64 only."""
FILTERED = frozenset(
    "clone fcntl ioctl ioprio_set memfd_create mmap personality semget setsockopt shmget socket socketpair".split()
)
"""Judged by their arguments."""
MODE_ARGUMENT = dict(chmod=1, creat=1, fchmod=1, fchmodat=2, fchmodat2=2, mkdir=1, mkdirat=2, mknod=1, mknodat=2)
"""Which argument is a file mode: with a set-id bit in it the call is refused. A set-id file in the workspace belongs to the
workspace's owner on the host's disk, where nothing keeps it from working."""
OPENS = {"open": 1, "openat": 2}
"""Which argument holds the flags; the mode comes after it and means something only where a file is made."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture: its audit number, whether it has a second ABI, and its system-call numbers."""

    audit: int
    x32: bool
    numbers: dict[str, int]


MACHINES: dict[str, Machine] = {
    "x86_64": Machine(
        0xC000003E,
        True,
        dict(
            acct=163, add_key=248, adjtimex=159, bpf=321, chmod=90, chroot=161, clock_adjtime=305, clock_settime=227,
            clone=56, clone3=435, creat=85, delete_module=176, fanotify_init=300, fchmod=91, fchmodat=268,
            fchmodat2=452, fcntl=72, finit_module=313, fsconfig=431, fsmount=432, fsopen=430, fspick=433, init_module=175,
            io_cancel=210, io_destroy=207, io_getevents=208, io_pgetevents=333, io_setup=206, io_submit=209,
            io_uring_enter=426, io_uring_register=427, io_uring_setup=425, ioctl=16, ioperm=173, iopl=172, ioprio_set=251, kcmp=312,
            kexec_file_load=320, kexec_load=246, keyctl=250, lookup_dcookie=212, mbind=237, memfd_create=319, memfd_secret=447,
            migrate_pages=256, mmap=9, process_madvise=440, set_mempolicy_home_node=450, setsockopt=54, sync=162, syncfs=306,
            mkdir=83, mkdirat=258, mknod=133, mknodat=259, modify_ldt=154, mount=165, mount_setattr=442,
            move_mount=429, msgget=68, move_pages=279, name_to_handle_at=303, nfsservctl=180, open=2, open_by_handle_at=304,
            open_tree=428, open_tree_attr=467, openat=257, openat2=437, perf_event_open=298, personality=135,
            pidfd_getfd=438, pivot_root=155, process_vm_readv=310, process_vm_writev=311, ptrace=101, quotactl=179,
            quotactl_fd=443, reboot=169, request_key=249, semget=64, set_mempolicy=238, setdomainname=171, sethostname=170,
            setns=308, settimeofday=164, shmget=29, socket=41, socketpair=53, swapoff=168, swapon=167, sysfs=139,
            syslog=103, umount2=166, unshare=272, uselib=134, userfaultfd=323, ustat=136, vhangup=153, vmsplice=278,
        ),
    ),
    "aarch64": Machine(
        0xC00000B7,
        False,
        dict(
            acct=89, add_key=217, adjtimex=171, bpf=280, chroot=51, clock_adjtime=266, clock_settime=112, clone=220,
            clone3=435, delete_module=106, fanotify_init=262, fchmod=52, fchmodat=53, fchmodat2=452, fcntl=25, finit_module=273,
            fsconfig=431, fsmount=432, fsopen=430, fspick=433, init_module=105,
            io_cancel=3, io_destroy=1, io_getevents=4, io_pgetevents=292, io_setup=0, io_submit=2, io_uring_enter=426,
            io_uring_register=427, io_uring_setup=425, ioctl=29, ioprio_set=30, kcmp=272, kexec_file_load=294, kexec_load=104,
            keyctl=219, lookup_dcookie=18, mbind=235, memfd_create=279, memfd_secret=447,
            mmap=222, process_madvise=440, set_mempolicy_home_node=450, setsockopt=208, sync=81, syncfs=267,
            migrate_pages=238, mkdirat=34, mknodat=33, mount=40,
            mount_setattr=442, move_mount=429, msgget=186, move_pages=239, name_to_handle_at=264, nfsservctl=42,
            open_by_handle_at=265, open_tree=428, open_tree_attr=467, openat=56, openat2=437, perf_event_open=241,
            personality=92, pidfd_getfd=438, pivot_root=41, process_vm_readv=270, process_vm_writev=271, ptrace=117,
            quotactl=60, quotactl_fd=443, reboot=142, request_key=218, semget=190, set_mempolicy=237, setdomainname=162,
            sethostname=161, setns=268, settimeofday=170, shmget=194, socket=198, socketpair=199, swapoff=225,
            swapon=224, syslog=116, umount2=39, unshare=97, userfaultfd=282, vhangup=58, vmsplice=75,
        ),
    ),
}  # fmt: skip
"""From the kernel's own headers; tests/sandbox/test_seccomp.py compares them with the ones installed."""


def filter_program(machine: str) -> bytes:
    """The filter for `platform.machine()`, as an array of struct sock_filter, for bubblewrap's --seccomp.

    Raises:
        KeyError: there is no table for this machine; the caller must not start a sandbox without a filter.
    """
    table = MACHINES[machine]
    code = _Assembler()
    code.load(_ARCHITECTURE)
    code.branch(_JUMP_EQUAL, table.audit, otherwise="kill")
    code.load(_NUMBER)
    if table.x32:
        code.branch(_JUMP_AT_LEAST, 0x40000000, then="enosys")
    for name, number in sorted(table.numbers.items()):
        if name in ABSENT | REFUSED:
            code.branch(_JUMP_EQUAL, number, then="enosys" if name in ABSENT else "eperm")
    for name in sorted(FILTERED):
        code.branch(_JUMP_EQUAL, table.numbers[name], then="socket" if name == "socketpair" else name)
    for name, argument in sorted({**MODE_ARGUMENT, **OPENS}.items()):
        if name in table.numbers:
            code.branch(_JUMP_EQUAL, table.numbers[name], then=f"{'flags' if name in OPENS else 'mode'} {argument}")
    code.answer(_ALLOW)
    _judge_arguments(code)
    _judge_modes(code)
    for label, value in (
        ("allow", _ALLOW),
        ("eperm", _ERRNO | _EPERM),
        ("enosys", _ERRNO | _ENOSYS),
        ("noprotocol", _ERRNO | _EPROTONOSUPPORT),
        ("nofamily", _ERRNO | _EAFNOSUPPORT),
        ("kill", _KILL_PROCESS),
    ):
        code.label(label)
        code.answer(value)
    return code.assembled()


def _judge_arguments(code: _Assembler) -> None:
    code.label("clone")
    code.load(_ARGUMENT_0)
    code.branch(_JUMP_ANY_BIT, _NEW_NAMESPACES, then="eperm", otherwise="allow")
    code.label("ioctl")
    code.load(_ARGUMENT_1)
    for request in _IOCTLS.values():
        code.branch(_JUMP_EQUAL, request, then="eperm")
    code.jump("allow")
    code.label("fcntl")
    code.load(_ARGUMENT_1)
    code.branch(_JUMP_EQUAL, _F_SETLEASE, then="eperm")
    code.branch(_JUMP_EQUAL, _F_NOTIFY, then="eperm", otherwise="allow")
    code.label("setsockopt")
    code.load(_ARGUMENT_1)
    code.branch(_JUMP_EQUAL, _SOL_SOCKET, otherwise="allow")
    code.load(_ARGUMENT_2)
    for option in _SOCKET_FILTERS:
        code.branch(_JUMP_EQUAL, option, then="eperm")
    code.jump("allow")
    code.label("mmap")
    code.load(_ARGUMENT_3)
    code.branch(_JUMP_ANY_BIT, _MAP_HUGETLB, then="eperm", otherwise="allow")
    code.label("memfd_create")
    code.load(_ARGUMENT_1)
    code.branch(_JUMP_ANY_BIT, _MFD_HUGETLB, then="eperm", otherwise="allow")
    code.label("ioprio_set")
    code.load(_ARGUMENT_2)
    code.branch(_JUMP_AT_LEAST, _IDLE_CLASS, then="allow", otherwise="eperm")
    code.label("personality")
    code.load(_ARGUMENT_0)
    for persona in _PERSONALITIES:
        code.branch(_JUMP_EQUAL, persona, then="allow")
    code.jump("eperm")
    code.label("semget")
    code.load(_ARGUMENT_1)  # an int
    code.branch(_JUMP_AT_LEAST, _FEW_SEMAPHORES + 1, then="enosys", otherwise="allow")
    code.label("shmget")
    code.load(_ARGUMENT_1 + 4)
    code.branch(_JUMP_EQUAL, 0, otherwise="enosys")
    code.load(_ARGUMENT_1)
    code.branch(_JUMP_AT_LEAST, _SMALL_SEGMENT + 1, then="enosys")
    code.load(_ARGUMENT_2)
    code.branch(_JUMP_ANY_BIT, _SHM_HUGETLB, then="eperm", otherwise="allow")
    code.label("socket")
    code.load(_ARGUMENT_0)
    code.branch(_JUMP_EQUAL, _AF_UNIX, then="allow")
    for family in (_AF_INET, _AF_INET6):
        code.branch(_JUMP_EQUAL, family, then="internet")
    code.branch(_JUMP_EQUAL, _AF_NETLINK, otherwise="nofamily")
    code.load(_ARGUMENT_2)
    code.branch(_JUMP_EQUAL, _NETLINK_ROUTE, then="allow", otherwise="nofamily")
    code.label("internet")
    code.load(_ARGUMENT_1)
    code.branch(_JUMP_ANY_BIT, _UNUSUAL_SOCKET_TYPE, then="noprotocol")
    code.load(_ARGUMENT_2)
    for protocol in _PROTOCOLS:
        code.branch(_JUMP_EQUAL, protocol, then="allow")
    code.jump("noprotocol")


def _judge_modes(code: _Assembler) -> None:
    for argument in sorted(set(OPENS.values())):
        code.label(f"flags {argument}")
        code.load(_ARGUMENT_0 + 8 * argument)
        code.branch(_JUMP_ANY_BIT, _O_CREAT | _O_TMPFILE, then=f"mode {argument + 1}", otherwise="allow")
    for argument in sorted({*MODE_ARGUMENT.values(), *(flags + 1 for flags in OPENS.values())}):
        code.label(f"mode {argument}")
        code.load(_ARGUMENT_0 + 8 * argument)
        code.branch(_JUMP_ANY_BIT, _SET_ID, then="eperm", otherwise="allow")


class _Assembler:
    """Instructions with named targets; jumps go forward only, as BPF demands."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, str | None, str | None]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        self._labels[name] = len(self._lines)

    def load(self, offset: int) -> None:
        self._lines.append((_LOAD, offset, None, None))

    def answer(self, value: int) -> None:
        self._lines.append((_RETURN, value, None, None))

    def jump(self, target: str) -> None:
        self._lines.append((_JUMP, 0, target, None))

    def branch(self, test: int, value: int, then: str | None = None, otherwise: str | None = None) -> None:
        self._lines.append((test, value, then, otherwise))

    def assembled(self) -> bytes:
        return b"".join(self._instruction(at, *line) for at, line in enumerate(self._lines))

    def _instruction(self, at: int, code: int, value: int, then: str | None, otherwise: str | None) -> bytes:
        if code == _JUMP:
            return struct.pack("HBBI", code, 0, 0, self._distance(at, then, 0xFFFFFFFF))
        return struct.pack("HBBI", code, self._distance(at, then, 255), self._distance(at, otherwise, 255), value)

    def _distance(self, at: int, target: str | None, furthest: int) -> int:
        if target is None:
            return 0
        distance = self._labels[target] - at - 1
        if not 0 <= distance <= furthest:
            raise AssertionError(f"jump to {target} spans {distance} instructions")
        return distance
