"""A store that is given a mask keeps, finds and returns only what the mask leaves."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sandboxmcp.core.model import NewSource, Scope
from sandboxmcp.store.store import Store

NEW = NewSource("out", "execute", "p", "s", total_bytes=34)
TEXT = b"first line\npin 1234567 here\nthird\n"


def _mask(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return (piece.replace(b"1234567", b"[pin]") for piece in pieces)


def test_what_is_masked_is_nowhere_in_the_store(tmp_path: Path) -> None:
    with Store(tmp_path, mask=_mask) as store:
        source = store.add(NEW, TEXT)
        assert store.read_lines(source.handle, 1, 3) == ["first line", "pin [pin] here", "third"]
        assert b"".join(store.raw(source.handle)) == TEXT.replace(b"1234567", b"[pin]")
        assert (store.search("1234567", Scope("p")), source.bytes, source.total_bytes) == ([], 32, 32)
    assert not (tmp_path / "raw").exists()


def test_raw_output_is_kept_beside_it_when_asked_for_and_goes_with_its_source(tmp_path: Path) -> None:
    with Store(tmp_path, mask=_mask, keep_raw=True) as store:
        source, other = store.add(NEW, TEXT), store.add(NEW, b"nothing to mask\n")
        kept = tmp_path / "raw" / source.handle
        assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (TEXT, 0o600)
        assert not (tmp_path / "raw" / other.handle).exists()
        store.forget([source.handle])
        assert not kept.exists()


def test_a_masked_file_that_did_not_change_is_recognised(tmp_path: Path) -> None:
    new = NewSource("f", "file", "p", "s", path="/f")
    with Store(tmp_path, mask=_mask) as store:
        first, second = store.add(new, TEXT), store.add(new, TEXT)
    assert (second.handle, second.unchanged) == (first.handle, True)


def test_pictures_are_left_alone_and_not_indexed(tmp_path: Path) -> None:
    with Store(tmp_path, mask=_mask) as store:
        source = store.add(NewSource("p", "artifact", "p", "s", mime="image/png"), TEXT)
        assert (b"".join(store.raw(source.handle)), source.chunks) == (TEXT, 0)
        assert (store.repair().sources, store.get(source.handle).chunks) == (1, 0)


def test_labels_and_paths_are_masked_before_they_are_stored(tmp_path: Path) -> None:
    with Store(tmp_path, mask=_mask) as store:
        source = store.add(NewSource("pin 1234567", "file", "p", "s", path="/home/1234567/f"), b"a text\n")
        again = store.add(NewSource("pin 1234567", "file", "p", "s", path="/home/1234567/f"), b"a text\n")
        assert (source.label, again.handle, again.unchanged) == ("pin [pin]", source.handle, True)
    held = [file.name for file in tmp_path.rglob("*") if file.is_file() and b"1234567" in file.read_bytes()]
    assert held == []


SPELT = {
    "page.html": "<html><body><p>needle <span>123</span>4567</p><h1>1&#50;34567</h1></body></html>\n",
    "data.json": '{"needle": "\\u0031234567", "other": [1, 2]}\n',
    "data.xml": "<?xml version='1.0'?><a><needle>1234&#53;67</needle></a>\n",
}


@pytest.mark.parametrize("name", SPELT)
def test_what_is_whole_only_without_tags_and_escapes_is_masked_in_the_index(tmp_path: Path, name: str) -> None:
    with Store(tmp_path / "store", mask=_mask) as store:
        store.add(NewSource(name, "file", "p", "s", path=f"/{name}"), SPELT[name])
        shown = [hit.text + hit.title for query in ("needle", "1234567") for hit in store.search(query, Scope("p"))]
    assert shown and not [text for text in shown if "1234567" in text]
    assert not [file for file in (tmp_path / "store").rglob("*") if file.is_file() and b"1234567" in file.read_bytes()]
