"""What a verdict costs, as ratios to a bare `python -c pass` (P) of the same run.

    python benchmarks/policy.py [--rounds N]

Every round measures P and each case once, in turn, so that a busy minute hits all of them. Figures are medians; trust the ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.prefilter import surely_allowed, words_of
from sandboxmcp.policy.secrets.redactor import Redactor

SHELL = """set -euo pipefail
cd "$(dirname "$0")/.."
for name in src tests; do
    echo "checking $name"
    ruff check "$name" | tail -20
done
if [ -f requirements.txt ]; then
    pip install -r requirements.txt > install.log 2>&1
fi
version=$(git describe --tags)
case "$version" in
    v*) echo "release ${version#v}" ;;
    *) echo "no release" ;;
esac
find build -name '*.o' -exec rm {} +
grep -rn 'TODO' src | sort | uniq -c | sort -rn > todo.txt
python3 - <<'EOF'
import json
print(len(json.load(open("data.json"))))
EOF
tar -czf out.tar.gz build
"""
PYTHON = """import json
import re
import subprocess
from collections import Counter
from pathlib import Path

def words(file):
    for line in file.open():
        yield from re.findall(r"\\w+", line)

counts = Counter()
for file in sorted(Path("src").glob("**/*.py")):
    counts.update(words(file))
log = subprocess.run(["git", "log", "--oneline"], capture_output=True, text=True)
print(len(log.stdout.splitlines()))
for word, count in counts.most_common(20):
    print(word, count)
report = {"words": len(counts), "most": counts.most_common(1)}
Path("report.json").write_text(json.dumps(report))
print("done")
"""
JAVASCRIPT = "const fs = require('fs');\n" + "const a = JSON.parse(fs.readFileSync(`a.json`)).map(x => x.id);\n" * 19
PLAIN = "make test"


def cases(folder: Path) -> Mapping[str, Callable[[], object]]:
    """What is measured, by name."""
    engine = load_engine()
    words = words_of(engine)
    redactor = Redactor(load_pack(data_folder("policies") / "secrets.toml").secrets)
    log = b"2026-01-01T00:00:00 worker-7 GET /index.html 200 in 13 ms\n" * 20_000
    environment = os.environ | {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}

    def command(*arguments: str, **more: str) -> Callable[[], object]:
        line = [sys.executable, "-m", "sandboxmcp", "policy", "explain", *arguments]
        return lambda: subprocess.run(line, cwd=folder, env=environment | more, check=False, capture_output=True)

    command("--", PLAIN)()  # remembers
    return {
        "P: python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
        "verdict, 20 lines of shell": lambda: engine.judge(SHELL, "shell"),
        "verdict, 20 lines of Python": lambda: engine.judge(PYTHON, "python"),
        "verdict, 20 lines of JavaScript": lambda: engine.judge(JAVASCRIPT, "javascript"),
        "prefilter, one plain command": lambda: surely_allowed(PLAIN, "shell", words),
        "default pack loaded, all examples judged": load_engine,
        "default pack read, no examples": lambda: load_pack(data_folder("policies") / "default.toml"),
        "masking 1 MB of a log": lambda: redactor.masked(log),
        "process of a verdict, prefilter": command("--", PLAIN),
        "process of a verdict, packs": command("--", "make test $X"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        measured: dict[str, list[float]] = {}
        work = cases(Path(folder))
        for _ in range(rounds):
            for name, run in work.items():
                started = time.perf_counter()
                run()
                measured.setdefault(name, []).append(time.perf_counter() - started)
    base = statistics.median(next(iter(measured.values())))
    for name, seconds in measured.items():
        middle = statistics.median(seconds)
        print(f"{name:42} {middle * 1000:9.2f} ms {middle / base:8.3f} P")


if __name__ == "__main__":
    main()
