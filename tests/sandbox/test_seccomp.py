"""The call filter: its numbers against the installed headers, and its verdicts from a BPF machine of twenty lines."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.sandbox.seccomp import ABSENT, FILTERED, MACHINES, MODE_ARGUMENT, OPENS, REFUSED, filter_program

ALLOW, KILL, EPERM, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x5005D, 0x50061
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"),),
}
NEWER_THAN_HEADERS = {
    "fchmodat2": 452,
    "open_tree_attr": 467,
    "quotactl_fd": 443,
    "mount_setattr": 442,
    "set_mempolicy_home_node": 450,
}
"""Calls that the headers of a supported distribution may not know yet; numbers above 423 are the same on every machine."""


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the kernel answers: seccomp_data is (number, architecture, instruction pointer, six arguments of 64 bits)."""
    padded = [one & 0xFFFFFFFFFFFFFFFF for one in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=iIQ6Q", number - (number >> 31 << 32), architecture, 0, *padded)
    lines = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    accumulator = at = 0
    while True:
        code, then, otherwise, value = lines[at]
        at += 1
        if code == 0x06:  # return
            return value
        if code == 0x20:  # load a word of the data
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == 0x05:  # jump
            at += value
        else:
            met = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += then if met else otherwise


def header_numbers(machine: str) -> dict[str, int]:
    """Names and numbers of the installed header; generic ones have aliases such as __NR3264_fcntl."""
    file = next((path for path in HEADERS[machine] if path.exists()), None)
    if file is None:
        pytest.skip(f"the headers for {machine} are not installed: apt install linux-libc-dev")
    return {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", file.read_text())}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernels_headers(machine):
    known = {**NEWER_THAN_HEADERS, **header_numbers(machine)}
    ours = MACHINES[machine].numbers
    assert ours == {name: known.get(name) for name in ours}


@pytest.mark.parametrize("machine", MACHINES)
def test_no_call_of_the_lists_is_forgotten_that_the_machine_has(machine):
    there = set(header_numbers(machine)) & (ABSENT | REFUSED | FILTERED | set(MODE_ARGUMENT) | set(OPENS))
    assert there - set(MACHINES[machine].numbers) == set()


def test_no_call_is_on_two_lists():
    assert len(ABSENT | REFUSED | FILTERED) == len(ABSENT) + len(REFUSED) + len(FILTERED)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_listed_call_gets_its_answer(machine):
    table, program = MACHINES[machine], filter_program(machine)
    for name in (ABSENT | REFUSED) & set(table.numbers):
        assert (name, verdict(program, table.audit, table.numbers[name])) == (name, ENOSYS if name in ABSENT else EPERM)


def test_calls_of_another_architecture_kill():
    for machine, table in MACHINES.items():
        others = [0x40000003, 0x40000028, 0, *(one.audit for one in MACHINES.values() if one is not table)]
        assert [verdict(filter_program(machine), other, 20) for other in others] == [KILL] * len(others)


@pytest.mark.parametrize("number", [0x40000000, 0x40000027, 0x400000A5, 0x7FFFFFFF, 0xFFFFFFFF])
def test_the_x32_abi_is_absent(number):
    assert verdict(filter_program("x86_64"), MACHINES["x86_64"].audit, number) == ENOSYS


ARGUMENTS = {
    "fork": ("clone", (0x11,), ALLOW),
    "thread": ("clone", (0x3D0F00,), ALLOW),
    "new mounts": ("clone", (0x20011,), EPERM),
    "new cgroup": ("clone", (0x2000011,), EPERM),
    "new uts": ("clone", (0x4000011,), EPERM),
    "new ipc": ("clone", (0x8000011,), EPERM),
    "new users": ("clone", (0x10000011,), EPERM),
    "new pids": ("clone", (0x20000011,), EPERM),
    "new network": ("clone", (0x40000011,), EPERM),
    "unix": ("socket", (1, 1, 0), ALLOW),
    "inet": ("socket", (2, 1, 0), ALLOW),
    "inet6": ("socket", (10, 1, 0), ALLOW),
    "netlink route": ("socket", (16, 3, 0), ALLOW),
    "netlink audit": ("socket", (16, 3, 9), EAFNOSUPPORT),
    "netlink netfilter": ("socket", (16, 3, 12), EAFNOSUPPORT),
    "netlink, protocol in the high half too": ("socket", (16, 3, (1 << 32) | 9), EAFNOSUPPORT),
    "packet": ("socket", (17, 3, 0), EAFNOSUPPORT),
    "alg": ("socket", (38, 5, 0), EAFNOSUPPORT),
    "vsock": ("socket", (40, 1, 0), EAFNOSUPPORT),
    "vsock with a high half": ("socket", ((1 << 32) | 40, 1, 0), EAFNOSUPPORT),
    "family -1": ("socket", (-1, 1, 0), EAFNOSUPPORT),
    "socketpair unix": ("socketpair", (1, 1, 0), ALLOW),
    "socketpair vsock": ("socketpair", (40, 1, 0), EAFNOSUPPORT),
    "few semaphores": ("semget", (0, 32, 0o1600), ALLOW),
    "many semaphores": ("semget", (0, 33, 0o1600), ENOSYS),
    "semaphores without number": ("semget", (0, 0xFFFFFFFF, 0o1600), ENOSYS),
    "secret memory": ("memfd_secret", (0,), ENOSYS),
    "small shared segment": ("shmget", (0, 64 << 10, 0o1600), ALLOW),
    "large shared segment": ("shmget", (0, 1 << 30, 0o1600), ENOSYS),
    "shared segment with a high half": ("shmget", (0, 1 << 32, 0o1600), ENOSYS),
    "TCGETS": ("ioctl", (0, 0x5401), ALLOW),
    "TIOCSETD": ("ioctl", (0, 0x5423), EPERM),
    "TIOCSETD with a high half": ("ioctl", (0, (1 << 32) | 0x5423), EPERM),
    "TIOCLINUX with a high half": ("ioctl", (0, (0xFFFF << 32) | 0x541C), EPERM),
    "TIOCGETD": ("ioctl", (0, 0x5424), ALLOW),
    "bridge": ("ioctl", (0, 0x8940), EPERM),
    "VLAN with a high half": ("ioctl", (0, (1 << 63) | 0x8983), EPERM),
    "key of a file system": ("ioctl", (0, 0xC0506617), EPERM),
    "lease": ("fcntl", (0, 1024, 1), EPERM),
    "lease with a high half": ("fcntl", (0, (1 << 32) | 1024, 1), EPERM),
    "F_DUPFD_CLOEXEC": ("fcntl", (0, 1030, 3), ALLOW),
    "F_NOTIFY": ("fcntl", (0, 1026, 1), EPERM),
    "socket filter": ("setsockopt", (0, 1, 26, 0, 16), EPERM),
    "socket filter with high halves": ("setsockopt", (0, (1 << 32) | 1, (1 << 32) | 26, 0, 16), EPERM),
    "SO_REUSEADDR": ("setsockopt", (0, 1, 2, 0, 4), ALLOW),
    "an option of another level": ("setsockopt", (0, 6, 26, 0, 4), ALLOW),
    "huge pages": ("mmap", (0, 4096, 3, 0x40022, -1, 0), EPERM),
    "pages": ("mmap", (0, 4096, 3, 0x22, -1, 0), ALLOW),
    "huge memory file": ("memfd_create", (0, 0x5), EPERM),
    "memory file": ("memfd_create", (0, 0x3), ALLOW),
    "huge shared segment": ("shmget", (0, 4096, 0o5600), EPERM),
    "idle I/O": ("ioprio_set", (1, 0, 3 << 13), ALLOW),
    "first in the queue of the disk": ("ioprio_set", (1, 0, 2 << 13), EPERM),
    "SCTP": ("socket", (2, 1, 132), EPROTONOSUPPORT),
    "SCTP by type": ("socket", (10, 5, 0), EPROTONOSUPPORT),
    "DCCP by type, with flags": ("socket", (2, 0x80806, 0), EPROTONOSUPPORT),
    "UDP-Lite with a high half": ("socket", (2, 2, (1 << 32) | 136), EPROTONOSUPPORT),
    "UDP with flags": ("socket", (2, 0x80802, 17), ALLOW),
    "ICMPv6": ("socket", (10, 2, 58), ALLOW),
    "TIOCSTI": ("ioctl", (0, 0x5412), EPERM),
    "TIOCSTI with a high half (CVE-2019-10063)": ("ioctl", (0, (1 << 32) | 0x5412), EPERM),
    "TIOCLINUX": ("ioctl", (0, 0x541C), EPERM),
    "plain mode": ("fchmod", (3, 0o755), ALLOW),
    "sticky": ("fchmodat", (3, 0, 0o1777), ALLOW),
    "set-uid": ("fchmod", (3, 0o4755), EPERM),
    "set-gid": ("fchmodat", (3, 0, 0o2755), EPERM),
    "set-uid by the newer call": ("fchmodat2", (3, 0, 0o4755, 0), EPERM),
    "set-gid folder": ("mkdirat", (3, 0, 0o2755), EPERM),
    "set-uid node": ("mknodat", (3, 0, 0o104755), EPERM),
    "made set-uid": ("openat", (3, 0, 0o101, 0o4755), EPERM),
    "made without a name, set-uid": ("openat", (3, 0, 0o20200001, 0o4755), EPERM),
    "opened, the mode means nothing": ("openat", (3, 0, 0o1, 0o6755), ALLOW),
    "made plain": ("openat", (3, 0, 0o101, 0o644), ALLOW),
    "personality linux": ("personality", (0,), ALLOW),
    "personality without randomisation": ("personality", (0x40000,), ALLOW),
    "personality query": ("personality", (0xFFFFFFFF,), ALLOW),
    "personality read implies exec": ("personality", (0x400000,), EPERM),
    "personality 32 bit": ("personality", (8,), EPERM),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_decide(machine, case):
    name, arguments, expected = ARGUMENTS[case]
    table = MACHINES[machine]
    assert verdict(filter_program(machine), table.audit, table.numbers[name], *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 0x3FFFFFFF), arguments=st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_other_call_is_allowed_whatever_its_arguments(machine, number, arguments):
    table = MACHINES[machine]
    if number not in table.numbers.values():
        assert verdict(filter_program(machine), table.audit, number, *arguments) == ALLOW


def test_a_machine_without_a_table_has_no_filter():
    with pytest.raises(KeyError):
        filter_program("riscv64")
