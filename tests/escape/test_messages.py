"""Jupyter messages forged by the script itself, which holds the key and the sockets of its kernel (case 34)."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.render.reasons import said

FORGE = """
import json, os, socket, struct
from IPython import get_ipython
from jupyter_client.session import DELIM
kernel = get_ipython().kernel
session, shell, iopub = kernel.session, kernel.parent.shell_socket, kernel.iopub_socket
ident = kernel._parent_ident["shell"]
asked = json.dumps(kernel.get_parent()["header"], default=str).encode()

def send(header, parent=asked, content=b"{}", metadata=b"{}", key=None, to=shell, first=ident):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    parts = [header, parent, metadata, content]
    signature = session.sign(parts) if key is None else key
    to.send_multipart([*first, DELIM, signature, *parts])

def publish(kind, content=b"{}", parent=asked):
    send({"msg_type": kind}, parent=parent, content=content, to=iopub, first=[b"x"])

def connection(channel):
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            one = socket.socket(fileno=os.dup(fd))
            one.getpeername()
        except OSError:
            continue
        if one.family == socket.AF_UNIX and str(one.getsockname()).endswith(f"-{channel}"):
            one.setblocking(True)
            return one

reply = {"msg_type": "execute_reply", "msg_id": "1"}
"""
"""What the script can do: `send` a signed message, or take the raw `connection` to the host (channel 1 shell, 2 iopub)."""


def test_a_forged_reply_of_a_script_is_only_its_own_word(inside):
    """A script may say that it failed; nothing else is touched, and the next one is answered for itself."""
    ran = inside.run(FORGE + 'send(reply, content=b\'{"status": "error", "ename": "Lie", "evalue": ""}\')')
    assert (ran.outcome.status, inside.run("print('next')").stdout) == ("failed", b"next\n")


BROKEN = {
    "parent is a list": "send(reply, parent=b'[1]')",
    "header is a list": "send(b'[1]')",
    "header is a number": "send(b'1')",
    "header without a type": "send({})",
    "content is a list": "send(reply, content=b'[1]')",
    "content is a number": "send(reply, content=b'1')",
    "json is broken": "send(b'{', content=b'{')",
    "json is not UTF-8": "send(b'\\xff\\xfe')",
    "json is nested 200,000 deep": "send(b'[' * 200_000)",
    "a number with 100,000 digits": "send(reply, content=b'{\"status\": ' + b'9' * 100_000 + b'}')",
    "no signature": "send(reply, key=b'')",
    "a wrong signature": "send(reply, key=b'0' * 64)",
    "a signature twice": "send(reply, key=b'0' * 64); send(reply, key=b'0' * 64)",
    "no delimiter": "shell.send_multipart([*ident, b'x'])",
    "an empty message": "shell.send_multipart([*ident, b''])",
    "too few parts": "shell.send_multipart([*ident, DELIM, b'x', b'y'])",
    "a date that is none": "send({**reply, 'date': 'yesterday'}, parent=b'{\"date\": 5}')",
}


@pytest.mark.parametrize("forged", BROKEN)
def test_a_broken_message_on_the_shell_channel_changes_nothing(inside, forged):
    ran = inside.run(FORGE + BROKEN[forged] + "\nprint('went on')")
    assert (ran.outcome.status, ran.stdout, inside.run("1").stdout) == ("ok", b"went on\n", b"1\n")


BROKEN_OUTPUT = {
    "parent is a list": "publish('status', parent=b'[1]')",
    "content is a list": "publish('status', b'[1]')",
    "status without a state": "publish('status')",
    "data is a list": "publish('display_data', b'{\"data\": [1]}')",
    "data is missing": "publish('display_data')",
    "an image that is a list": "publish('display_data', b'{\"data\": {\"image/png\": [1]}}')",
    "an image that is no base64": 'publish(\'display_data\', b\'{"data": {"image/png": "\\xc3\\xa4!"}}\')',
    "a lone surrogate": 'publish(\'display_data\', b\'{"data": {"text/html": "\\\\ud800"}}\')',
    "nested 200,000 deep": "publish('display_data', b'[' * 200_000)",
}


@pytest.mark.parametrize("forged", BROKEN_OUTPUT)
def test_a_broken_message_on_the_output_channel_hides_nothing_that_follows(inside, forged):
    code = "\nfrom IPython.display import HTML, display\ndisplay(HTML('<b>kept</b>'))"
    ran = inside.run(FORGE + BROKEN_OUTPUT[forged] + code)
    assert ran.outcome.status == "ok"
    assert ran.outcome.artifacts[-1].path.read_bytes() == b"<b>kept</b>"


def test_a_forged_end_hides_nothing_of_the_streams(inside):
    """Streams are pipes of the operating system: what a message says about the end does not cut them."""
    code = (
        FORGE + "send({'msg_type': 'status'}, content=b'{\"execution_state\": \"idle\"}', to=iopub, first=[b'x'])\nprint('after')"
    )
    assert (inside.run(code).stdout, inside.run("print(2)").stdout) == (b"after\n", b"2\n")


def resident() -> int:
    """Bytes of the server's memory now at its highest since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) << 10


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return resident()


GIANT = """
raw = connection({channel})
announced = struct.pack(">BQ", {flags}, {announced})
piece = bytes(1 << 20)
try:
    for _ in range({frames}):
        raw.sendall(announced)
        for _ in range({announced} >> 20):
            raw.sendall(piece)
except OSError as error:
    print(type(error).__name__)
print("sent")
"""


@pytest.mark.parametrize("channel", [1, 2], ids=["shell", "iopub"])
def test_a_frame_of_a_gigabyte_is_refused(inside, channel):
    """ZMTP 3.1, frames: flags (2 long, 1 more to come), size, body. Above the largest message the connection is cut."""
    inside.run("1")
    before = forget_peak()
    ran = inside.run(FORGE + GIANT.format(channel=channel, flags=2, announced=1 << 30, frames=1), timeout_s=2)
    assert ran.outcome.status in ("ok", "timeout", "killed")
    assert (resident() - before < 64 << 20, inside.run("print('next')").stdout) == (True, b"next\n")


def test_what_did_not_come_over_a_cut_connection_is_told(inside):
    ran = inside.run(FORGE + GIANT.format(channel=2, flags=2, announced=1 << 30, frames=1))
    assert said(ran.outcome.reasons) == "what it displayed last did not come, or not whole; save it to a file instead"


@pytest.mark.parametrize("channel", [1, 2], ids=["shell", "iopub"])
def test_a_message_of_endless_frames_does_not_fill_the_servers_memory(inside, channel):
    """Each frame is small enough, and each says that more will come: ZeroMQ holds them all until the last."""
    inside.run("1")
    before = forget_peak()
    ran = inside.run(FORGE + GIANT.format(channel=channel, flags=3, announced=32 << 20, frames=20), timeout_s=2)
    assert ran.outcome.status in ("ok", "timeout", "killed")
    assert resident() - before < 256 << 20


def test_a_connection_that_the_script_cuts_ends_as_an_outcome(inside):
    """Then the host can never be answered: the time limit ends the item."""
    ran = inside.run(FORGE + "for channel in (1, 2): connection(channel).shutdown(2)\nprint('cut')", timeout_s=2)
    assert (ran.outcome.status in ("ok", "timeout", "failed"), ran.stdout) == (True, b"cut\n")
    assert inside.run("print('next')").stdout == b"next\n"


FLOOD = """
taken = connection(1)
held = []
try:
    while True:
        held.append(os.dup(taken.fileno()))
except OSError as error:
    print(error.strerror)
"""


def test_a_kernel_that_runs_out_of_descriptors_ends_as_an_outcome(inside):
    ran = inside.run(FORGE + FLOOD, timeout_s=5)
    assert (ran.stdout, inside.run("print('next')").stdout) == (b"Too many open files\n", b"next\n")
