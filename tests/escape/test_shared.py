"""What is counted for the whole machine or the whole user: tried with little, and given back at once."""

from __future__ import annotations

import ast
import platform

import pytest

from sandboxmcp.sandbox.seccomp import MACHINES

N = MACHINES[platform.machine()].numbers
COUNTED = {
    "asynchronous I/O": (f"aio({N['io_setup']}, {N['io_destroy']})", "ENOSYS"),
    "huge pages": ("huge()", "EPERM"),
    "huge memory file": ("os.close(os.memfd_create('x', os.MFD_HUGETLB))", "EPERM"),
    "huge shared segment": (f"call({N['shmget']}, 0, 4096, 0o5600)", "EPERM"),
    "socket filter": ("socket_filter()", "EPERM"),
    "flushing all disks": (f"call({N['sync']})", "EPERM"),
    "flushing a whole file system": ("flush()", "EPERM"),
    "first place in the disk's queue": (f"in_child(lambda: call({N['ioprio_set']}, 1, 0, 2 << 13))", "EPERM"),
    "advice for another process": (f"call({N['process_madvise']}, os.pidfd_open(os.getpid()), iovec(), 1, 20, 0)", "EPERM"),
    "home node": (f"call({N['set_mempolicy_home_node']}, 0, 0, 0, 0)", "EPERM"),
    "key of a file system": (f"call({N['ioctl']}, os.open('.', 0), 0xC0506617, buffer)", "EPERM"),
}
LOADS_MODULES = {
    "bridge": (f"call({N['ioctl']}, inet().fileno(), 0x8940, buffer)", "EPERM"),
    "bridge, the number's high half set": (f"call({N['ioctl']}, inet().fileno(), 0x8940 | 1 << 32, buffer)", "EPERM"),
    "VLAN": (f"call({N['ioctl']}, inet().fileno(), 0x8982, buffer)", "EPERM"),
    "SCTP": ("socket.socket(2, 1, 132).close()", "EPROTONOSUPPORT"),
    "DCCP by its type": ("socket.socket(2, 6, 0).close()", "EPROTONOSUPPORT"),
    "UDP-Lite": ("socket.socket(2, 2, 136).close()", "EPROTONOSUPPORT"),
    "L2TP": ("socket.socket(2, 2, 115).close()", "EPROTONOSUPPORT"),
}
WAITED_FOR = {
    "lease": ("in_child(lambda: lease())", "EPERM"),
    "notices by signal": ("in_child(lambda: fcntl.fcntl(os.open('.', 0), fcntl.F_NOTIFY, 1))", "EPERM"),
}
HELPERS = """
def aio(setup, destroy):
    context = ctypes.c_ulong()
    call(setup, 1, ctypes.byref(context))
    call(destroy, context)

def huge():
    import mmap
    try: mmap.mmap(-1, 2 << 20, flags=0x40022).close()
    except OSError as error: raise OSError(error.errno, '')

def inet():
    global internet
    internet = socket.socket(2, 2)
    return internet

def iovec():
    global vector
    vector = (ctypes.c_void_p * 2)(0, 0)
    return vector

def flush():
    _libc.syncfs.argtypes = [ctypes.c_int]
    if _libc.syncfs(os.open('.', 0)) < 0: raise OSError(ctypes.get_errno(), '')

def socket_filter():
    instruction = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0xFFFF))
    with socket.socket(1, 2) as one:
        one.setsockopt(1, 26, struct.pack('HP', 1, ctypes.addressof(instruction)))

def lease():
    with open('leased', 'w') as file: pass
    fcntl.fcntl(os.open('leased', os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)
"""


def test_what_is_counted_for_the_whole_machine_is_not_used_up(refused):
    tried = {name: source for name, (source, _) in COUNTED.items()}
    told = {name: answer for name, (_, answer) in COUNTED.items()}
    assert refused(tried, perhaps=set(tried), helpers=HELPERS) == told


def test_nobody_outside_is_made_to_wait_for_a_file(refused):
    tried = {name: source for name, (source, _) in WAITED_FOR.items()}
    told = {name: answer for name, (_, answer) in WAITED_FOR.items()}
    assert refused(tried, helpers=HELPERS) == told


def test_the_kernel_loads_no_module_for_a_script(inside, prelude):
    """Not tried outside: there each would load one, and nothing takes it away again."""
    tried = {name: source for name, (source, _) in LOADS_MODULES.items()}
    code = f"{prelude}\n{HELPERS}\nprint({{name: word(source) for name, source in {tried!r}.items()}})"
    assert ast.literal_eval(inside.run(code).text) == {name: answer for name, (_, answer) in LOADS_MODULES.items()}


LINE_DISCIPLINE = """
import ctypes, os, pty
libc = ctypes.CDLL(None, use_errno=True)
master, terminal = pty.openpty()
print([libc.ioctl(terminal, ctypes.c_ulong(0x5423 | high), ctypes.byref(ctypes.c_int(0))) for high in (0, 1 << 32, 0xFFFF << 48)])
"""


def test_no_line_discipline_is_set_whatever_stands_in_the_high_half_of_the_number(attempt):
    """0 is the one that a terminal has from the start: no module is loaded for it."""
    both = attempt(LINE_DISCIPLINE)
    assert (both.outside.stdout.strip(), both.inside.text.strip()) == ("[0, 0, 0]", "[-1, -1, -1]")


PER_USER = {
    "queued signals": (
        "import signal\nif os.fork(): os.wait(); sys.exit()\nsignal.pthread_sigmask(signal.SIG_BLOCK, [64])\n"
        "libc = ctypes.CDLL(None)\n"
        "n = 0\nwhile n < 5000 and libc.sigqueue(os.getpid(), 64, None) == 0: n += 1\nprint(n, flush=True)\nos._exit(0)",
        4096,
    ),
    "timers": (
        "libc = ctypes.CDLL(None)\ntimer = ctypes.c_void_p()\nn = 0\n"
        "while n < 5000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0: n += 1\nprint(n)",
        4096,
    ),
    "locked memory": (
        "import mmap\npage = mmap.mmap(-1, 16 << 20)\nat = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "print(sum(ctypes.CDLL(None).mlock(ctypes.c_void_p(at + (n << 20)), 1 << 20) == 0 for n in range(16)))",
        8,
    ),
    "message queues": (
        "libc = ctypes.CDLL(None)\nlibc.mq_open.argtypes = [ctypes.c_char_p] + [ctypes.c_int] * 2 + [ctypes.c_void_p]\n"
        "made = [libc.mq_open(b'/sandboxmcp-%d' % n, os.O_CREAT | os.O_RDWR, 0o600, None) for n in range(9)]\n"
        "print(sum(one >= 0 for one in made))\n_ = [libc.mq_unlink(b'/sandboxmcp-%d' % n) for n in range(9)]",
        3,
    ),
}


@pytest.mark.parametrize("what", PER_USER)
def test_what_is_counted_for_the_user_is_taken_up_to_a_small_bound(attempt, what, cannot_show):
    """A process of the host gets all of what is asked for, as far as its own limits go; a script gets no more than the bound."""
    code, most = PER_USER[what]
    both = attempt(f"import ctypes, os, sys\n{code}")
    if int(both.outside.stdout) <= most:
        cannot_show(what, f"a process of this user gets {both.outside.stdout.strip()} outside")
    assert 0 < int(both.inside.text) <= most
