"""A real store in a temporary folder, and the shortest way to put something into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.store.store import Store

Add = Callable[..., Source]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "data") as store:
        yield store


@pytest.fixture
def add(store: Store) -> Add:
    """add(content, label="x", origin="execute", project="p", …) stores a source."""

    def add(content: bytes | str | Path, label: str = "x", origin: str = "execute", project: str = "p", **more: object) -> Source:
        consume = bool(more.pop("consume", False))
        new = NewSource(label, origin, project, str(more.pop("session", "s")), **more)  # type: ignore[arg-type]
        return store.add(new, content, consume=consume)

    return add
