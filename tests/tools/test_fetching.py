"""ctx_fetch_and_index against a server on this machine, with pages that behave and pages that do not."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from sandboxmcp.core.model import Scope
from sandboxmcp.core.settings import load_settings
from sandboxmcp.render.answer import Answer
from sandboxmcp.session import Session
from sandboxmcp.tools.fetching import fetch_and_index

HTML = """<html><head><title>Zebra care</title><script>var hidden = 1</script></head><body><nav>Home | Imprint</nav><main>
<h1>Zebra care</h1><p>Zebras eat grass &amp; sleep standing up, as every keeper of zebras knows from long nights in the stable.</p>
<pre><code class="language-python">def feed(zebra):
    return zebra.eat("grass")
</code></pre><table><tr><th>animal</th><th>legs</th></tr><tr><td>zebra</td><td>4</td></tr></table>
</main><footer>Copyright</footer></body></html>"""
FEED = """<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><item><title>Zebra born</title>
<link>http://x/1</link><description>&lt;p&gt;A foal.&lt;/p&gt;</description></item></channel></rss>"""
CHARSETS = {"nul": "a\0b"}
BOMB = '<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss><channel><title>&b;</title></channel></rss>'


class Site(ThreadingHTTPServer):
    """Counts what it is asked, and of some pages how many requests wait at once."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.asked: Counter[str] = Counter()
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.together = threading.Barrier(4, timeout=60)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Page(BaseHTTPRequestHandler):
    """One page for each path."""

    server: Site

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.asked[self.path] += 1
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, "page_" + self.path.strip("/").split("?")[0].split("/")[0])()

    def answer(self, body: bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def page_zebra(self) -> None:
        if self.headers["If-None-Match"] == '"v1"':
            self.answer(b"", status=304, ETag='"v1"')
        else:
            self.answer(HTML.encode(), ETag='"v1"')

    def page_data(self) -> None:
        self.answer(json.dumps({"animals": [{"name": "zebra"}]}).encode(), "application/json")

    def page_feed(self) -> None:
        self.answer(FEED.encode(), "application/rss+xml")

    def page_entities(self) -> None:
        self.answer(BOMB.encode(), "application/xml")

    def page_latin(self) -> None:
        self.answer("Zebra-Gehege für große Tiere".encode("cp1252"), "text/plain; charset=iso-8859-1")

    def page_packed(self) -> None:
        self.answer(gzip.compress(b"packed zebra\n"), "text/plain", Content_Encoding="gzip")

    def page_bomb(self) -> None:
        self.answer(gzip.compress(b"0" * (64 << 20)), "text/plain", Content_Encoding="gzip")

    def page_endless(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        while True:
            self.wfile.write(b"more and more\n" * 4096)

    def page_picture(self) -> None:
        self.answer(b"\x89PNG\0\0", "image/png")

    def page_loop(self) -> None:
        self.answer(b"", status=302, Location="/loop")

    def page_inward(self) -> None:
        self.answer(b"", status=302, Location="http://169.254.169.254/latest/meta-data/")

    def page_file(self) -> None:
        self.answer(b"", status=302, Location="file:///etc/passwd")

    def page_astray(self) -> None:
        self.answer(b"", status=302, Location="http://[::1/")

    def page_dripping(self) -> None:
        """Never silent, never at its end: in the status line, a header, or the length of a chunk."""
        start = {
            "interim": b"",
            "header": b"HTTP/1.1 200 OK\r\nX: ",
            "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        }
        kind = self.path.split("/")[2]
        self.wfile.write(start[kind])
        while not self.server.ending.wait(0.02):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" if kind == "interim" else b"0")

    def page_charset(self) -> None:
        name = self.path.split("/")[2]
        self.answer(b"plain zebra\n" * 99_999, f"text/plain; charset={CHARSETS.get(name, name)}")

    def page_nested(self) -> None:
        self.answer(b"[" * 500 + b"1," * 99_999 + b"1" + b"]" * 500, "application/json")

    def page_headers(self) -> None:
        self.answer(b"<html><body><p>zebra</p>" + b"<header>" * 250 + b"<p>a</p>" * 60_000)

    def page_hostile(self) -> None:
        unit, size = {
            "comments": (b"<!--", 160_000),
            "scripts": (b"<script>", 320_000),
            "divisions": (b"<div>", 500_000),
            "headers": (b"<header>", 320_000),
            "articles": (b"<article>a", 320_000),
            "lists": (b"<ul><li>a", 320_000),
            "sections": (b"<![CDATA[", 160_000),
            "open": (b"<a ", 160_000),
        }[self.path.split("/")[2]]
        self.answer(b"<html><body>zebra" + unit * (size // len(unit)))

    def page_moved(self) -> None:
        self.answer(b"", status=301, Location="/zebra")

    def page_missing(self) -> None:
        self.answer(b"no", status=404)

    def page_flaky(self) -> None:
        if self.server.asked[self.path] < 3:
            self.answer(b"", status=503, Retry_After="0")
        else:
            self.answer(b"steady zebra\n", "text/plain")

    def page_short(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"cut off")
        self.close_connection = True

    def page_deep(self) -> None:
        self.answer(b"<html><body>" + b"<div>" * 5000 + b"deep zebra" + b"</div>" * 5000)

    def page_four(self) -> None:
        """Counted until its answer begins: with that the client may ask for the next."""
        with self.server.lock:
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
        self.server.together.wait()
        with self.server.lock:
            self.server.now -= 1
        self.answer(self.path.encode(), "text/plain")

    def page_broken(self) -> None:
        self.answer(b"%PDF-1.7 nothing of the kind", "application/pdf")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site
        site.ending.set()
        site.shutdown()


def made(tmp_path: Path, **flags: Any) -> Session:
    project = tmp_path / "project"
    project.mkdir()
    given = {"data_dir": str(tmp_path / "data"), "workspace": str(project), "network.allow_private": "127.0.0.1", **flags}
    return Session(load_settings(given, environ={"HOME": str(tmp_path)}, project=project))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = made(tmp_path)
    yield session
    anyio.run(session.close)


def fetch(session: Session, **arguments: Any) -> Answer:
    async def run() -> Answer:
        return await fetch_and_index(session, **{"budget_tokens": 2_000, **arguments})

    return anyio.run(run)


def text_of(session: Session, answer: Answer) -> str:
    return b"".join(session.store.raw(answer.structured["pages"][0]["handle"])).decode()


def test_a_page_becomes_markdown_with_its_code_and_tables_and_without_its_frame(session: Session, site: Site) -> None:
    answer = fetch(session, url=f"{site.url}/moved", intent="what do zebras eat")
    text = text_of(session, answer)
    assert "Zebras eat grass & sleep" in answer.text and answer.structured["hits"]
    assert '```python\ndef feed(zebra):\n    return zebra.eat("grass")\n' in text and "| zebra | 4 |" in text
    assert [word for word in ("Imprint", "Copyright", "hidden") if word in text] == []


def test_a_young_page_comes_from_the_store_and_an_old_one_is_asked_for_with_its_tag(session: Session, site: Site) -> None:
    url = f"{site.url}/zebra"
    got = [fetch(session, url=url, **more).structured["pages"][0] for more in ({}, {}, {"ttl_s": 0}, {"force": True})]
    assert ([one["what"] for one in got], site.asked["/zebra"]) == (["fetched", "cached", "unchanged", "unchanged"], 3)
    assert len({one["handle"] for one in got}) == 1


def test_two_addresses_under_one_label_do_not_collide(session: Session, site: Site) -> None:
    pages = [{"url": f"{site.url}/{name}", "source": "animals"} for name in ("zebra", "data")]
    answer = fetch(session, requests=pages)
    assert len({one["handle"] for one in answer.structured["pages"]}) == 2
    assert {one.label for one in session.store.sources(Scope(None))} == {"animals"}


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("data", '"name": "zebra"'),
        ("feed", "## Zebra born\n\nhttp://x/1\n\nA foal."),
        ("entities", "<!ENTITY"),
        ("latin", "Gehege für große"),
        ("packed", "packed zebra"),
        ("flaky", "steady zebra"),
        ("deep", "deep zebra"),
    ],
)
def test_every_kind_of_text_is_kept_as_a_person_reads_it(session: Session, site: Site, page: str, text: str) -> None:
    assert text in text_of(session, fetch(session, url=f"{site.url}/{page}"))


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("bomb", "more than 33,554,432 bytes"),
        ("endless", "more than 33,554,432 bytes"),
        ("picture", "is image/png, which is no text"),
        ("loop", "more than 10 redirects"),
        ("inward", "never goes to the machine's own or the cloud's service addresses"),
        ("file", "the scheme 'file' is not allowed"),
        ("astray", "it redirects to 'http://[::1/', which is no URL"),
        ("missing", "the server answered 404"),
        ("broken", "is a PDF that cannot be read"),
    ],
)
def test_a_hostile_page_is_refused_with_its_reason_and_leaves_nothing(session: Session, site: Site, page: str, why: str) -> None:
    answer = fetch(session, url=f"{site.url}/{page}")
    assert answer.is_error and why in answer.text
    assert session.store.search("zebra more 0", Scope(None)) == []


@pytest.mark.parametrize("where", ["interim", "header", "chunk"])
def test_a_server_that_is_never_silent_is_left_at_the_deadline(tmp_path: Path, site: Site, where: str) -> None:
    session = made(tmp_path, **{"network.time_s": "0.5"})
    assert "it takes longer than network.time_s allows" in fetch(session, url=f"{site.url}/dripping/{where}").text
    anyio.run(session.close)


@pytest.mark.parametrize("name", ["nul", "punycode", "idna", "unicode_escape", "undefined", "hex", "no-such"])
def test_a_character_set_of_no_page_is_not_believed(session: Session, site: Site, name: str) -> None:
    assert text_of(session, fetch(session, url=f"{site.url}/charset/{name}")).startswith("plain zebra\nplain zebra\n")


def test_json_is_laid_out_only_where_that_does_not_multiply_it(session: Session, site: Site) -> None:
    assert text_of(session, fetch(session, url=f"{site.url}/nested")).startswith("[" * 500 + "1,1,")


def test_of_a_page_that_takes_too_long_to_read_the_words_are_kept(monkeypatch: Any, session: Session, site: Site) -> None:
    monkeypatch.setattr("sandboxmcp.store.web.page_reader.MOST_S", 1.0)
    answer = fetch(session, url=f"{site.url}/headers")
    assert "its words only, since its structure takes too long to read" in answer.text and answer.structured["pages"][0]["plain"]
    assert text_of(session, answer).startswith("zebra\n")


@pytest.mark.parametrize("page", ["comments", "scripts", "divisions", "headers", "articles", "lists", "sections", "open"])
def test_a_page_that_is_made_to_be_slow_is_stored_with_its_words(session: Session, site: Site, page: str) -> None:
    answer = fetch(session, url=f"{site.url}/hostile/{page}")
    assert "zebra" in text_of(session, answer) and session.store.search("zebra", Scope(None))


def test_one_failure_does_not_stop_the_others(session: Session, site: Site) -> None:
    answer = fetch(session, requests=[{"url": f"{site.url}/missing"}, {"url": f"{site.url}/data"}])
    assert ([one["what"] for one in answer.structured["pages"]], answer.is_error) == (["failed", "fetched"], False)


def test_a_host_gets_four_requests_at_once_and_progress_is_told(session: Session, site: Site) -> None:
    told: list[tuple[int, int]] = []

    async def progress(done: int, of: int, what: str) -> None:
        told.append((done, of))

    fetch(session, requests=[{"url": f"{site.url}/four/{n}"} for n in range(8)], concurrency=8, progress=progress)
    assert (site.most, told) == (4, [(n, 8) for n in range(1, 9)])


@pytest.mark.parametrize("pack", ["offline", "strict"])
def test_a_pack_without_network_fetches_nothing(tmp_path: Path, site: Site, pack: str) -> None:
    session = made(tmp_path, policy_packs=pack)
    with pytest.raises(Exception, match="the policy fetches nothing"):
        fetch(session, url=f"{site.url}/zebra")
    anyio.run(session.close)
    assert not site.asked


def test_this_machine_is_not_reached_unless_the_user_said_so(tmp_path: Path, site: Site) -> None:
    session = made(tmp_path, **{"network.allow_private": ""})
    assert "is not a public address" in fetch(session, url=f"{site.url}/zebra").text and not site.asked
    anyio.run(session.close)


def test_a_failure_names_its_page_once(session: Session, site: Site) -> None:
    url = f"{site.url}/missing"
    assert fetch(session, url=url).text.startswith(f"failed {url}: cannot be fetched: the server answered 404")
