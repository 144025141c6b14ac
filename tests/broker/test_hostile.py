"""Bad input from inside: shims that die, lie, or flood. Each gets a clear answer, the host goes on, and nothing is left open."""

from __future__ import annotations

import gc
import os
import threading
import time

import pytest

HELLO = b"hello\n" * 100
TALK = """
import array, os, socket, struct
def connect():
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(15)
    one.connect("\\0sandboxmcp/broker")
    return one
def frame(*fields):
    payload = b"\\0".join(field if isinstance(field, bytes) else field.encode() for field in fields)
    return struct.pack("!I", len(payload)) + payload
def read(one):
    head = one.recv(4)
    if len(head) < 4: return [b"nothing"]
    length = struct.unpack("!I", head)[0]
    got = b""
    while len(got) < length: got += one.recv(length - len(got))
    return got.split(b"\\0")
def rights(fds):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
"""


def talk(session, code):
    """Run Python inside that speaks to the broker by itself; from a shell, since a kernel's spare has descriptors of its own."""
    return session.run(f"python3 - <<'END'\n{TALK}\nURL = {session.site.url!r}\n{code}\nEND")


def open_descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def settled(value, wanted, seconds=10.0):
    """The value once it is what is wanted; what it is after so many seconds otherwise."""
    deadline = time.monotonic() + seconds
    ticks = threading.Event()
    while (found := value()) != wanted and time.monotonic() < deadline:
        ticks.wait(0.02)
    return found


@pytest.fixture
def nothing_left(session):
    """What was open before is open afterwards, with as many boxes waiting, and the broker still answers."""

    def quiet() -> bool:
        return session.inside.broker.spares.number == 2 and "sandboxmcp-request" not in [one.name for one in threading.enumerate()]

    session.run("curl -sS -o warm $U/ok")
    assert settled(quiet, True)
    before = open_descriptors()
    yield
    assert session.run("curl -sS -o after $U/ok; cat after").stdout == HELLO
    assert settled(quiet, True)
    assert settled(lambda: open_descriptors() <= before, True)


def test_a_shim_that_is_killed_ends_its_request(session, nothing_left):
    ran = session.run("timeout -s KILL 0.6 curl -sS -o slow $U/slow; echo $?")
    assert ran.text == "137\n"
    assert settled(lambda: session.log()[-1]["reason"], "the shim ended first") == "the shim ended first"


def test_a_script_that_times_out_ends_its_requests(session, nothing_left):
    assert session.run("curl -sS -o slow $U/slow", timeout_s=0.6).outcome.status == "timeout"


@pytest.mark.parametrize("cut", ["frame('curl', 'stream', 'stream', '-sS', URL)[:9]", "b'\\0\\0'", "b''"])
def test_a_truncated_frame_ends_the_connection(session, nothing_left, cut):
    assert talk(session, f"one = connect(); one.sendall({cut}); one.shutdown(1); print(one.recv(100))").text == "b''\n"


def test_a_frame_that_is_too_long_is_answered(session, nothing_left):
    ran = talk(session, "one = connect(); one.sendall(struct.pack('!I', 1 << 30)); print(read(one))")
    assert ran.text == "[b'exit', b'2', b'', b'sandbox: the arguments are too long\\n']\n"


def test_garbage_is_refused(session, nothing_left):
    code = "one = connect(); one.sendall(frame({})); print(read(one)[:2])"
    answers = [
        talk(session, code.format(fields)).text for fields in ("b'\\xff'", "''", "'curl'", "'sh', 'file', 'file', '-c', 'id'")
    ]
    assert answers == ["[b'exit', b'2']\n"] * 4


def test_two_hundred_and_fifty_descriptors_are_let_go(session, nothing_left):
    code = (
        "r, w = os.pipe(); one = connect()\n"
        "one.sendmsg([frame('curl', 'stream', 'stream', '-sS', '-o', 'f', URL + '/ok')], rights([w] * 250))\n"
        "asked = read(one); one.sendall(frame('ok'))\n"
        "asked = read(one); one.sendmsg([frame('ok')], rights([w] * 250)); print(asked[0], read(one)[:2])\n"
        "os.close(w); print(os.read(r, 1))"
    )
    assert talk(session, code).text.splitlines()[-1] == "b''"


LIES = {
    "a pipe": ("os.pipe()[1]", "no regular file"),
    "a folder": ("os.open('.', os.O_RDONLY)", "no regular file"),
    "a device": ("os.open('/dev/null', os.O_WRONLY)", "no regular file"),
    "a socket": ("socket.socket(socket.AF_UNIX).detach()", "no regular file"),
    "readable": ("os.open('lie', os.O_RDWR | os.O_CREAT)", "not open for writing only"),
    "only readable": ("os.open('lie', os.O_RDONLY | os.O_CREAT)", "not open for writing only"),
    "a setting of a process": ("os.open('/proc/self/oom_score_adj', os.O_WRONLY)", "a setting of the system, not a file"),
    "memory of a process": ("os.open('/proc/self/mem', os.O_WRONLY)", "a setting of the system, not a file"),
    "a setting of the namespace": ("os.open('/proc/sys/kernel/sem', os.O_WRONLY)", "a setting of the system, not a file"),
    "a mere path": ("os.open('lie', os.O_PATH)", "not open for writing only"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_descriptor_that_is_no_output_is_refused(session, nothing_left, lie):
    expression, why = LIES[lie]
    code = (
        "open('lie', 'w').close(); one = connect()\n"
        "one.sendall(frame('curl', 'stream', 'stream', '-sS', '-o', 'f', URL + '/ok'))\n"
        "read(one); one.sendall(frame('ok')); read(one)\n"
        f"one.sendmsg([frame('ok')], rights([{expression}])); print(read(one)[3].decode())"
    )
    assert why in talk(session, code).text


def test_an_output_that_never_comes_ends_the_request(session, nothing_left):
    code = (
        "one = connect(); one.sendall(frame('curl', 'stream', 'stream', '-sS', '-o', 'f', URL + '/ok'))\n"
        "read(one); one.sendall(frame('ok')); read(one); one.sendall(frame('ok')); print(read(one))"
    )
    assert talk(session, code).text == "[b'nothing']\n"


def test_a_hundred_calls_at_once_are_all_answered(session, nothing_left):
    ran = session.run("for i in $(seq 100); do curl -sS -o p$i $U/ok & done; wait; cat p* | wc -c", timeout_s=60)
    assert (ran.text, ran.stderr) == ("60000\n", b"")


def test_connections_that_say_nothing_do_not_stop_the_others(session, nothing_left):
    code = "held = [connect() for _ in range(60)]; print(os.system(f'curl -sS -o f {URL}/ok'))"
    assert talk(session, code).text == "0\n"


def test_a_megabyte_of_arguments_is_refused_by_the_shim(session, nothing_left):
    ran = session.run("curl -sS -o f $(for i in $(seq 10); do printf 'http://127.0.0.1/%0100000d ' 1; done); echo $?")
    assert (ran.text, ran.stderr) == ("2\n", b"curl: (sandbox) the arguments have more than 258,048 bytes\n")


def test_arguments_that_are_not_utf8_are_refused(session, nothing_left):
    ran = session.run("curl -sS -o $'\\xff\\xfe' $U/ok; echo $?")
    assert (ran.text, ran.stderr) == ("2\n", b"curl: (sandbox) the arguments are not UTF-8\n")


def test_a_full_file_system_is_said_to_be_full(make_session, site):
    session = make_session(site, limits__tmpfs=4 << 20)
    ran = session.run("curl -sS -o /tmp/f $U/big/8; echo $?; rm /tmp/f; curl -sS -o /tmp/f $U/ok; wc -c < /tmp/f")
    assert (ran.text, ran.stderr) == ("23\n600\n", b"curl: (sandbox) cannot write /tmp/f: No space left on device\n")


def test_an_output_that_is_swapped_after_the_look_is_not_followed(session, nothing_left):
    code = (
        "open('target', 'w').write('kept'); one = connect()\n"
        "one.sendall(frame('curl', 'stream', 'stream', '-sS', '-o', 'f', URL + '/ok'))\n"
        "read(one); one.sendall(frame('ok')); print(read(one)[0])"
    )
    assert talk(session, code).text == "b'open'\n"
    shim = session.run("rm -f f target; echo kept > target; ln -s target f; curl -sS -o f $U/ok; cat target")
    assert shim.text == "kept\n"


def test_the_brokers_address_cannot_be_taken(session):
    code = "one = socket.socket(socket.AF_UNIX)\ntry: one.bind('\\0sandboxmcp/broker')\nexcept OSError as error: print(error.errno)"
    assert talk(session, code).text == "98\n"


def test_no_item_holds_the_listening_socket(session):
    code = (
        "import os, socket\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: one = socket.socket(fileno=os.dup(int(fd)))\n"
        "    except OSError: continue\n"
        "    if one.getsockname() == b'\\0sandboxmcp/broker': print(fd)"
    )
    assert session.run(code, "python").text == ""
