"""What the sandbox adds to each language: its example through a session beside the same command line run bare.

    python benchmarks/languages.py [--rounds N] [--tool-folders A,B]

Both sides compile where the language is compiled. Every round runs each side once, in turn, so that a busy minute hits both.
Figures are medians; trust the ratios. A language that nothing runs here is named and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from sandboxmcp.core.model import Script
from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.settings import load_settings
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.kernels.runner import Runner
from sandboxmcp.kernels.runtimes import NotInstalled
from sandboxmcp.kernels.sandbox_session import RunSession


def guest_commands() -> Any:
    """The guest's own module that makes command lines, so that both sides run the same."""
    spec = importlib.util.spec_from_file_location("commands", data_folder("kernels") / "guest" / "commands.py")
    if spec is None or spec.loader is None:
        raise SystemExit("kernels/guest/commands.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bare(table: dict[str, Any] | None, code: str, folder: Path) -> float:
    """Seconds of the interpreter alone, started as the guest starts it; without a table it is Python's."""
    started = time.perf_counter()
    if table is None:
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, cwd=folder)
    else:
        with tempfile.TemporaryDirectory() as base:
            argv, stdin = guest_commands().prepare(table, code.encode(), os.path.join(base, "script"))
            subprocess.run(argv, stdin=stdin, check=True, stdout=subprocess.DEVNULL, cwd=folder)
            if stdin is not None:
                os.close(stdin)
    return time.perf_counter() - started


async def inside(session: RunSession, language: str, code: str) -> float:
    """Seconds of the same as an item of a session, whose spare kernel is ready as it is between an agent's calls."""
    await session._pool.spare_ready()
    started = time.perf_counter()
    outcome = await session.run(Script("bench", language, code, 120))
    taken = time.perf_counter() - started
    if outcome.status == "skipped":
        raise NotInstalled(str(outcome.reasons))
    if outcome.status != "ok":
        raise SystemExit(f"{language}: {outcome.status} {outcome.reasons}")
    return taken


async def measure(session: RunSession, language: str, rounds: int, folder: Path) -> tuple[float, float]:
    """Median seconds bare and inside; the first round of each fills caches and does not count."""
    code = tomllib.loads((data_folder("kernels") / language / "example.toml").read_text())["code"]
    known = script_languages().get(language)
    await inside(session, language, code)
    table = None if known is None else (await session._runtimes.find(known)).table()
    pairs = [(bare(table, code, folder), await inside(session, language, code)) for _ in range(rounds + 1)][1:]
    outside, within = zip(*pairs, strict=True)
    return statistics.median(outside), statistics.median(within)


async def main(rounds: int, tool_folders: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as base:
        workspace, captures = Path(base, "workspace"), Path(base, "captures")
        workspace.mkdir()
        captures.mkdir()
        runner = Runner(load_settings({"workspace": str(workspace), "tool_folders": tool_folders}), captures)
        async with runner.session() as session:
            print(f"{'language':<12}{'bare ms':>10}{'inside ms':>11}{'ratio':>8}{'added ms':>10}")
            for language in ("python", *script_languages()):
                try:
                    outside, within = await measure(session, language, rounds, workspace)
                except NotInstalled as missing:
                    print(f"{language:<12}  not here: {missing.what}")
                    continue
                added = (within - outside) * 1000
                print(f"{language:<12}{outside * 1000:>10.1f}{within * 1000:>11.1f}{within / outside:>8.2f}{added:>10.1f}")
        await runner.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tool-folders", default="")
    given = parser.parse_args()
    asyncio.run(main(given.rounds, given.tool_folders))
