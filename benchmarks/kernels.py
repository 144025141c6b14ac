"""What the walls cost: kernels, scripts and capture, each as a ratio to a bare `python -c pass` (P) of the same run.

    python benchmarks/kernels.py [--rounds N]

Every round measures P and each case once, in turn, so that a busy minute hits all of them. Figures are medians; trust the ratios.
The wanted column is what the project promises itself; the line is marked where the run did not reach it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client.manager import start_new_async_kernel

from sandboxmcp.core.model import Script
from sandboxmcp.core.settings import Settings, load_settings
from sandboxmcp.kernels.jupyter.kernelspecs import PREFIX
from sandboxmcp.kernels.jupyter.live_kernel import LiveKernel, Reply
from sandboxmcp.kernels.launcher import Launcher
from sandboxmcp.kernels.runner import Runner
from sandboxmcp.kernels.sandbox_session import RunSession
from sandboxmcp.sandbox.usage import children, memory_of, tree

_GIGABYTE = 1_000_000_000
_WANTED = {
    "warm kernel, `1`": 0.5,
    "fresh Python item, spare ready": 0.5,
    "fresh Python item, no spare": 5.0,
    "fresh shell item": 0.8,
    "first kernel of a session, cold": 25.0,
}
"""Ratios to P, at most."""


@dataclass
class Bench:
    """A running session and the seconds that were measured on it, by case."""

    settings: Settings
    captures: Path
    session: RunSession
    seconds: dict[str, list[float]] = field(default_factory=dict)

    async def time(self, case: str, work: Callable[[], Awaitable[object]]) -> None:
        started = time.perf_counter()
        await work()
        self.seconds.setdefault(case, []).append(time.perf_counter() - started)

    async def script(self, language: str, code: str) -> None:
        outcome = await self.session.run(Script("bench", language, code, 60))
        if outcome.status != "ok":
            raise SystemExit(f"a script of the benchmark ended as {outcome.status}: {outcome.reasons}")
        for stream in (outcome.stdout, outcome.stderr):
            if stream is not None:
                stream.path.unlink()


@asynccontextmanager
async def bare_kernel() -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """An ordinary ipykernel outside any sandbox, asked by jupyter_client alone: what the protocol itself costs here."""
    manager, client = await start_new_async_kernel(kernel_name="python3")
    try:
        yield lambda: client.execute_interactive("1", store_history=False, allow_stdin=False, output_hook=lambda _: None)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


async def one_round(bench: Bench, warm: LiveKernel, ordinary: Callable[[], Awaitable[object]]) -> None:
    """Every case once."""

    async def bare() -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)

    await bench.time("P", bare)
    await bench.time("warm kernel, `1`", lambda: warm.execute("1", Reply()))
    await bench.time("P", bare)
    await bench.time("ordinary ipykernel, no walls, `1`", ordinary)
    pool = bench.session._pool
    await pool.spare_ready()
    await bench.time("fresh Python item, spare ready", lambda: bench.script("python", "1"))
    await pool.spare_ready()
    await pool.close()
    await bench.time("fresh Python item, no spare", lambda: bench.script("python", "1"))
    await pool.spare_ready()
    await bench.time("fresh shell item", lambda: bench.script("shell", "echo 1"))


async def cold(bench: Bench) -> None:
    """A session from nothing to the end of its first script, and the end of a whole sandbox after a kill."""
    runner = Runner(bench.settings, bench.captures)

    async def first() -> None:
        async with runner.session() as session:
            await session.run(Script("bench", "python", "1", 60))

    await bench.time("first kernel of a session, cold", first)
    await runner.close()
    launcher = await Launcher.start(bench.settings)
    await bench.time("whole sandbox gone after a kill", launcher.close)


def gone_after_server_kill(settings: Settings) -> float:
    """Seconds from SIGKILL of a server process until its sandbox's first process has ended."""
    code = (
        "import asyncio, sys, tempfile, pathlib\n"
        "from sandboxmcp.core.settings import load_settings\nfrom sandboxmcp.kernels.launcher import Launcher\n"
        "async def main():\n"
        "    launcher = await Launcher.start(load_settings(flags={'workspace': sys.argv[1]}))\n"
        "    print(launcher.process.init_pid, flush=True)\n    await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    server = subprocess.Popen([sys.executable, "-c", code, str(settings.workspace)], stdout=subprocess.PIPE)
    assert server.stdout is not None
    init = os.pidfd_open(int(server.stdout.readline()))
    started = time.perf_counter()
    server.send_signal(signal.SIGKILL)
    select.select([init], [], [], 10)
    seconds = time.perf_counter() - started
    server.wait()
    os.close(init)
    return seconds


async def memory_per_kernel(bench: Bench, count: int = 6) -> float:
    """MiB of proportional memory that one more kernel adds."""
    launcher = bench.session._launcher
    init = launcher.process.init_pid or 0

    def used() -> int:
        return sum(memory_of(process.pid) for top in children(init) for process in tree(top))

    before = used()
    kernels = [await bench.session._pool._start() for _ in range(count)]
    grown = used() - before
    for kernel in kernels:
        await kernel.forget()
        kernel.capture.discard()
    return grown / count / (1 << 20)


async def gigabyte(bench: Bench) -> tuple[float, float]:
    """MB/s of 1 GB written by a shell script, and by how many MB the server's memory grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    await bench.script("shell", f"head -c {_GIGABYTE} /dev/zero")
    seconds = time.perf_counter() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return _GIGABYTE / 1e6 / seconds, grown * 1024 / 1e6


async def measure(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="kernels-bench-") as folder:
        workspace, captures = Path(folder, "workspace"), Path(folder, "captures")
        workspace.mkdir()
        captures.mkdir()
        settings = load_settings({"workspace": str(workspace)}, environ={"HOME": folder})
        runner = Runner(settings, captures)
        async with runner.session() as session:
            bench = Bench(settings, captures, session)
            await bench.script("python", "1")
            warm = await LiveKernel.start(session._pool._place, captures / "warm", f"{PREFIX}python", mode="session")
            async with bare_kernel() as ordinary:
                for _ in range(rounds):
                    await one_round(bench, warm, ordinary)
            for _ in range(max(3, rounds // 4)):
                await cold(bench)
            await warm.forget()
            report(bench)
            rate, grown = await gigabyte(bench)
            line("1 GB of output", f"{rate:8.1f} MB/s", f"wanted at least 300; server + {grown:.0f} MB, wanted below 20")
            line("memory of one more kernel (PSS)", f"{await memory_per_kernel(bench):8.1f} MiB", "wanted at most 22")
        await runner.close()
        gone = gone_after_server_kill(settings) * 1000
        line("sandbox gone after kill -9 of server", f"{gone:8.1f} ms", "wanted at most 1,000")


def line(case: str, value: str, remark: str) -> None:
    print(f"{case:36} {value}  {remark}")


def report(bench: Bench) -> None:
    bare = statistics.median(bench.seconds["P"])
    for case, seconds in bench.seconds.items():
        median = statistics.median(seconds)
        wanted = _WANTED.get(case)
        verdict = "" if wanted is None else f"wanted at most {wanted:g}" + (" - MISSED" if median / bare > wanted else "")
        spread = f"(min {min(seconds) * 1000:.1f}, n {len(seconds)})"
        line(case, f"{median * 1000:8.1f} ms  {median / bare:6.2f} P", f"{spread}  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    asyncio.run(measure(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
