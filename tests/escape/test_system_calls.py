"""Doors of the operating system's kernel: namespaces, mounts, tracing, keyrings, second ABIs, terminals (cases 12, 14-19)."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from sandboxmcp.sandbox.seccomp import MACHINES

N = MACHINES[platform.machine()].numbers
NEW_NAMESPACES = {"NS": 0x20000, "CGROUP": 0x2000000, "UTS": 0x4000000, "IPC": 0x8000000, "USER": 0x10000000, "NET": 0x40000000}
ROOT_ONLY = frozenset(NEW_NAMESPACES) - {"USER"}


def test_no_new_namespace_is_unshared(refused):
    tried = {name: f"in_child(lambda: call({N['unshare']}, {flag}))" for name, flag in NEW_NAMESPACES.items()}
    assert refused(tried, perhaps=ROOT_ONLY) == dict.fromkeys(tried, "EPERM")


def test_no_process_is_cloned_into_a_new_namespace(refused):
    # 17 is SIGCHLD; the clone ends at once, so that only one process goes on.
    clone = "in_child(lambda: call({number}, {flags}, 0, 0, 0, 0) or os._exit(0))"
    tried = {name: clone.format(number=N["clone"], flags=flag | 17) for name, flag in NEW_NAMESPACES.items()}
    assert refused(tried, perhaps=ROOT_ONLY) == dict.fromkeys(tried, "EPERM")


def test_clone3_is_absent_and_no_namespace_is_joined(refused):
    tried = {"clone3": f"call({N['clone3']}, 0, 0)", "setns": f"call({N['setns']}, -1, 0)"}
    assert refused(tried) == {"clone3": "ENOSYS", "setns": "EPERM"}


def test_a_sandbox_in_the_sandbox_does_not_start(attempt):
    both = attempt("bwrap --unshare-user --ro-bind / / true && echo nested", "shell")
    assert (both.outside.stdout, both.inside.stdout) == ("nested\n", b"")


def test_nothing_is_mounted(refused):
    tried = {
        "mount": f"in_child(lambda: call({N['unshare']}, 0x20000) or call({N['mount']}, b'x', b'/mnt', b'tmpfs', 0, 0))",
        "mount here": f"call({N['mount']}, 0, 0, 0, 0, 0)",
        "umount2": f"call({N['umount2']}, b'/nonexistent', 0)",
        "fsopen": f"os.close(call({N['fsopen']}, b'tmpfs', 0))",
        "open_tree": f"os.close(call({N['open_tree']}, -100, b'/', 0))",
        "move_mount": f"call({N['move_mount']}, -1, b'', -1, b'', 0)",
        "mount_setattr": f"call({N['mount_setattr']}, -1, b'', 0, 0, 0)",
        "pivot_root": f"call({N['pivot_root']}, 0, 0)",
        "chroot": f"in_child(lambda: call({N['chroot']}, b'/'))",
    }
    absent = {"fsopen", "open_tree", "move_mount", "mount_setattr"}
    assert refused(tried, perhaps=set(tried) - {"open_tree"}) == {name: "ENOSYS" if name in absent else "EPERM" for name in tried}


def test_no_process_is_traced_or_written_through_system_calls(refused):
    tried = {
        "ptrace": f"in_child(lambda: call({N['ptrace']}, 0, 0, 0, 0))",
        "process_vm_readv": f"call({N['process_vm_readv']}, os.getpid(), 0, 0, 0, 0, 0)",
        "process_vm_writev": f"call({N['process_vm_writev']}, os.getpid(), 0, 0, 0, 0, 0)",
        "pidfd_getfd": f"call({N['pidfd_getfd']}, -1, 0, 0)",
        "kcmp": f"call({N['kcmp']}, os.getpid(), os.getpid(), 1, 0, 0)",
    }
    assert refused(tried, perhaps={"kcmp"}) == dict.fromkeys(tried, "EPERM")


def test_kernel_surface_with_a_long_record_of_bugs_is_shut(refused):
    tried = {
        "io_uring_setup": f"os.close(call({N['io_uring_setup']}, 8, buffer))",
        "bpf": f"call({N['bpf']}, 0, 0, 0)",
        "perf_event_open": f"call({N['perf_event_open']}, 0, 0, -1, -1, 0)",
        "userfaultfd": f"os.close(call({N['userfaultfd']}, 1))",
        "keyctl": f"call({N['keyctl']}, 0, -3, 0)",
        "add_key": f"in_child(lambda: call({N['add_key']}, b'user', b'sandboxmcp', b'x', 1, -1))",
        "request_key": f"call({N['request_key']}, b'user', b'sandboxmcp-none', 0, 0)",
        "open_by_handle_at": f"call({N['open_by_handle_at']}, -1, 0, 0)",
        "name_to_handle_at": f"call({N['name_to_handle_at']}, -1, b'x', 0, 0, 0)",
        "set_mempolicy": f"in_child(lambda: call({N['set_mempolicy']}, 0, 0, 0))",
        "vmsplice": f"call({N['vmsplice']}, -1, 0, 0, 0)",
        "personality": f"in_child(lambda: call({N['personality']}, 0x0400000))",
        "adjtimex": f"call({N['adjtimex']}, bytes(4096))",
        "syslog": f"call({N['syslog']}, 10, 0, 0)",
        "sethostname": f"call({N['sethostname']}, socket.gethostname().encode(), len(socket.gethostname()))",
        "settimeofday": f"call({N['settimeofday']}, 0, 0)",
    }
    absent = {"io_uring_setup", "bpf", "perf_event_open", "userfaultfd"}
    privileged = {"open_by_handle_at", "syslog", "sethostname", "settimeofday", "bpf", "perf_event_open"}
    lacking = {"io_uring_setup", "userfaultfd", "keyctl", "add_key", "set_mempolicy"}
    expected = {name: "ENOSYS" if name in absent else "EPERM" for name in tried}
    assert refused(tried, perhaps=privileged | lacking) == expected


def test_what_is_not_run_outside_is_refused_inside(inside):
    """Harmful on a host even with odd arguments, so only the inside is asked: every one answers EPERM before it looks at them."""
    names = sorted(
        {"reboot", "vhangup", "kexec_load", "kexec_file_load", "swapon", "swapoff", "delete_module", "init_module"} & set(N)
    )
    code = "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
    code += f"print([(c.syscall(n, 0, 0, 0, 0, 0), ctypes.get_errno()) for n in {[N[name] for name in names]}])"
    assert inside.run(code).text == f"{[(-1, 1)] * len(names)}\n"


SECOND_ABI = """
import ctypes, mmap, os, sys
code = bytes.fromhex({code!r})
page = mmap.mmap(-1, 4096, prot=7)
page.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
if (pid := os.fork()) == 0:
    os._exit(0 if call() == os.getpid() else 9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
GETPID_INT80 = "53b814000000cd805bc3"
"""push rbx; mov eax, 20; int 0x80; pop rbx; ret"""
GETPID_X32 = "b8270000400f05c3"
"""mov eax, 0x40000027; syscall; ret"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this machine has no second ABI")
def test_the_32_bit_abi_kills_the_caller(attempt, cannot_show):
    both = attempt(SECOND_ABI.format(code=GETPID_INT80))
    if both.outside.stdout != "0\n":
        cannot_show("int 0x80", f"this kernel has no 32-bit emulation ({both.outside.stdout.strip()})")
    assert both.inside.text == "-31\n"  # SIGSYS


@pytest.mark.skipif(platform.machine() != "x86_64", reason="this machine has no second ABI")
def test_the_x32_abi_is_absent(attempt, cannot_show):
    both = attempt(SECOND_ABI.format(code=GETPID_X32))
    if both.outside.stdout != "0\n":
        cannot_show("x32", "this kernel has no x32 ABI")
    assert both.inside.text == "9\n"


TERMINAL = """
import errno, fcntl, os, pty, sys
pid, master = pty.fork()
if pid == 0:
    said = []
    for request, argument in ((0x5412, b"x"), (0x541C, b"\\3")):
        try:
            fcntl.ioctl(0, request, argument)
            said.append("done")
        except OSError as error:
            said.append(errno.errorcode[error.errno])
    os.write(1, " ".join(said).encode() + b"\\n")
    os._exit(0)
answer = b""
while b"\\n" not in answer:
    answer += os.read(master, 100)
print(answer.decode().strip().removeprefix("x"))
"""


def test_nothing_is_typed_into_a_terminal(attempt, cannot_show):
    both = attempt(TERMINAL)
    if not both.outside.stdout.startswith("done"):
        cannot_show("TIOCSTI", f"{both.outside.stdout.split()[0]}: this kernel has it switched off")
    assert both.outside.stdout.split()[1] != "EPERM"
    assert both.inside.text == "EPERM EPERM\n"


def test_there_is_no_terminal_to_type_into(inside):
    ran = inside.run("tty; exec 3<>/dev/tty", "shell")
    assert (ran.stdout, ran.outcome.status) == (b"not a tty\n", "failed")


def test_the_filter_and_the_lost_privileges_are_on_for_every_process_inside(inside):
    ran = inside.run("grep -hE '^(NoNewPrivs|Seccomp|CapEff|CapBnd):' /proc/$PPID/status /proc/self/status", "shell")
    one = "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
    first = Path(f"/proc/{inside.runner.running._launcher.process.init_pid}/status").read_text()
    assert (ran.text, [line in first for line in one.splitlines(keepends=True)]) == (one * 2, [True] * 4)
