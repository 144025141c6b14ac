"""Items and sources without a store, for tests of what only thinks; and a session on a real store for the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bpe_openai
import pytest

from sandboxmcp.core.model import Outcome, Script, Source, Status, Verdict
from sandboxmcp.core.settings import load_settings
from sandboxmcp.render.extract import Numbered
from sandboxmcp.render.items import THRESHOLD, Item, Stream, short_stream
from sandboxmcp.session import Session

GOLDEN = Path(__file__).parent.parent / "golden"


class Make:
    """Builds the values that answers are made of; handles count up."""

    def __init__(self) -> None:
        self.count = 0

    def source(self, text: str, label: str = "x", **more: Any) -> Source:
        self.count += 1
        size = len(text.encode())
        facts: dict[str, Any] = {"bytes": size, "total_bytes": size, "lines": len(text.splitlines()), "chunks": 1 + size // 4000}
        facts |= {"indexed_bytes": size} | more
        return Source(f"h{self.count}", label, "batch", "log", "/project", "s", None, created_at=0.0, **facts)

    def stream(self, text: str, **more: Any) -> Stream | None:
        if not text:
            return None
        short = short_stream(self.source(text, **more), text.splitlines())
        return short if len(text.encode()) <= THRESHOLD else Stream(short.source, None, short.head, short.errors, short.tail)

    def item(self, label: str, out: str = "", err: str = "", status: Status = "ok", **more: Any) -> Item:
        facts: dict[str, Any] = {"exit_code": 0 if status == "ok" else None, "wall_s": 0.012} | more
        outcome = Outcome(Script(label, "shell", "secret code"), status, **facts)
        return Item(label, outcome, self.stream(out), self.stream(err))

    def denied(self, label: str) -> Item:
        verdict = Verdict("deny", "default", "curl-to-stdout", 3, "What it fetches would land here.", "Write it to a file.")
        return self.item(label, status="denied", verdict=verdict)


@pytest.fixture
def make() -> Make:
    return Make()


@pytest.fixture(scope="session")
def real_tokens() -> Callable[[str], int]:
    """Tokens by a real tokenizer (cl100k_base)."""
    encoding = bpe_openai.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text))


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compares with a file of tests/golden; with SANDBOXMCP_GOLDEN=write it writes the file."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if os.environ.get("SANDBOXMCP_GOLDEN") == "write":
            file.write_text(text + "\n")
        assert text + "\n" == file.read_text()

    return compare


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session on a store and a project of their own; no kernel is started by having them."""
    project = tmp_path / "project"
    project.mkdir()
    flags = {"data_dir": str(tmp_path / "data"), "workspace": str(project)}
    made = Session(load_settings(flags, environ={"HOME": str(tmp_path)}, project=project))
    yield made
    made.store.close()


@pytest.fixture
def long_lines() -> list[Numbered]:
    return [(number, f"line {number} status={'ERROR' if number % 97 == 0 else 'ok'} filler") for number in range(1, 1501)]
