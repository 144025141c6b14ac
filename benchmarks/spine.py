"""How long the main job takes, as ratios to a bare `python -c pass` of the same run and beside the peer where it is installed.

    python benchmarks/spine.py [--rounds N] [--only NAME]…

PEER names the folder where the peer lies: `npm install node@22 context-mode@1.0.169` was run in it, and better-sqlite3 was rebuilt
for that Node. Figures are medians over all rounds; the contestants take turns, so that a busy minute hits both. Trust the ratios.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from corpus import Language, log_lines
from stdio import Server, ServerFailed

_BATCH = 10
_IDLE_S = 3  # what a server does after it has answered is part of its idle memory
_MARKDOWN_1MB = Language().markdown(1_000_000)


@dataclass(frozen=True)
class Contestant:
    """A server to measure: its command, and how its environment differs from an empty one."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    path: tuple[str, ...]

    @contextmanager
    def project(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """A fresh home and project folder, and the environment that names them."""
        root = Path(tempfile.mkdtemp(prefix="spine-"))
        home, project = root / "home", root / "project"
        home.mkdir()
        project.mkdir()
        environ = {"HOME": str(home), "PATH": os.pathsep.join((*self.path, os.environ["PATH"])), "LANG": "C.UTF-8"}
        try:
            yield project, environ | self.environment
        finally:
            shutil.rmtree(root, ignore_errors=True)

    @contextmanager
    def server(self) -> Iterator[tuple[Server, Path]]:
        with self.project() as (folder, environ), Server(self.command, environ, folder) as server:
            yield server, folder


def start(contestant: Contestant) -> list[float]:
    """Start of the process to the answer to initialize."""
    with contestant.project() as (folder, environ):
        times = []
        for _ in range(6):
            with Server(contestant.command, environ, folder) as server:
                times.append(server.start_s)
    return times[1:]


def execute_python(contestant: Contestant) -> list[float]:
    return _repeated(contestant, "ctx_execute", {"language": "python", "code": "print(1)"}, 15)


def execute_shell(contestant: Contestant) -> list[float]:
    return _repeated(contestant, "ctx_execute", {"language": "shell", "code": "echo 1"}, 15)


def batch_of_echoes(contestant: Contestant) -> list[float]:
    commands = [{"label": f"echo {n}", "command": f"echo hello number {n}"} for n in range(_BATCH)]
    return _repeated(contestant, "ctx_batch_execute", {"commands": commands, "queries": ["hello number"]}, 8)


def batch_of_100_kb(contestant: Contestant) -> list[float]:
    def prepare(folder: Path) -> None:
        for block in range(_BATCH):
            (folder / f"log{block}.txt").write_text(log_lines(block, 1_600))

    commands = [{"label": f"log {n}", "command": f"cat log{n}.txt"} for n in range(_BATCH)]
    return _repeated(contestant, "ctx_batch_execute", {"commands": commands, "queries": ["status ERROR took"]}, 5, prepare)


def index_1_mb(contestant: Contestant) -> list[float]:
    return _index(contestant, _MARKDOWN_1MB, 2)


def index_10_mb(contestant: Contestant) -> list[float]:
    return _index(contestant, Language().markdown(10_000_000), 1)


def _index(contestant: Contestant, text: str, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        with contestant.server() as (server, folder):
            (folder / "text.md").write_text(text)
            server.call("ctx_index", {"content": "# Warm\n\nup", "source": "warm"})
            taken.append(server.call("ctx_index", {"path": str(folder / "text.md"), "source": "text"})[1])
    return taken


def search_10000_chunks(contestant: Contestant) -> list[float]:
    """More than 10,000 sections, so at least as many chunks in either store."""
    language = Language(6)
    with contestant.server() as (server, folder):
        (folder / "corpus.md").write_text(language.markdown(7_400_000))
        said, _ = server.call("ctx_index", {"path": str(folder / "corpus.md"), "source": "corpus"})
        print(f"    {contestant.name} indexed: {' '.join(said.split())[:110]}", flush=True)
        return [server.call("ctx_search", {"queries": [query]})[1] for query in language.queries(40)]


def idle_memory(contestant: Contestant) -> list[float]:
    with contestant.server() as (server, _):
        time.sleep(_IDLE_S)
        return [server.resident_kib() / 1024]


def memory_after_20_executions(contestant: Contestant) -> list[float]:
    with contestant.server() as (server, _):
        for _ in range(20):
            server.call("ctx_execute", {"language": "shell", "code": "echo 1"})
        time.sleep(1)
        return [server.resident_kib() / 1024]


TIMES: dict[str, Callable[[Contestant], list[float]]] = {
    "start to initialize": start,
    "ctx_execute python, warm": execute_python,
    "ctx_execute shell, warm": execute_shell,
    "batch of 10 x echo": batch_of_echoes,
    "batch of 10 x 100 KB": batch_of_100_kb,
    "index 1 MB Markdown": index_1_mb,
    "index 10 MB Markdown": index_10_mb,
    "search in 10,000 chunks": search_10000_chunks,
}
MEMORY: dict[str, Callable[[Contestant], list[float]]] = {
    "idle RSS, whole tree": idle_memory,
    "RSS after 20 executions": memory_after_20_executions,
}


def _repeated(
    contestant: Contestant, tool: str, arguments: dict[str, object], times: int, prepare: Callable[[Path], None] | None = None
) -> list[float]:
    """Seconds of equal calls to one server; the first two warm it and do not count."""
    with contestant.server() as (server, folder):
        if prepare:
            prepare(folder)
        return [server.call(tool, arguments)[1] for _ in range(times + 2)][2:]


def bare_python(_: Contestant | None = None) -> list[float]:
    """The yardstick: this interpreter doing nothing."""
    times = []
    for _n in range(5):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(time.perf_counter() - begun)
    return times


def contestants() -> list[Contestant]:
    """We, and the peer when PEER names it. A version manager's `python3` shim costs the peer time, so both get the real one."""
    real = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve().parent)
    checkout = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    ours = Contestant("sandboxmcp", (str(Path(sys.executable).parent / "sandboxmcp"), "serve"), checkout, (real,))
    modules = Path(os.environ.get("PEER", "/nonexistent")) / "node_modules"
    node, script = modules / "node" / "bin" / "node", modules / "context-mode" / "start.mjs"
    if not (node.is_file() and script.is_file()):
        return [ours]
    no_brakes = {"CONTEXT_MODE_SEARCH_BLOCK_AFTER": "1000000", "CONTEXT_MODE_SEARCH_MAX_RESULTS_AFTER": "1000000"}
    return [ours, Contestant("peer", (str(node), str(script)), no_brakes, (str(node.parent), real))]


def measure(rounds: int, only: list[str]) -> tuple[dict[tuple[str, str], list[float]], list[float]]:
    """All samples by (figure, contestant), and those of the bare interpreter. A figure that fails is reported and left out."""
    samples: dict[tuple[str, str], list[float]] = {}
    bare: list[float] = []
    for turn in range(rounds):
        for figure, run in (TIMES | MEMORY).items():
            if only and not any(word in figure for word in only):
                continue
            bare += bare_python()
            print(f"round {turn + 1}: {figure}", flush=True)
            for contestant in contestants():
                try:
                    samples.setdefault((figure, contestant.name), []).extend(run(contestant))
                except (ServerFailed, OSError) as error:
                    print(f"    {contestant.name} failed: {error}", flush=True)
    return samples, bare


def _cell(values: list[float] | None, bare_s: float | None) -> str:
    if not values:
        return f"{'-':>21}"
    middle = statistics.median(values)
    return f"{middle * 1000:9.1f} ms {middle / bare_s:6.2f} P" if bare_s else f"{middle:9.1f} MiB{'':8}"


def report(samples: dict[tuple[str, str], list[float]], bare: list[float]) -> None:
    bare_s = statistics.median(bare)
    print(f"\nP = python -c pass = {bare_s * 1000:.1f} ms (median of {len(bare)}), {os.cpu_count()} cores")
    print(f"{'':28}{'sandboxmcp':>21}  {'peer':>21}  sandboxmcp / peer")
    for figure in (*TIMES, *MEMORY):
        ours, theirs = samples.get((figure, "sandboxmcp")), samples.get((figure, "peer"))
        unit = bare_s if figure in TIMES else None
        ratio = f"{statistics.median(ours) / statistics.median(theirs):6.2f}" if ours and theirs else "     -"
        print(f"{figure:28}{_cell(ours, unit)}  {_cell(theirs, unit)}  {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], help="part of a figure's name; may be repeated")
    chosen = parser.parse_args()
    if len(contestants()) == 1:
        print("PEER does not name an installed peer: measuring sandboxmcp alone (see the head of this file).")
    report(*measure(chosen.rounds, chosen.only))


if __name__ == "__main__":
    main()
