"""Many files in few transactions: all of them or none, in their order, and none is half there."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.index import bulk_add as module
from sandboxmcp.store.store import Store

P = Scope("p")


def _new(file: Path) -> NewSource:
    return NewSource(file.name, "file", "p", "s", path=str(file))


def _files(folder: Path, *texts: str) -> list[Path]:
    files = [folder / f"n{number}.txt" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    return files


def _left(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith(".draft-") or path.suffix == ".zst"]


def test_files_come_back_in_their_order_those_that_were_there_too(store: Store, tmp_path: Path) -> None:
    files = _files(tmp_path, "the zebra runs\n", "the zebra sleeps\n", "", "the zebra runs\n")
    known = store.add(_new(files[1]), files[1])
    with store.together() as batch:
        assert [batch.add(_new(file), file) is None for file in files] == [True, False, True, True]
    assert [(one.label, one.unchanged) for one in batch.sources] == [
        ("n0.txt", False),
        ("n1.txt", True),
        ("n2.txt", False),
        ("n3.txt", False),
    ]
    assert {hit.handle for hit in store.search("zebra", P)} == {batch.sources[0].handle, known.handle, batch.sources[3].handle}


def test_each_file_has_its_own_lines_counts_and_words(store: Store, tmp_path: Path) -> None:
    files = _files(tmp_path, "the zebra runs\n" * 9, "a giraffe sleeps\n" * 5)
    alone = [store.add(NewSource(file.name, "text", "q", "s"), file) for file in files]
    with store.together() as batch:
        for file in files:
            batch.add(_new(file), file)
    facts = [(one.lines, one.bytes, one.chunks, store.terms(one.handle)) for one in (*alone, *batch.sources)]
    assert facts[:2] == facts[2:] and facts[0][3] == ["runs", "zebra"]


def test_files_of_many_passages_are_each_indexed_under_their_own_handle(store: Store, tmp_path: Path) -> None:
    names = [f"zeb{chr(97 + number // 20)}{chr(97 + number % 20)}ra" for number in range(40)]
    files = _files(
        tmp_path, *("".join(f"{name} {chr(97 + n % 26) * 3}{name}{chr(97 + n // 26)} runs\n" for n in range(500)) for name in names)
    )
    with store.together() as batch:
        for file in files:
            batch.add(_new(file), file)
    assert [{hit.handle for hit in store.search(name, P)} for name in names] == [{one.handle} for one in batch.sources]
    assert {(one.lines, one.chunks) for one in batch.sources} == {(500, batch.sources[0].chunks)}


def test_a_block_left_by_an_exception_stores_nothing_of_what_was_only_captured(store: Store, tmp_path: Path) -> None:
    (file,) = _files(tmp_path, "the zebra runs\n")
    with pytest.raises(KeyError), store.together() as batch:
        batch.add(_new(file), file)
        assert store.sources(P) == []
        raise KeyError
    assert (store.sources(P), batch.sources, _left(tmp_path)) == ([], [], [])


def test_many_files_are_stored_a_few_at_a_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 2)
    files = _files(tmp_path, *(f"zebra {number}\n" for number in range(5)))
    counts = []
    with store.together() as batch:
        for file in files:
            batch.add(_new(file), file)
            counts.append(len(store.sources(P)))
    assert (counts, len(store.sources(P))) == ([0, 2, 2, 4, 4], 5)


def test_a_file_that_changes_between_two_batches_is_replaced(store: Store, tmp_path: Path) -> None:
    (file,) = _files(tmp_path, "the zebra runs\n")
    for text in ("the zebra runs\n", "the giraffe sleeps\n"):
        file.write_text(text)
        with store.together() as batch:
            batch.add(_new(file), file)
    assert [hit.text for hit in store.search("zebra giraffe", P)] == ["the giraffe sleeps"]


def test_without_its_mask_every_file_is_kept_beside_as_it_was(tmp_path: Path) -> None:
    (file,) = _files(tmp_path, "password zebra\n")
    with Store(
        tmp_path / "data", mask=lambda pieces: (piece.replace(b"zebra", b"*****") for piece in pieces), keep_raw=True
    ) as store:
        with store.together() as batch:
            batch.add(_new(file), file)
        (source,) = batch.sources
        assert (store.read_lines(source.handle, 1, 1), (tmp_path / "data" / "raw" / source.handle).read_text()) == (
            ["password *****"],
            "password zebra\n",
        )
