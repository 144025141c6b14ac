"""A site on loopback that counts who comes, an authority of its own for TLS, and sandboxes whose broker may reach it."""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.broker.broker import make_broker
from sandboxmcp.policy.engine import load_engine

HELLO = b"hello\n" * 100
MEGABYTE = 1 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by path."""

    protocol_version = "HTTP/1.1"
    server: Site

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.server.seen.append(Seen(self.command, self.path, dict(self.headers), self.rfile.read(length)))
        bare = self.path.partition("?")[0]
        name, _, rest = bare.lstrip("/").partition("/")
        with contextlib.suppress(OSError):
            getattr(self, f"say_{name}", self.say_missing)(rest)

    do_HEAD = do_POST = do_DELETE = do_GET

    def reply(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        for key, value in {"Content-Length": str(len(body)), "Content-Type": "text/plain", **given}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def say_ok(self, _rest: str) -> None:
        self.reply(HELLO)

    def say_file(self, _rest: str) -> None:
        self.reply(HELLO)

    def say_empty(self, _rest: str) -> None:
        self.reply(b"")

    def say_headers(self, _rest: str) -> None:
        self.reply(json.dumps(dict(self.headers)).encode())

    def say_body(self, _rest: str) -> None:
        self.reply(self.server.seen[-1].body)

    def say_big(self, megabytes: str) -> None:
        self.reply(b"x" * (int(megabytes) * MEGABYTE))

    def say_missing(self, _rest: str) -> None:
        self.reply(b"not here", 404)

    def say_redirect(self, rest: str) -> None:
        self.reply(b"elsewhere", 302, Location=self.server.targets.get(rest, f"/{rest}"))

    def say_loop(self, _rest: str) -> None:
        self.reply(b"", 302, Location="/loop")

    def say_busy(self, times: str) -> None:
        busy = sum(seen.path == self.path for seen in self.server.seen) <= int(times)
        self.reply(b"busy" if busy else HELLO, 503 if busy else 200)

    def say_slow(self, _rest: str) -> None:
        self._without_length()
        while not self.server.ending.wait(0.05):
            self.wfile.write(b"z" * 10)
            self.wfile.flush()

    def say_endless(self, _rest: str) -> None:
        self._without_length()
        while True:
            self.wfile.write(b"y" * 65536)

    def _without_length(self) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True


@dataclass
class Seen:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Authority:
    """A certificate authority for 127.0.0.1, and for the hosts that the shipped packs name."""

    certificate: Path
    chain: Path
    key: Path


class Site(http.server.ThreadingHTTPServer):
    """A running server."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int] = ("127.0.0.1", 0), authority: Authority | None = None, handler: Any = Handler
    ) -> None:
        super().__init__(address, handler)
        self.seen: list[Seen] = []
        self.connections = 0
        self.targets: dict[str, str] = {}
        self.ending = threading.Event()
        self._context = None
        if authority is not None:
            self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._context.load_cert_chain(authority.chain, authority.key)
        self.url = f"http{'s' if authority else ''}://{address[0]}:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def get_request(self) -> Any:
        connection, address = super().get_request()
        self.connections += 1
        return connection, address

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._context is not None:
            try:
                request = self._context.wrap_socket(request, server_side=True)
            except OSError:
                return
        super().finish_request(request, client_address)

    def handle_error(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        self.ending.set()
        self.shutdown()
        self.server_close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Made by openssl, which is quicker than shipping one that expires."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("authority")
    hosts = ["pypi.org", "registry.npmjs.org", "github.com", "api.github.com"]
    names = ",".join(["subjectAltName=IP:127.0.0.1", *(f"DNS:{host}" for host in hosts)])
    (folder / "extensions").write_text(f"basicConstraints=critical,CA:FALSE\n{names}\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for arguments in (
        ["req", "-x509", *key, "-days", "2", "-keyout", "authority.key", "-out", "authority.pem", "-subj", "/CN=sandboxmcp tests"],
        ["req", "-new", *key, "-keyout", "key.pem", "-out", "request.pem", "-subj", "/CN=site"],
        ["x509", "-req", "-in", "request.pem", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2",
         "-extfile", "extensions", "-out", "chain.pem"],
    ):  # fmt: skip
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    return Authority(folder / "authority.pem", folder / "chain.pem", folder / "key.pem")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def make_site(authority: Authority) -> Iterator[Callable[..., Site]]:
    """Makes more of them; `tls=True` for one with the tests' own authority."""
    made: list[Site] = []

    def make(host: str = "127.0.0.1", *, tls: bool = False, handler: Any = Handler) -> Site:
        made.append(Site((host, 0), authority if tls else None, handler))
        return made[-1]

    yield make
    for one in made:
        one.close()


@dataclass
class Session:
    """A sandbox with a broker, and what it leaves behind."""

    inside: Any
    site: Site
    known: set[str] = field(default_factory=set)

    @property
    def workspace(self) -> Path:
        return self.inside.workspace

    def run(self, command: str, language: str = "shell", timeout_s: float = 30.0) -> Any:
        return self.inside.run(command.replace("$U", self.site.url), language, timeout_s)

    def log(self) -> list[dict[str, Any]]:
        file = self.inside.settings.data_dir / "policy.log"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def files(self) -> list[str]:
        """What is new in the workspace since the last look."""
        there = {str(path.relative_to(self.workspace)) for path in self.workspace.rglob("*")}
        new, self.known = sorted(there - self.known), there
        return new


@pytest.fixture(scope="module")
def make_session(make_inside: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Session]]:
    """Sandboxes whose broker may reach 127.0.0.1; keyword arguments are settings, `resolver` answers instead of the machine's."""

    def make(
        site: Site, packs: tuple[str, ...] = ("default",), resolver: Any = None, environment: Any = None, **flags: Any
    ) -> Session:
        more = {} if resolver is None else {"resolver": resolver}

        def broker(settings: Any) -> Any:
            programs = load_engine(packs).brokers()
            return make_broker(settings, programs, "tests", environment=environment or {}, **more)

        defaults = {"network__allow_private": ["127.0.0.1"], "data_dir": str(tmp_path_factory.mktemp("data"))}
        made.append(make_inside(broker, **{**defaults, **flags}))
        return Session(made[-1], site)

    made: list[Any] = []
    yield make
    for one in made:
        one.wait(one.runner.close())


@pytest.fixture(scope="module")
def session(make_session: Callable[..., Session], site: Site) -> Session:
    """One that the tests of a module share."""
    return make_session(site)
