"""Ways out to the network, the hypervisor and servers of the host (cases 9-11 and 13)."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.sandbox.seccomp import MACHINES

SECRET = b"a secret of the host\n"


@contextlib.contextmanager
def listening(family: int, address: Any) -> Iterator[tuple[socket.socket, list[object]]]:
    """A server of the host that answers every connection with the secret, and the list of those who came."""
    came: list[object] = []
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind(address)
        server.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    came.append(True)
                    with connection, contextlib.suppress(OSError):
                        connection.recv(1000)
                        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + SECRET)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server, came
        finally:
            server.shutdown(socket.SHUT_RDWR)
            if os.path.exists(str(address).replace("\0", "@")):
                os.unlink(str(address))


def test_no_server_of_the_host_is_reached_by_python(refused):
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as (server, came):
        port = server.getsockname()[1]
        tried = {
            "tcp": f"connect(socket.AF_INET, ('127.0.0.1', {port}))",
            "urllib": f"__import__('urllib.request').request.urlopen('http://127.0.0.1:{port}/', timeout=5).read()",
            "udp": "connect(socket.AF_INET, ('192.0.2.1', 53), socket.SOCK_DGRAM)",
        }
        found = refused(tried, perhaps={"udp"})
        # Not loopback: in our kernels the hint (kernels/guest/network_hint.py) speaks before the wall does.
        assert (found["tcp"], found["udp"], len(came)) == ("ECONNREFUSED", "EPERM", 2)


ROUND_THE_COURTESY = """
import errno, socket
for attempt in (
    lambda: socket.create_connection(("192.0.2.1", 80), 5),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 53)),
    lambda: socket.getaddrinfo("example.com", 80),
):
    try:
        print("reached", attempt())
    except socket.gaierror:
        print("gaierror")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def test_the_wall_stands_where_the_hint_is_not(inside):
    """Audit hooks end at exec: a child interpreter has none."""
    ran = inside.run(f"import subprocess, sys\nsubprocess.run([sys.executable, '-I', '-c', {ROUND_THE_COURTESY!r}])\nNone")
    assert ran.text.split() == ["ENETUNREACH", "ENETUNREACH", "gaierror"]


CLIENTS = {
    "bash": "exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3; cat <&3",
    "curl": "curl -sS -m 5 http://127.0.0.1:{port}/",
    "wget": "wget -q -T 5 -t 1 -O - http://127.0.0.1:{port}/",
    "perl": """perl -MIO::Socket -e '$s = IO::Socket::INET->new("127.0.0.1:{port}") or die; print $s "x\\n"; print <$s>'""",
    "node": """node -e "fetch('http://127.0.0.1:{port}/').then(r=>r.text()).then(console.log,()=>process.exit(1))" """,
    "git": "git ls-remote http://127.0.0.1:{port}/x.git; test $? = 0",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_no_client_program_reaches_a_server_of_the_host(attempt, client):
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not installed")
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as (server, came):
        both = attempt(CLIENTS[client].replace("{port}", str(server.getsockname()[1])), "shell")
        came_from_outside = len(came)
    assert came_from_outside >= 1
    assert (SECRET in both.inside.stdout, both.inside.outcome.status, len(came)) == (False, "failed", came_from_outside)


def test_the_sandbox_has_loopback_and_no_other_interface(attempt):
    both = attempt("import socket; print([name for _, name in socket.if_nameindex()])")
    assert (both.outside.stdout != both.inside.text, both.inside.text) == (True, "['lo']\n")


def test_an_abstract_socket_of_the_host_is_not_there(refused):
    name = f"\0sandboxmcp-{secrets.token_hex(4)}"
    with listening(socket.AF_UNIX, name) as (_, came):
        found = refused({"abstract": f"connect(socket.AF_UNIX, {name!r})"})
        assert (found, len(came)) == ({"abstract": "ECONNREFUSED"}, 1)


def test_a_path_socket_of_the_host_is_not_there(refused, tmp_path):
    with listening(socket.AF_UNIX, str(tmp_path / "agent.sock")) as (_, came):
        found = refused({"path": f"connect(socket.AF_UNIX, {str(tmp_path / 'agent.sock')!r})"})
        assert (found, len(came)) == ({"path": "ENOENT"}, 1)


def test_a_socket_of_the_host_in_the_workspace_is_covered(make_inside):
    own = make_inside()
    connect = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('fsmonitor.ipc')"
    with listening(socket.AF_UNIX, str(own.workspace / "fsmonitor.ipc")) as (_, came):
        subprocess.run([sys.executable, "-c", connect], cwd=own.workspace, check=True)
        assert len(came) == 1
        assert "ConnectionRefusedError" in own.run(connect).stderr.decode()
        assert len(came) == 1


def test_a_socket_that_appears_after_the_start_is_covered_for_the_next_script(make_inside):
    own = make_inside()
    connect = "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('late.sock')"
    assert own.run("print(1)").text == "1\n"
    with listening(socket.AF_UNIX, str(own.workspace / "late.sock")) as (_, came):
        subprocess.run([sys.executable, "-c", connect], cwd=own.workspace, check=True)
        assert ("ConnectionRefusedError" in own.run(connect).stderr.decode(), len(came)) == (True, 1)
        first = own.runner.running
        assert (own.run("print(2)").text, own.runner.running is first) == ("2\n", True)


def test_no_socket_lies_anywhere_in_the_mount_tree(inside):
    code = (
        "import os, stat\n"
        "for folder, folders, files in os.walk('/'):\n"
        "    folders[:] = [name for name in folders if os.path.join(folder, name) not in ('/proc', '/usr')]\n"
        "    for name in files:\n"
        "        path = os.path.join(folder, name)\n"
        "        if stat.S_ISSOCK(os.lstat(path).st_mode): print(path)\n"
        "print(*(path for path in ('/run', '/var/run') if os.path.exists(path) and os.listdir(path)))"
    )
    assert inside.run(code).text == "\n"


def test_only_harmless_socket_families_can_be_made(refused):
    tried = {
        "vsock": "socket.socket(40, socket.SOCK_STREAM).close()",
        "alg": "socket.socket(38, socket.SOCK_SEQPACKET).close()",
        "packet": "socket.socket(17, socket.SOCK_RAW, 0).close()",
        "bluetooth": "socket.socket(31, socket.SOCK_RAW, 1).close()",
        "can": "socket.socket(29, socket.SOCK_RAW, 1).close()",
        "netlink audit": "socket.socket(16, socket.SOCK_RAW, 9).close()",
        "netlink connector": "socket.socket(16, socket.SOCK_RAW, 11).close()",
        "netlink uevent": "socket.socket(16, socket.SOCK_RAW, 15).close()",
    }
    lacking = {"vsock", "alg", "packet", "bluetooth", "can", "netlink audit", "netlink connector"}
    assert refused(tried, perhaps=lacking) == dict.fromkeys(tried, "EAFNOSUPPORT")


def test_raw_and_ping_sockets_are_refused(refused):
    tried = {"raw": "socket.socket(2, socket.SOCK_RAW, 1).close()", "raw6": "socket.socket(10, socket.SOCK_RAW, 58).close()"}
    found = refused(tried, perhaps=set(tried))
    assert found == dict.fromkeys(tried, "EPERM")


def test_a_family_in_the_high_half_of_the_argument_does_not_pass(refused):
    """The filter reads 32 bits of a 64-bit register; the kernel's socket(2) takes an int, so both see the same family."""
    number = MACHINES[platform.machine()].numbers["socket"]
    tried = {
        "vsock": f"os.close(call({number}, (7 << 32) | 40, 1, 0))",
        "netlink": f"os.close(call({number}, 16, 3, (1 << 32) | 15))",
    }
    assert refused(tried, perhaps={"vsock"}) == dict.fromkeys(tried, "EAFNOSUPPORT")


def test_what_programs_need_of_sockets_still_works(inside):
    code = (
        "import socket\na, b = socket.socketpair()\nserver = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname())\nprint(socket.socket(16, 3, 0).fileno() > 0)"
    )
    assert inside.run(code).text == "True\n"


def test_the_hosts_own_view_is_unchanged(inside):
    """A sandbox brings up its own loopback; the host's interfaces and routes stay as they were."""
    before = Path("/proc/net/route").read_text() if os.path.exists("/proc/net/route") else ""
    inside.run("ip link add x type dummy; ip route flush all; true", "shell")
    assert (Path("/proc/net/route").read_text() if before else "") == before
