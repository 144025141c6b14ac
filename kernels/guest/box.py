"""The first process in the box of a brokered program: a proxy's address made inside, the program run on it, its results sent
back.

    python -I -S box.py FD        FD: a socket to the host; first message: JSON {argv, limits, environment, results, lines}

It listens on loopback of the box's own network namespace and passes the listening socket to the host, which accepts there: the
one way out, and no process of ours relays. Then it runs the program, and at its success writes what lies in `results` to the
host as a tar archive, through the descriptor that comes beside the first message. Ends with the program's exit code.
"""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import IO

_MOST_LINE = 64 << 10


def main() -> int:
    """Carry out the one order."""
    host = socket.socket(fileno=int(sys.argv[1]))
    host.set_inheritable(False)
    message, fds, _, _ = socket.recv_fds(host, 1 << 20, 1)
    order = json.loads(message)
    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    socket.send_fds(host, [b"listening"], [listener.fileno()])
    listener.close()
    variables = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
    environment = {**os.environ, **order["environment"], **dict.fromkeys(variables, address), "NO_PROXY": "", "no_proxy": ""}
    if order["results"]:
        os.mkdir(order["results"])
    code = run(order["argv"], environment, order["lines"])
    if code == 0 and fds:
        code = subprocess.run(["tar", "-c", "-f", "-", "-C", order["results"], "."], stdout=fds[0], check=False).returncode
    return code


def run(argv: list[str], environment: dict[str, str], lines: list[str]) -> int:
    """The program's exit code, as a shell gives it."""
    try:
        program = subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE if lines else subprocess.DEVNULL)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return 127
    if lines:
        threading.Thread(target=feed, args=(program, program.stdin, lines), daemon=True).start()
    code = program.wait()
    return code if code >= 0 else 128 - code


def feed(program: subprocess.Popen[bytes], stdin: IO[bytes], lines: list[str]) -> None:
    """Pass our stdin on. Its first lines must be allowed ones; after one that matches the last pattern, packets follow.

    Packets alone (gitprotocol-common(5), pkt-line): where a server speaks an old protocol, git's helper falls back to reading
    commands, of which `push` and `get URL FILE` are two. None begins with the four hexadecimal digits of a packet's length, and
    one that it does not know ends it.
    """
    with stdin as sink, open(0, "rb", buffering=0, closefd=False) as source:
        line = b""
        while not re.fullmatch(lines[-1], line.decode(errors="replace")):
            line = read_line(source)
            if not line:
                return
            if not any(re.fullmatch(pattern, line.decode(errors="replace")) for pattern in lines):
                refuse(program)
                return
            sink.write(line + b"\n")
            sink.flush()
        first = read_exactly(source, 4)
        if first and not re.fullmatch(rb"[0-9a-fA-F]{4}", first):
            refuse(program)
            return
        sink.write(first)
        sink.flush()
        while piece := source.read(1 << 16):
            sink.write(piece)
            sink.flush()


def refuse(program: subprocess.Popen[bytes]) -> None:
    """End the program and say why."""
    print("this is not allowed here: only fetching is", file=sys.stderr)
    program.terminate()


def read_exactly(source: FileIO, count: int) -> bytes:
    """So many bytes, fewer only at the end."""
    got = b""
    while len(got) < count and (piece := source.read(count - len(got))):
        got += piece
    return got


def read_line(source: FileIO) -> bytes:
    """One line without its end, read a byte at a time: what follows the last one is not ours to read ahead."""
    line = b""
    while len(line) < _MOST_LINE and (letter := source.read(1)) not in (b"", b"\n"):
        line += letter
    return line


if __name__ == "__main__":
    sys.exit(main())
