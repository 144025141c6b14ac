"""The shell as people meet it: in a real terminal (tmux), and through a pipe. Waits end on what appears, never on time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_S = 30.0
"""A wait that lasts so long has failed."""


@dataclass(frozen=True)
class Place:
    """A project, a home and a data folder of a test's own."""

    project: Path
    environment: dict[str, str]

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "sandboxmcp", "shell", *arguments]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "project").mkdir()
    root = str(Path(__file__).parents[2])
    ours = {"HOME": str(tmp_path), "SANDBOXMCP_DATA_DIR": str(tmp_path / "data"), "PYTHONPATH": root, "LANG": "C.UTF-8"}
    return Place(tmp_path / "project", {"PATH": os.environ["PATH"], **ours})


@dataclass(frozen=True)
class Said:
    """What a shell under a pipe left."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def pipe(sandbox: None, place: Place) -> Callable[..., Said]:
    """Runs a shell on lines that are piped in."""

    def run(*lines: str, arguments: tuple[str, ...] = ()) -> Said:
        given = "\n".join(lines) + "\n"
        done = subprocess.run(
            place.command(*arguments),
            input=given,
            env=place.environment,
            cwd=place.project,
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


class Talk:
    """A shell under a pipe that is spoken to line by line."""

    def __init__(self, place: Place, *arguments: str) -> None:
        self.process = subprocess.Popen(
            place.command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=place.environment,
            cwd=place.project,
            text=True,
        )

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line: str) -> str:
        """The line that it answers with."""
        self.send(line)
        return self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def close(self) -> int:
        self.process.communicate(timeout=_PATIENCE_S)
        return self.process.returncode


@pytest.fixture
def talk(sandbox: None, place: Place) -> Iterator[Callable[..., Talk]]:
    """Starts shells under a pipe; those that still run are ended."""
    started: list[Talk] = []

    def start(*arguments: str) -> Talk:
        started.append(Talk(place, *arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.close()


_CONTINUED = re.compile(r"\n\.{3,} ")
"""How a line goes on that is longer than the terminal is wide."""


class Terminal:
    """A terminal of 80 × 24 in which a shell runs, driven through a tmux server of its own."""

    def __init__(self, folder: Path, place: Place, term: str, *arguments: str) -> None:
        self._socket = str(folder / "tmux")
        self._place = place
        self._written = self._pipe = -1
        script = f"TERM={term} {shlex.join(place.command(*arguments))}; echo ENDED=$?; read -r _"
        options = ["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"]
        gate = folder / "gate"
        os.mkfifo(gate)
        self.tmux(*options, "-c", str(place.project), f"read -r _ < {gate}; {script}")
        self._follow(folder)
        gate.write_text("\n")  # nothing has run before everything that it writes is followed

    def _follow(self, folder: Path) -> None:
        """Everything that is written to the terminal also comes here, so that one can wait for it."""
        fifo = folder / "written"
        os.mkfifo(fifo)
        self._pipe = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.tmux("pipe-pane", f"cat > {fifo}")

    def tmux(self, *words: str, data: str | None = None) -> str:
        command = ["tmux", "-S", self._socket, *words]
        environment = {**self._place.environment, "TERM": "xterm-256color"}
        return subprocess.run(command, env=environment, input=data, capture_output=True, text=True, check=True).stdout

    def type(self, text: str, *keys: str) -> None:
        """Type a text, then press keys by their tmux names."""
        if text:
            self.tmux("send-keys", "-l", "--", text)
        if keys:
            self.tmux("send-keys", *keys)

    def enter(self, line: str) -> None:
        """Type a line, and press Enter once it stands there: until then the prompt of the line before may be seen as the next."""
        self.type(line)
        end = "".join(line.split())[-20:]
        self._until(lambda screen: "".join(_CONTINUED.sub("", screen).split()).endswith(end), f"the typed {end!r}")
        self.type("", "Enter")

    def paste(self, text: str) -> None:
        """As a terminal pastes: in brackets, when the program asked for them."""
        self.tmux("load-buffer", "-", data=text)
        self.tmux("paste-buffer", "-p")

    def screen(self, *, history: bool = False) -> str:
        return self.tmux("capture-pane", "-p", *(["-S", "-"] if history else []))

    def see(self, *texts: str, history: bool = False) -> str:
        """The screen, as soon as all the texts stand on it."""
        return self._until(lambda screen: all(text in screen for text in texts), str(texts), history=history)

    def ready(self, title: str = "terminal") -> None:
        """Wait for a prompt on the last written line."""
        self.see_last(f"{title}>")

    def see_last(self, text: str) -> str:
        """The screen, as soon as its last line that is not empty is the text."""
        return self._until(lambda screen: screen.rstrip().rpartition("\n")[2] == text, f"{text!r} last")

    def _until(self, shows: Callable[[str], bool], what: str, *, history: bool = False) -> str:
        deadline = time.monotonic() + _PATIENCE_S
        while not shows(screen := self.screen(history=history)):
            assert time.monotonic() < deadline, f"never saw {what} but:\n{screen}"
            if select.select([self._pipe], [], [], 1.0)[0]:
                os.read(self._pipe, 1 << 16)
        return screen

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")
        os.close(self._pipe)


@pytest.fixture
def terminal(sandbox: None, place: Place) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals with a shell in each."""
    if shutil.which("tmux") is None:
        if os.environ.get("SANDBOXMCP_SANDBOX") == "required":
            pytest.fail("tmux is not installed", pytrace=False)
        pytest.skip("tmux is not installed")
    opened: list[tuple[Terminal, Path]] = []

    def open_one(*arguments: str, term: str = "xterm-256color") -> Terminal:
        folder = Path(tempfile.mkdtemp(prefix="sbx-tmux-", dir="/tmp"))  # an address of a socket holds 107 bytes
        opened.append((Terminal(folder, place, term, *arguments), folder))
        return opened[-1][0]

    yield open_one
    for one, folder in opened:
        one.close()
        shutil.rmtree(folder)
