"""How fast credentials are masked: megabytes a second of processor time, and kilobytes while a bare interpreter starts.

Absolute figures differ from machine to machine; the last column compares with what starts a bare Python there. `--shapes`
measures with the shapes of another pack.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import resource
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.secrets.redactor import Redactor

_PIECE = 64 << 10


def contents(size: int) -> Mapping[str, bytes]:
    """What is printed every day, by name, about `size` bytes of each."""
    draw = random.Random(11)

    def identifiers() -> Iterator[str]:
        for number in range(size // 140 + 1):
            one, other = (uuid.UUID(int=draw.getrandbits(128), version=4) for _ in range(2))
            yield f"2026-01-01T12:00:00.{number % 1000:03}Z INFO request={one} user={other} GET /v1/items status=200\n"

    rows = [
        {"id": n, "name": f"item {n}", "price": draw.random(), "key": f"k{n}", "tags": ["a", "b"]} for n in range(size // 90 + 1)
    ]
    library = Path(sysconfig.get_paths()["stdlib"])
    source = b"".join(file.read_bytes() for file in sorted(library.glob("*.py")))
    words = [word for word in source.decode("utf-8", "replace").split() if word.isalpha()]
    prose = " ".join(draw.choice(words) for _ in range(size // 7)).encode()
    coloured = "".join(f"\x1b[32m{line[:24]}\x1b[0m {line[25:]}" for line in identifiers())
    made = {
        "log of identifiers": "".join(identifiers()).encode(),
        "source": (source * (size // len(source) + 1)),
        "base64": base64.encodebytes(draw.randbytes(size * 3 // 4)),
        "one line of base64": base64.b64encode(draw.randbytes(size * 3 // 4)),
        "one line of JSON": json.dumps(rows).encode(),
        "JSON within JSON": "".join(json.dumps({"message": json.dumps(row)}) + "\n" for row in rows).encode(),
        "prose": prose,
        "coloured log": coloured.encode(),
        "Japanese": ("漢字かな交じり文は、日本語の文章である。" * 3 + "\n").encode() * (size // 181),
        "random bytes": draw.randbytes(size),
    }
    return {name: text[:size] for name, text in made.items()}


def processor_time(work: Callable[[], object]) -> float:
    """The least of three tries, in seconds, those of child processes included."""
    least = float("inf")
    for _ in range(3):
        before = _used()
        work()
        least = min(least, _used() - before)
    return least


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def bare_start() -> float:
    """Seconds of wall time that `python -c pass` takes: the middle of eleven."""
    taken = []
    for _ in range(11):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True, env=dict(os.environ))
        taken.append(time.perf_counter() - started)
    return sorted(taken)[5]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=8)
    parser.add_argument("--shapes", type=Path, default=data_folder("policies") / "secrets.toml")
    given = parser.parse_args()
    redactor, bare = Redactor(load_pack(given.shapes).secrets), bare_start()
    print(f"python -c pass: {bare * 1000:.1f} ms; 60 MB/s where it takes 25 ms are 1500 kB in that time\n")
    print(f"{'':24}{'MB/s':>8}{'lower()':>10}{'kB a start':>12}")
    for name, data in contents(given.megabytes << 20).items():
        pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
        taken = processor_time(lambda pieces=pieces: sum(map(len, redactor(pieces))))  # type: ignore[misc]
        lowered = processor_time(data.lower)
        print(f"{name:24}{len(data) / taken / 1e6:8.0f}{taken / lowered:9.0f}x{len(data) / taken * bare / 1e3:12.0f}")


if __name__ == "__main__":
    main()
