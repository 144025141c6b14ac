"""A script in a kernel that tries to reach another machine is told in one sentence what to do instead."""

import pytest

ATTEMPTS = {
    "urllib": "import urllib.request\nurllib.request.urlopen('http://example.org')",
    "socket": "import socket\nsocket.socket().connect(('192.0.2.1', 80))",
    "datagram": "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "lookup": "import socket\nsocket.gethostbyname('example.org')",
    "asyncio": "import asyncio\nasyncio.run(asyncio.open_connection('example.org', 80))",
    "in-a-fork": "import os, socket, sys\nif os.fork() == 0:\n    socket.create_connection(('example.org', 80))\nos.wait()",
}
HARMLESS = {
    "loopback": "import socket\ns = socket.create_server(('127.0.0.1', 0))\nsocket.create_connection(s.getsockname())\nprint('ok')",
    "localhost": "import socket\nprint('ok' if socket.getaddrinfo('localhost', 80) else '')",
    "own-name": "import socket\nsocket.getaddrinfo(None, 80)\nsocket.gethostname()\nprint('ok')",
    "unix": "import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind('/tmp/s')\ns.listen()\n"
    "socket.socket(socket.AF_UNIX).connect('/tmp/s')\nprint('ok')",
    "pair": "import socket\na, b = socket.socketpair()\na.send(b'ok\\n')\nprint(b.recv(9).decode())",
    "loop": "import asyncio\nasyncio.new_event_loop().close()\nprint('ok')",
}


@pytest.mark.parametrize("code", ATTEMPTS.values(), ids=ATTEMPTS)
def test_an_attempt_ends_in_the_sentence(inside, code):
    said = inside.run(code).stderr.decode()
    assert "No network in this sandbox" in said and "curl" not in said  # which nothing lets out here


@pytest.mark.parametrize("code", HARMLESS.values(), ids=HARMLESS)
def test_what_stays_inside_works(inside, code):
    ran = inside.run(code)
    assert (ran.outcome.status, ran.stdout.split()) == ("ok", [b"ok"])
