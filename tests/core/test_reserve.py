"""The room that is set aside: only where the disk is scarce, given back only where it is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.core import reserve as module
from sandboxmcp.core.reserve import Reserve


@pytest.fixture
def reserve(tmp_path: Path) -> Reserve:
    return Reserve(tmp_path / "reserve")


def test_a_disk_with_plenty_has_none(reserve: Reserve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCARCE", 0)
    reserve.hold()
    assert (list(tmp_path.iterdir()), reserve.free() > 0) == ([], True)


def test_a_scarce_disk_has_one_until_it_is_full(reserve: Reserve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SCARCE", 1 << 62)
    reserve.hold()
    reserve.hold()
    assert ([path.stat().st_size for path in tmp_path.iterdir()], reserve.release()) == ([module._BYTES], False)
    monkeypatch.setattr(module, "_FULL", 1 << 62)
    assert (reserve.release(), reserve.release(), list(tmp_path.iterdir())) == (True, False, [])


def test_a_folder_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "nowhere" / "reserve")
    reserve.hold()
    assert reserve.release() is False
