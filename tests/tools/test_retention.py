"""What is old goes when the store is opened: captures and pages, never files and texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.store.store import Store


@pytest.mark.parametrize(("days", "left"), [("14", {"file", "text"}), ("0", {"execute", "page", "file", "text"})])
def test_old_captures_and_pages_go_and_files_and_texts_stay(tmp_path: Path, days: str, left: set[str]) -> None:
    with Store(tmp_path / "data") as store:
        for origin in ("execute", "page", "file", "text"):
            store.add(NewSource(origin, origin, str(tmp_path), "s"), f"text of {origin}\n")
        with store._database.writing() as connection:
            connection.execute("UPDATE sources SET created_at = created_at - 15 * 86400")
    flags = {"data_dir": str(tmp_path / "data"), "workspace": str(tmp_path), "retention.captures": days, "retention.pages": days}
    session = Session(load_settings(flags, environ={}, project=tmp_path))
    assert {one.label for one in session.store.sources(Scope(None))} == left
    session.store.close()
