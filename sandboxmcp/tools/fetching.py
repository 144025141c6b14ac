"""`ctx_fetch_and_index`: pages of the internet become sources. The host fetches, as far as the policy lets curl fetch."""

from __future__ import annotations

import re
import shlex
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urldefrag, urlsplit

import anyio
import anyio.to_thread

from sandboxmcp.core.errors import SandboxmcpError, StoreError, UsageError
from sandboxmcp.core.model import NewSource, Scope, Source
from sandboxmcp.core.surface import argument, call
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import checked_budget, total_cost
from sandboxmcp.render.fence import clean_label, named, one_line
from sandboxmcp.render.passages import Seen, section
from sandboxmcp.render.receipt import age_of, size
from sandboxmcp.session import Session
from sandboxmcp.store.web.fetch import Asked, Fetched, Fetcher
from sandboxmcp.store.web.page_reader import read_page
from sandboxmcp.store.web.pages import Page
from sandboxmcp.tools.finding import find
from sandboxmcp.tools.script_runs import Progress, no_progress

TTL_S = 86_400.0
_PER_HOST = 4
"""Requests that one host gets at once."""
_MOST_URLS = 200

What = Literal["fetched", "unchanged", "cached", "failed"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One URL and the label that it is stored under."""

    url: str
    label: str


@dataclass(frozen=True, slots=True)
class Got:
    """What became of one URL."""

    wanted: Wanted
    what: What
    source: Source | None = None
    age_s: float = 0.0
    why: str = ""
    plain: bool = False
    """Only its words are stored: its structure takes too long to read."""


async def fetch_and_index(
    session: Session,
    *,
    url: str | None = None,
    source: str | None = None,
    requests: Sequence[Mapping[str, str]] = (),
    concurrency: int = 8,
    ttl_s: float = TTL_S,
    force: bool = False,
    intent: str | None = None,
    budget_tokens: int,
    progress: Progress = no_progress,
) -> Answer:
    """Fetch what is not stored yet or is older than `ttl_s`, all at once but at most four from one host.

    One URL that fails does not stop the others; the answer is an error only when all failed.

    Raises:
        UsageError: no URL, or too many. BrokenPack: no policy, so nothing is fetched. StoreError.
    """
    budget_tokens = checked_budget(budget_tokens)
    wanted = await anyio.to_thread.run_sync(_wanted, url, source, requests, session.masked)
    fetching = await anyio.to_thread.run_sync(_Fetching, session, 0.0 if force else ttl_s)
    results: dict[int, Got] = {}
    limiter = anyio.CapacityLimiter(max(1, concurrency))

    async def one(index: int) -> None:
        results[index] = await anyio.to_thread.run_sync(fetching.get, wanted[index], limiter=limiter)
        await progress(len(results), len(wanted), one_line(session.masked(f"{results[index].what} {wanted[index].url}"), 200))

    async with anyio.create_task_group() as group:
        for index in range(len(wanted)):
            group.start_soon(one, index)
    got = [results[index] for index in range(len(wanted))]
    return await anyio.to_thread.run_sync(_answer, session, got, intent, budget_tokens)


def _without_fragment(url: str) -> str:
    try:
        urlsplit(url.strip())
        return urldefrag(url.strip())[0]
    except ValueError as error:
        raise UsageError(f"{one_line(url, 200)} is no URL: {error}", "Give one such as https://example.org/page.") from None


def _wanted(url: str | None, source: str | None, requests: Sequence[Mapping[str, str]], mask: Callable[[str], str]) -> list[Wanted]:
    pairs: list[tuple[str | None, str | None]] = [(url, source)] if url else []
    pairs += [(one.get("url"), one.get("source") or source) for one in requests]
    clean = [(place, label) for place, label in ((_without_fragment(place or ""), label) for place, label in pairs) if place]
    if not clean:
        raise UsageError("no URL to fetch", "Give `url`, or `requests` with a `url` each.")
    if len(clean) > _MOST_URLS:
        raise UsageError(f"{len(clean)} URLs at once are more than {_MOST_URLS}", "Fetch them in several calls.")
    return list(dict.fromkeys(Wanted(place, clean_label(label or place, "page", mask)) for place, label in clean))


class _Fetching:
    """One call's fetches. Its methods block and are called on several threads."""

    def __init__(self, session: Session, ttl_s: float) -> None:
        curl = session.engine.brokers().get("curl")
        if curl is None or not curl.allowed:
            because = (curl.because if curl else "") or "no policy pack in force lets curl fetch"
            raise UsageError(
                f"the policy fetches nothing: {because}", f"The user chooses another pack in {argument('policy_packs')}."
            )
        self._session = session
        self._ttl_s = ttl_s
        self._fetcher = Fetcher(session.gate, self._judge, domains=curl.hosts, tls=_tls(session))
        self._turns: dict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(_PER_HOST))

    def get(self, wanted: Wanted) -> Got:
        """The page from the store while it is young enough, else from its server."""
        store, project = self._session.store, self._session.project
        # A URL with a credential in it is stored without: what is stored may have been fetched with another one.
        whole = self._session.masked(wanted.url) == wanted.url
        known = store.pages.find(project, wanted.label, wanted.url) if whole else None
        age_s = max(0.0, time.time() - known.fetched_at) if known else 0.0
        if known and age_s < self._ttl_s:
            return Got(wanted, "cached", store.get(known.handle, project=project), age_s)
        try:
            asked = Asked(wanted.url, known.etag, known.modified) if known else Asked(wanted.url)
            with self._turns[urlsplit(wanted.url).netloc.lower()]:
                fetched = self._fetcher.fetch(asked)
            self._log(wanted, "")
            return self._kept(wanted, fetched, known)
        except StoreError:
            raise
        except SandboxmcpError as error:
            self._log(wanted, error.what)
            return Got(wanted, "failed", why=str(error))

    def _kept(self, wanted: Wanted, fetched: Fetched, known: Page | None) -> Got:
        store, session, plain = self._session.store, self._session, False
        if fetched.content is None:
            if known is None:
                raise UsageError(f"{wanted.url} answered that nothing changed, without having been asked")
            source = store.get(known.handle, project=session.project)
            etag, modified, what = fetched.etag or known.etag, fetched.modified or known.modified, "unchanged"
        else:
            page = read_page(store.workers, fetched.content, fetched.mime, fetched.charset, wanted.url)
            new = NewSource(wanted.label, "page", session.project, session.id, path=session.masked(wanted.url), mime=page.mime)
            source = store.add(new, page.text)
            plain = page.plain
            etag, modified, what = fetched.etag, fetched.modified, "unchanged" if source.unchanged else "fetched"
        url = session.masked(wanted.url)
        store.pages.put(Page(session.project, wanted.label, url, source.handle, time.time(), etag, modified))
        return Got(wanted, "fetched" if what == "fetched" else "unchanged", source, plain=plain)

    def _judge(self, url: str) -> str:
        """What the policy says of curl with the same URL in a kernel, it says of this."""
        verdict = self._session.engine.judge(f"curl -fsSL -o page {shlex.quote(url)}", "shell")
        return "" if verdict.action == "allow" else verdict.because or f"the policy says {verdict.action}"

    def _log(self, wanted: Wanted, refusal: str) -> None:
        facts = {"session": self._session.id, "url": re.sub(r"\?.*", "?…", wanted.url), "refusal": refusal}
        try:
            self._session.audit.add("fetch", facts)
        except OSError as error:
            raise StoreError(f"The log cannot be written: {error.strerror}", "Free some disk space.") from None


def _tls(session: Session) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authorities = session.settings.network.authorities
    if authorities is not None:
        try:
            context.load_verify_locations(authorities)
        except OSError as error:
            raise UsageError(f"network.authorities cannot be read: {error}", "Name a readable file of certificates.") from None
    return context


def _answer(session: Session, got: Sequence[Got], intent: str | None, budget_tokens: int) -> Answer:
    lines = [_line(one) for one in got]
    handles = tuple(dict.fromkeys(one.source.handle for one in got if one.source is not None))
    cited: tuple[str, ...] = ()
    if intent and handles:
        found = find(session, intent, Scope(session.project, handles=handles))
        part = section(found, max(0, budget_tokens - total_cost(lines)), Seen(handles), titled=False, elsewhere=call("ctx_search"))
        lines += part.lines
        cited = part.cited
    facts = {"pages": [_row(one) for one in got], "hits": list(cited)}
    captured = sum(one.source.bytes for one in got if one.source and one.what == "fetched")
    return answer(lines, budget_tokens, facts, is_error=not handles, captured_bytes=captured)


def _line(one: Got) -> str:
    if one.source is None:
        return f"failed {one_line(one.wanted.url, 200)}: {one_line(one.why.removeprefix(one.wanted.url).strip(), 400)}"
    age = f" {age_of(one.age_s)}" if one.what == "cached" else ""
    plain = ", its words only, since its structure takes too long to read" if one.plain else ""
    return f"{one.what}{age} {one.source.handle} {named(one.wanted.label, 80)}: {size(one.source)}{plain}"


def _row(one: Got) -> dict[str, Any]:
    facts: dict[str, Any] = {"url": one.wanted.url, "what": one.what, "handle": one.source.handle if one.source else None}
    return facts | ({"reason": one.why} if one.why else {}) | ({"plain": True} if one.plain else {})
