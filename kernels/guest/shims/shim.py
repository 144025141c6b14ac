"""What stands in for curl, wget and the other brokered programs on PATH: it asks the host's broker, and opens files for it.

Started once for each call, by start.py, so it imports next to nothing: `_socket` alone starts in half the time of `socket`, and
`os` costs an eighth of the whole. Frames and operations are those of sandboxmcp/broker/frames.py. It runs with the script's
own rights and is trusted with nothing.
"""

from __future__ import annotations

import _socket
import _stat as stat
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

ADDRESS = b"\0sandboxmcp/broker"
"""Abstract: known only in this sandbox's network namespace, and nobody can put another in its place."""
VERSION = "this {0} is sandboxmcp's: the real one runs outside, quietly, into a file\n"
MOST_BYTES = 256 << 10
TRIES = 1000


def encoded(word: str) -> bytes:
    """A word of the command line as its bytes."""
    return word.encode(sys.getfilesystemencoding(), "surrogateescape")


def parent_of(path: bytes) -> bytes:
    """The folder that a path lies in; empty for the working folder."""
    head, slash, _ = path.rpartition(b"/")
    return head or slash


def is_folder(path: bytes) -> bool:
    """Whether there is a folder."""
    try:
        return stat.S_ISDIR(posix.stat(path).st_mode)
    except OSError:
        return False


def kind_of(fd: int) -> bytes:
    """What a standard stream is: `file`, `null`, or `stream`."""
    try:
        status = posix.fstat(fd)
    except OSError:
        return b"stream"
    if stat.S_ISREG(status.st_mode):
        return b"file"
    null = posix.stat("/dev/null")
    return b"null" if stat.S_ISCHR(status.st_mode) and status.st_rdev == null.st_rdev else b"stream"


def send(broker: _socket.socket, *fields: bytes, fds: tuple[int, ...] = ()) -> None:
    """One frame, with descriptors beside its first byte."""
    payload = b"\0".join(fields)
    data = len(payload).to_bytes(4, "big") + payload
    rights = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
    sent = broker.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)] if fds else [])
    while sent < len(data):
        sent += broker.send(data[sent:])


def receive(broker: _socket.socket) -> list[bytes]:
    """One frame, as fields. A broker that has gone ends the program."""
    head = exactly(broker, 4)
    return exactly(broker, int.from_bytes(head, "big")).split(b"\0")


def exactly(broker: _socket.socket, count: int) -> bytes:
    """So many bytes."""
    got = b""
    while len(got) < count:
        piece = broker.recv(count - len(got))
        if not piece:
            fail(56, "the broker has ended the connection")
        got += piece
    return got


def fail(code: int, why: str) -> NoReturn:
    """End with a sentence on stderr."""
    sys.stderr.write(f"{PROGRAM}: (sandbox) {why}\n")
    sys.stderr.flush()
    posix._exit(code)


def problem_with(path: bytes) -> str:
    """Why something that is already there may not be written over; empty when it may."""
    mode = posix.lstat(path).st_mode
    if stat.S_ISREG(mode):
        return "" if posix.access(path, posix.W_OK) else "no right to write it"
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))
    return f"it is {next((name for is_kind, name in kinds if is_kind(mode)), 'a device')}, not a regular file"


def check(path: bytes, existing: bytes, folders: bytes) -> tuple[bytes, ...]:
    """Whether the output could be written: asked before anything goes out."""
    try:
        problem = problem_with(path)
        return (b"no", problem.encode()) if problem else (b"ok", b"there")
    except FileNotFoundError:
        parent = parent_of(path) or b"."
        if folders:
            while parent and not is_folder(parent):
                parent = parent_of(parent)
            parent = parent or b"."
        if not is_folder(parent):
            return b"no", b"the folder does not exist; make it first"
        return (b"ok",) if posix.access(parent, posix.W_OK | posix.X_OK) else (b"no", b"no right to write in the folder")


def open_output(path: bytes, existing: bytes, folders: bytes) -> int:
    """A descriptor open for writing only. Links are not followed at the last step, and a FIFO does not block."""
    if folders and parent_of(path):
        make_folders(parent_of(path))
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_NONBLOCK | posix.O_NOCTTY | posix.O_NOFOLLOW | posix.O_CLOEXEC
    if existing == b"replace":
        return posix.open(path, flags | posix.O_TRUNC, 0o666)
    for number in range(TRIES):
        try:
            return posix.open(path + b".%d" % number if number else path, flags | posix.O_EXCL, 0o666)
        except FileExistsError:
            continue
    raise FileExistsError(17, "a thousand files of this name are there already")


def obey(broker: _socket.socket, operation: bytes, arguments: list[bytes]) -> None:
    """Carry out one operation of the broker's and answer it."""
    try:
        if operation == b"check":
            send(broker, *check(*arguments))
        elif operation == b"stdout":
            send(broker, b"ok", fds=(1,))
        elif operation in (b"open", b"input"):
            fd = open_output(*arguments) if operation == b"open" else posix.open(arguments[0], posix.O_RDONLY | posix.O_NONBLOCK)
            send(broker, b"ok", fds=(fd,))
            posix.close(fd)
        elif operation == b"streams":
            send(broker, b"ok", fds=(0, 1, 2))
        elif operation == b"unpack":
            fd = unpacker(arguments[0])
            send(broker, b"ok", fds=(fd,))
            posix.close(fd)
        elif operation == b"unpacked":
            _, status = posix.waitpid(-1, 0)
            send(broker, *((b"ok",) if status == 0 else (b"no", b"tar could not unpack it")))
        elif operation == b"remove":
            posix.unlink(arguments[0])
            send(broker, b"ok")
        else:
            fail(2, "the broker asks for something unknown")
    except OSError as error:
        send(broker, b"no", (error.strerror or str(error)).encode())


def make_folders(path: bytes) -> None:
    """The folder and those above it, where they are missing."""
    import os  # rarely needed, and dear

    os.makedirs(path, exist_ok=True)


def unpacker(folder: bytes) -> int:
    """The writing end of a pipe into a tar that unpacks into a folder, which is made where it is missing."""
    make_folders(folder)
    read, write = posix.pipe2(posix.O_CLOEXEC)
    words = [b"tar", b"-x", b"-f", b"-", b"-C", folder, b"--no-same-owner", b"--no-same-permissions"]
    posix.posix_spawn(b"/usr/bin/tar", words, posix.environ, file_actions=[(posix.POSIX_SPAWN_DUP2, read, 0)])
    posix.close(read)
    return write


def run_locally(argv: list[bytes]) -> NoReturn:
    """Become the real program, which comes after us on PATH."""
    import os

    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    for folder in os.environ.get("PATH", "").split(":"):
        program = os.path.join(folder, PROGRAM)
        if os.path.abspath(folder) != here and posix.access(program, posix.X_OK):
            posix.execve(program, [encoded(PROGRAM), *argv], posix.environ)
    fail(127, "it is not installed")


def main() -> int:
    """Ask, do what is asked in return, end as the real program did."""
    argv = [encoded(word) for word in sys.argv[1:]]
    if PROGRAM in ("curl", "wget") and argv in ([b"--version"], [b"-V"]):
        sys.stdout.write(f"{PROGRAM} (sandboxmcp)\n{VERSION.format(PROGRAM)}")
        return 0
    if sum(len(word) + 1 for word in argv) > MOST_BYTES - 4096:
        fail(2, f"the arguments have more than {MOST_BYTES - 4096:,} bytes")
    broker = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        broker.connect(ADDRESS)
        send(broker, encoded(PROGRAM), kind_of(1), kind_of(2), *argv)
    except OSError:
        fail(7, "there is no network here, and no broker")
    while True:
        operation, *arguments = receive(broker)
        if operation == b"local":
            broker.close()
            run_locally(argv)
        if operation == b"exit":
            code, out, err = arguments
            posix.write(2, err) if err else None
            sys.stdout.buffer.write(out)
            sys.stdout.flush()
            return int(code)
        obey(broker, operation, arguments)


PROGRAM = sys.argv[0].rpartition("/")[2]

if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BrokenPipeError, ConnectionResetError):
        fail(56, "the broker has ended the connection")
