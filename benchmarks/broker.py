"""What the broker costs: a brokered curl beside a bare one, small and 50 MB, as ratios; and where the time of a small one goes.

    python benchmarks/broker.py [--rounds N]

Every round measures each case once, in turn, so that a busy minute hits all of them. Figures are medians; trust the ratios.
P is a bare `python -c pass` of the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import http.server
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sandboxmcp.broker.broker import make_broker
from sandboxmcp.core.model import Script
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.runner import Runner
from sandboxmcp.kernels.sandbox_session import RunSession
from sandboxmcp.policy.engine import load_engine

_BIG = b"x" * 50_000_000
_SMALL = b"hello\n" * 100
_RATIOS = (
    ("shim alone (a refusal)", "P"),
    ("brokered curl, small", "bare curl, small"),
    ("brokered curl, small", "P"),
    ("brokered wget, small", "bare wget, small"),
    ("brokered curl, 50 MB", "bare curl, 50 MB"),
)


class Server(http.server.BaseHTTPRequestHandler):
    """Answers with one of two bodies."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        body = _BIG if self.path == "/big" else _SMALL
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Bench:
    """Seconds by case."""

    def __init__(self, session: RunSession, url: str, folder: Path) -> None:
        self.session = session
        self.url = url
        self.folder = folder
        self.seconds: dict[str, list[float]] = {}

    async def bare(self, case: str, *command: str) -> None:
        await self._time(case, lambda: asyncio.to_thread(subprocess.run, command, cwd=self.folder, check=True))

    async def inside(self, case: str, command: str, shell_s: float) -> None:
        """The same inside; what a script costs that does nothing is taken off."""

        async def run() -> None:
            outcome = await self.session.run(Script("bench", "shell", command, 60))
            for stream in (outcome.stdout, outcome.stderr):
                if stream is not None:
                    stream.path.unlink()

        await self._time(case, run)
        self.seconds[case][-1] -= shell_s

    async def _time(self, case: str, work: Callable[[], Awaitable[object]]) -> None:
        started = time.perf_counter()
        await work()
        self.seconds.setdefault(case, []).append(time.perf_counter() - started)

    async def round(self) -> None:
        small, big = f"{self.url}/small", f"{self.url}/big"
        await self.bare("P", sys.executable, "-c", "pass")
        await self.inside("script", "true", 0.0)
        shell_s = self.seconds["script"][-1]
        await self.bare("bare curl, small", "/usr/bin/curl", "-sS", "-o", "bare", small)
        await self.inside("brokered curl, small", f"curl -sS -o f {small}", shell_s)
        await self.bare("bare wget, small", "/usr/bin/wget", "-q", "-O", "bare", small)
        await self.inside("brokered wget, small", f"wget -q -O f {small}", shell_s)
        await self.inside("shim alone (a refusal)", "curl -sS", shell_s)
        await self.bare("bare curl, 50 MB", "/usr/bin/curl", "-sS", "-o", "bare", big)
        await self.inside("brokered curl, 50 MB", f"curl -sS -o f {big}", shell_s)

    def show(self) -> None:
        median = {case: statistics.median(times) for case, times in self.seconds.items()}
        for case, times in self.seconds.items():
            print(f"{case:26} {median[case] * 1e3:8.1f} ms (best {min(times) * 1e3:.1f})")
        for case, to in _RATIOS:
            print(f"{case:26} {median[case] / median[to]:8.2f} x {to}")


async def measure(rounds: int) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("workspace", "captures"):
            (folder / part).mkdir()
        flags = {"workspace": str(folder / "workspace"), "data_dir": str(folder / "data"), "network.allow_private": ["127.0.0.1"]}
        settings = load_settings({**flags, "network.bytes": "64GiB"}, {})
        broker = make_broker(settings, load_engine().brokers(), "bench")
        runner = Runner(settings, folder / "captures", broker)
        async with runner.session() as session:
            bench = Bench(session, f"http://127.0.0.1:{server.server_port}", folder)
            for _ in range(rounds):
                await bench.round()
        await runner.close()
        if broker is not None:
            broker.close()
    bench.show()
    server.shutdown()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--rounds", type=int, default=15)
    asyncio.run(measure(arguments.parse_args().rounds))


if __name__ == "__main__":
    main()
