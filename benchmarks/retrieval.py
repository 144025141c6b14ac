"""Search quality and cost through the tools, on texts made here; on collections and cases elsewhere when a folder is named.

    python benchmarks/retrieval.py                     what a search costs in 10,000 passages; beside the peer where PEER names it
    python benchmarks/retrieval.py --chunks 10000 1000000 --keep FOLDER --megabytes 1 10 --memory 100     the same at all sizes
    python benchmarks/retrieval.py --cases FOLDER      also evidence recall: FOLDER/cases.jsonl and FOLDER/files
    python benchmarks/retrieval.py --collections FOLDER    also nDCG@10: FOLDER/NAME/{corpus,queries}.jsonl and qrels.tsv

A case is {"file", "intent", "kind", "evidence": [[alternative, …], …]}: its recall is the share of evidence groups that stand
within the first budget × 4 bytes of the rendered answer. A third of the files, chosen by hash, is set aside from tuning; the
gap between the two parts is told with its bootstrap interval over files.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import math
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import scale

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.store.store import Store
from sandboxmcp.tools.knowledge import search

BUDGETS = (500, 1_000, 2_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--collections", type=Path)
    parser.add_argument("--chunks", type=int, nargs="*", default=[10_000], help="passages in the stores whose search is timed")
    parser.add_argument("--keep", type=Path, help="folder in which these stores are left for the next time")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[1], help="of Markdown, indexed through the server")
    parser.add_argument("--memory", type=int, default=0, help="megabytes over which the server's memory is looked at")
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.chunks:
            scale.in_process(options.keep or Path(folder), options.chunks, options.queries, options.keep is not None)
            scale.through_servers(options.megabytes, options.chunks[0], options.queries)
        if options.memory:
            scale.memory(options.memory)
        if options.cases:
            _cases(Path(folder) / "cases", options.cases)
        if options.collections:
            _collections(Path(folder) / "collections", options.collections)


def recall(text: str, evidence: Sequence[Sequence[str]], budget: int) -> float:
    """The share of evidence groups of which one alternative stands within the budget, white space and entities aside."""
    seen = _plain(text.encode()[: budget * 4].decode("utf-8", "ignore"))
    return sum(any(_plain(one) in seen for one in group) for group in evidence) / len(evidence)


def _plain(text: str) -> str:
    return " ".join(html.unescape(text).replace("\xa0", " ").split())


def _session(folder: Path) -> Session:
    folder.mkdir(parents=True)
    flags = {"data_dir": str(folder / "data"), "workspace": str(folder)}
    return Session(load_settings(flags, environ={"HOME": str(folder)}, project=folder))


def _cases(folder: Path, place: Path) -> None:
    session = _session(folder)
    cases = [json.loads(line) for line in (place / "cases.jsonl").read_text().splitlines()]
    for name in dict.fromkeys(case["file"] for case in cases):
        session.store.add(NewSource(f"case-{name}", "text", session.project, "s"), place / "files" / name)
    results = [(case, _recalls(session, case)) for case in cases]
    session.store.close()
    _row("all", results)
    for kind in sorted({case["kind"] for case in cases}):
        _row(f"  {kind}", [one for one in results if one[0]["kind"] == kind])
    low, high = _gap(results)
    print(f"set aside minus the rest at 1,000 tokens: 95 % interval {low:+.3f} to {high:+.3f}")


Result = tuple[dict[str, Any], list[float]]


def _recalls(session: Session, case: dict[str, Any]) -> list[float]:
    label = f"case-{case['file']}"
    answers = [search(session, [case["intent"]], source=label, budget_tokens=budget).text for budget in BUDGETS]
    return [recall(text, case["evidence"], budget) for text, budget in zip(answers, BUDGETS, strict=True)]


def _row(name: str, results: Sequence[Result]) -> None:
    means = [statistics.fmean(values[index] for _, values in results) for index in range(len(BUDGETS))]
    print(f"{name:24s} {len(results):4d} cases " + " ".join(f"{mean:.3f}" for mean in means))


def is_set_aside(name: str) -> bool:
    return int(hashlib.sha256(f"aside:{name}".encode()).hexdigest(), 16) % 3 == 0


def _gap(results: Iterable[Result], rounds: int = 2_000) -> tuple[float, float]:
    by_file: dict[str, list[float]] = defaultdict(list)
    for case, values in results:
        by_file[case["file"]].append(values[1])
    parts = [[values for name, values in sorted(by_file.items()) if is_set_aside(name) is aside] for aside in (True, False)]
    draw = random.Random(7)

    def mean(part: list[list[float]]) -> float:
        return statistics.fmean(value for values in draw.choices(part, k=len(part)) for value in values)

    gaps = sorted(mean(parts[0]) - mean(parts[1]) for _ in range(rounds))
    return gaps[rounds // 40], gaps[-rounds // 40]


def _collections(folder: Path, place: Path) -> None:
    means = []
    for one in sorted(path for path in place.iterdir() if (path / "corpus.jsonl").exists()):
        means.append(_ndcg(folder / one.name, one))
        print(f"{one.name:12s} nDCG@10 {means[-1]:.3f}", flush=True)
    print(f"{'macro':12s} nDCG@10 {statistics.fmean(means):.3f}")


def _ndcg(folder: Path, place: Path) -> float:
    documents = [json.loads(line) for line in (place / "corpus.jsonl").read_text().splitlines()]
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (place / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, gain = line.split("\t")
        judged[query][document] = int(gain)
    gains = []
    with Store(folder) as store:
        for one in documents:
            body = f"# {one['title']}\n\n{one['text']}" if one["title"] else one["text"]
            store.add(NewSource(f"d {one['_id']}", "artifact", "p", "s"), body)
        for line in (place / "queries.jsonl").read_text().splitlines():
            query = json.loads(line)
            if wanted := judged.get(query["_id"]):
                found = list(dict.fromkeys(hit.label[2:] for hit in store.search(query["text"], Scope("p"))))[:10]
                gains.append(_discounted([wanted.get(name, 0) for name in found]) / _discounted(sorted(wanted.values())[::-1][:10]))
    return statistics.fmean(gains)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


if __name__ == "__main__":
    main()
