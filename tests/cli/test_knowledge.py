"""What is stored, from the command line: pages fetched, sources purged after a preview, a wrecked index mended."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


class _Page(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        body = b"# Animals\n\nThe zebra runs.\n"
        self.send_response(200 if self.path == "/animals" else 404)
        self.send_header("Content-Type", "text/markdown")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server on this machine, which the settings allow to be reached."""
    monkeypatch.setenv("SANDBOXMCP_NETWORK_ALLOW_PRIVATE", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_fetched_page_is_found_and_a_second_fetch_comes_from_the_store(say: Any, site: str) -> None:
    first = say("fetch", f"{site}/animals", "--source", "animals", "--intent", "what runs", "--json")
    assert (first.code, first.document["pages"][0]["what"]) == (0, "fetched")
    assert "| The zebra runs." in say("search", "zebra", "--source", "animals").out
    again = [say("fetch", f"{site}/animals", "--source", "animals", *more, "--json") for more in ((), ("--force",))]
    assert [one.document["pages"][0]["what"] for one in again] == ["cached", "unchanged"]


def test_a_page_that_is_not_there_is_an_error(say: Any, site: str) -> None:
    said = say("fetch", f"{site}/nothing")
    assert (said.code != 0, "404" in said.out + said.err) == (True, True)


def test_what_is_purged_was_shown_before_and_is_gone_after(say: Any) -> None:
    for name in ("zebra", "giraffe"):
        say("index", "-", "--source", name, stdin=f"the {name} runs\n".encode())
    preview = say("purge", "source", "--source", "zeb", "--json").document
    assert say("search", "zebra", "--json").document["queries"][0]["hits"]
    assert say("purge", "--confirm", preview["confirm"]).code == 0
    assert [say("search", name, "--json").document["queries"][0]["hits"] == [] for name in ("zebra", "giraffe")] == [True, False]
    assert say("purge", "--confirm", preview["confirm"]).code == 2


def test_a_query_that_is_not_utf_8_is_searched_without_what_is_not(say: Any) -> None:
    say("index", "-", "--source", "zebra", stdin=b"the zebra runs\n")
    assert "| the zebra runs" in say("search", "zebra \udced\udca0").out
    assert say("search", "\udced\udca0", "--json").document["queries"][0]["query"] == "??"


@pytest.mark.usefixtures("sandbox")
def test_a_wrecked_index_is_mended_by_doctor(say: Any, tmp_path: Path) -> None:
    say("index", "-", "--source", "animals", stdin=b"the zebra runs\n")
    with sqlite3.connect(tmp_path / "data" / "sandboxmcp.db") as connection:
        connection.execute("DELETE FROM passages_fts_data WHERE id > 10")
        connection.execute("DELETE FROM words")
    connection.close()
    said = say("doctor", "--repair")
    assert (said.code, "indexed 1 source anew from the captures" in said.out) == (0, True)
    assert "| the zebra runs" in say("search", "zebar").out


@pytest.mark.usefixtures("sandbox")
def test_a_damaged_database_is_mended_by_doctor(say: Any, tmp_path: Path) -> None:
    say("index", "-", "--source", "animals", stdin=b"the zebra runs\n")
    database = tmp_path / "data" / "sandboxmcp.db"
    with database.open("r+b") as file:
        file.write(b"no database" * 1_000)
    assert "sandboxmcp doctor --repair" in say("search", "zebra").err
    said = say("doctor", "--repair")
    assert (said.code, "the database was damaged: 0 sources could be read, and 1 capture without its row" in said.out) == (0, True)
    assert "| the zebra runs" in say("search", "zebra", "--scope", "all").out


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize("words", [["fetch", f"http://127.0.0.1:9/x?key={TOKEN}"], ["index", f"https://h/{TOKEN}"]])
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_no_error_repeats_a_credential_that_was_typed(say: Any, words: list[str], more: list[str]) -> None:
    said = say(*words, *more)
    assert (said.code != 0, TOKEN in said.out + said.err) == (True, False)
