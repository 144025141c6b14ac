"""Captures on disk: any line range of any content, read back as written."""

from __future__ import annotations

import hashlib
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxmcp.core.errors import StoreError
from sandboxmcp.store.captures import captures as module
from sandboxmcp.store.captures.captures import Captures


@pytest.fixture
def kept(tmp_path):
    """kept(content) writes a capture and returns its folder and digest."""
    folder = Captures(tmp_path / "captures")

    def keep(*pieces: bytes):
        draft = folder.write(pieces)
        folder.keep(draft)
        return folder, draft

    return keep


def test_a_capture_is_named_by_its_content_and_counts_its_lines(kept):
    folder, draft = kept(b"a\nb", b"\nc")
    assert (draft.digest, draft.bytes, draft.lines) == (hashlib.sha256(b"a\nb\nc").hexdigest(), 5, 3)
    assert folder.path(draft.digest).name == f"{draft.digest}.zst"
    assert not draft.path.exists()


@pytest.mark.parametrize(("content", "lines"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2)], ids=repr)
def test_lines_are_counted_by_line_ends_and_a_rest(kept, content, lines):
    folder, draft = kept(content)
    with folder.open(draft.digest) as capture:
        assert (draft.lines, capture.lines, capture.size) == (lines, lines, len(content))
        assert [line for _, line, _ in capture.raw_lines()] == content.splitlines()


@given(
    st.lists(st.sampled_from([b"\n", b"x", b"yy\n", b"z" * 9, b"\n\n", b"abc\ndef"]), max_size=40).map(b"".join),
    st.integers(1, 40),
    st.integers(0, 10),
)
@settings(max_examples=150)
def test_any_line_range_is_read_as_written_whatever_the_blocks(tmp_path_factory, data, first, more):
    lines = data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 7)
        folder = Captures(tmp_path_factory.mktemp("c"))
        draft = folder.write([data])
        folder.keep(draft)
        with folder.open(draft.digest) as capture:
            got = [(number, line) for number, line, _ in capture.raw_lines(first, first + more)]
            starts = [capture.line_at(offset) for offset in range(len(data))]
    assert got == list(enumerate(lines, 1))[first - 1 : first + more]
    assert starts == [1 + data[:offset].count(b"\n") for offset in range(len(data))]


def test_a_line_range_does_not_inflate_the_whole(kept, monkeypatch):
    folder, draft = kept(b"".join(b"line %d\n" % n for n in range(400_000)))
    with folder.open(draft.digest) as capture:
        inflated: list[int] = []
        real = capture._inflated
        monkeypatch.setattr(capture, "_inflated", lambda number: (inflated.append(number), real(number))[1])
        assert [line for _, line, _ in capture.raw_lines(300_000, 300_001)] == [b"line 299999", b"line 300000"]
    assert len(set(inflated)) <= 2


def test_of_a_long_line_only_what_is_asked_is_kept(kept):
    folder, draft = kept(b"x" * 1_000_000 + b"\nnext\n")
    with folder.open(draft.digest) as capture:
        assert list(capture.raw_lines(1, 2, keep=3)) == [(1, b"xxx", 999_997), (2, b"nex", 1)]


def test_the_file_is_a_plain_zstandard_file(kept):
    if shutil.which("zstd") is None:
        pytest.skip("no zstd program here")
    content = b"hello\n" * 200_000
    folder, draft = kept(content)
    assert subprocess.run(["zstd", "-dc", folder.path(draft.digest)], capture_output=True, check=True).stdout == content


def test_the_same_content_is_stored_once(kept, tmp_path):
    kept(b"same")
    kept(b"same")
    assert [path.name for path in (tmp_path / "captures").rglob("*") if path.is_file()] == [
        f"{hashlib.sha256(b'same').hexdigest()}.zst"
    ]


def test_input_that_fails_leaves_nothing_behind(tmp_path):
    def broken():
        yield b"a"
        raise ValueError("gone")

    with pytest.raises(ValueError, match="gone"):
        Captures(tmp_path / "captures").write(broken())
    assert list((tmp_path / "captures").iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"x" * 100, None], ids=["empty", "other bytes", "one bit"])
def test_a_damaged_capture_is_a_store_error(kept, damage):
    folder, draft = kept(b"some content that is long enough to be damaged\n" * 100)
    path = folder.path(draft.digest)
    whole = path.read_bytes()
    path.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:] if damage is None else damage)
    with pytest.raises(StoreError, match="cannot be read"), folder.open(draft.digest) as capture:
        list(capture.read())
