"""What indexing and searching cost as a store grows: in this process, through our server, and beside the peer if PEER names it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from corpus import Language
from spine import Contestant, contestants
from stdio import Server

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.search import search as searching
from sandboxmcp.store.store import Store

_PART = 50_000
"""Sections of one source."""
_SEED = 7
_WORDS = 24
_HITS = 10
"""Best passages that are compared with those of an exact search."""


def in_process(folder: Path, sizes: Sequence[int], queries: int, keep: bool = False) -> None:
    """Prints, for a store of each size: how it was indexed, p95 of searches, its ratio to the first size, what was not found.

    `keep`: a store that already lies in the folder is used as it is.
    """
    asked = Language(_SEED).queries(queries)
    first: dict[str, float] = {}
    for size in sizes:
        place = folder / f"chunks-{size}"
        if not (keep and place.exists()):
            _fill(place, size)
        with Store(place) as store:
            for name, texts in (("search", asked), ("misspelt", [misspelt(query) for query in asked])):
                times = [_seconds(partial(store.search, text, Scope("p"))) for text in texts]
                tail = percentile(times)
                first.setdefault(name, tail)
                row = f"p95 {tail * 1000:6.1f} ms, median {statistics.median(times) * 1000:6.1f} ms, {tail / first[name]:5.2f} x"
                print(f"{name:9} in {size:>9,} chunks: {row} {sizes[0]:,}", flush=True)
            print(f"recall    in {size:>9,} chunks: {_recall(store, asked[: queries // 2]):.3f} of an exact search's best {_HITS}")


def _fill(place: Path, size: int) -> None:
    language = Language(_SEED)
    written, seconds = 0, 0.0
    with Store(place) as store:
        for start in range(0, size, _PART):
            text = "".join(_sections(language, start, min(size, start + _PART)))
            seconds += _seconds(partial(store.add, NewSource(f"part {start}", "text", "p", "s"), text))
            written += len(text)
    disk = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    print(
        f"index     {size:>12,} chunks: {written / 1e6 / seconds:.1f} MB/s, {disk / written:.1f} bytes of disk per byte", flush=True
    )


def _sections(language: Language, start: int, stop: int) -> Iterator[str]:
    """Sections of one passage each."""
    for number in range(start, stop):
        body = language.words(_WORDS)
        title = " ".join(language.words(3)).title()
        yield f"## {title} {number}\n\n{' '.join(body[: _WORDS // 2])}\n{' '.join(body[_WORDS // 2 :])}\n\n"


def _recall(store: Store, queries: Sequence[str]) -> float:
    """The share of an exact search's best passages that the bounded one has among its best."""
    bounded = [store.search(query, Scope("p"))[:_HITS] for query in queries]
    postings, searching._POSTINGS = searching._POSTINGS, 1 << 40
    try:
        exact = [store.search(query, Scope("p"))[:_HITS] for query in queries]
    finally:
        searching._POSTINGS = postings
    shares = [_share(one, other) for one, other in zip(bounded, exact, strict=True) if other]
    return statistics.fmean(shares) if shares else 1.0


def _share(bounded: Sequence[object], exact: Sequence[object]) -> float:
    found = {hit.citation for hit in bounded}  # type: ignore[attr-defined]
    return sum(hit.citation in found for hit in exact) / len(exact)  # type: ignore[attr-defined]


def through_servers(megabytes: Sequence[int], chunks: int, queries: int) -> None:
    """Prints times of indexing and of searching through the servers, and their ratio where there are two."""
    for size in megabytes:
        text = Language().markdown(size * 1_000_000)
        samples: dict[str, list[float]] = {}
        for _ in range(3):
            for one in contestants():
                samples.setdefault(one.name, []).append(_indexed(one, text))
        _told(f"index {size} MB Markdown, median", {who: statistics.median(values) for who, values in samples.items()})
    asked = Language(_SEED).queries(queries)
    text = "".join(_sections(Language(_SEED), 0, chunks))
    with ExitStack() as stack:
        servers = {one.name: _filled(stack, one, text) for one in contestants()}
        for name, texts in ((f"search in {chunks:,} chunks", asked), ("misspelt", [misspelt(query) for query in asked])):
            times: dict[str, list[float]] = {who: [] for who in servers}
            for query in texts:  # in turns, so that a busy moment hits both
                for who, server in servers.items():
                    times[who].append(server.call("ctx_search", {"queries": [query]})[1])
            _told(f"{name}, p95", {who: percentile(values) for who, values in times.items()})
            _told(f"{name}, median", {who: statistics.median(values) for who, values in times.items()})


def memory(megabytes: int) -> None:
    """Prints how much the server's memory grows over indexing so much."""
    ours = contestants()[0]
    with ours.server() as (server, folder):
        (folder / "text.md").write_text(Language().markdown(megabytes * 1_000_000))
        server.call("ctx_index", {"content": Language().markdown(200_000), "source": "warm"})
        before = server.resident_kib()
        server.call("ctx_index", {"path": str(folder / "text.md"), "source": "text"})
        after, peak = server.resident_kib(), server.peak_kib()
    print(
        f"memory over indexing {megabytes} MB: + {(after - before) / 1024:.0f} MiB, at its peak + {(peak - before) / 1024:.0f} MiB"
    )


def _told(name: str, figures: Mapping[str, float]) -> None:
    said = ", ".join(f"{who} {value * 1000:.1f} ms" for who, value in figures.items())
    ratio = f", ratio {figures['sandboxmcp'] / figures['peer']:.2f}" if "peer" in figures else ""
    print(f"{name}: {said}{ratio}", flush=True)


def _indexed(contestant: Contestant, text: str) -> float:
    with contestant.server() as (server, folder):
        (folder / "text.md").write_text(text)
        server.call("ctx_index", {"content": "# Warm\n\nup", "source": "warm"})
        return server.call("ctx_index", {"path": str(folder / "text.md"), "source": "text"})[1]


def _filled(stack: ExitStack, contestant: Contestant, text: str) -> Server:
    server, folder = stack.enter_context(contestant.server())
    (folder / "text.md").write_text(text)
    server.call("ctx_index", {"path": str(folder / "text.md"), "source": "text"})
    server.call("ctx_search", {"queries": ["warm up"]})
    return server


def misspelt(query: str) -> str:
    """Without the fourth letter of its first word."""
    return query[:3] + query[4:]


def percentile(times: Sequence[float], share: int = 95) -> float:
    return sorted(times)[len(times) * share // 100]


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
