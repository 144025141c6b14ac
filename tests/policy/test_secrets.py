"""Credentials are masked wherever they stand in a stream, and nothing else is."""

import random
import re
from pathlib import Path

import pytest

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.secrets.redactor import Redactor, Shape, example_text

SHAPES = load_pack(data_folder("policies") / "secrets.toml").secrets
MASKED = [pytest.param(shape, text, id=f"{shape.name}-{n}") for shape in SHAPES for n, text in enumerate(shape.masked)]
KEPT = [pytest.param(shape, text, id=f"{shape.name}-{n}") for shape in SHAPES for n, text in enumerate(shape.kept)]
TOKEN = example_text("ghp_<36>")
KEY = b"-----BEGIN RSA PRIVATE KEY-----\n" + example_text("<64>\n") * 24 + b"-----END RSA PRIVATE KEY-----\n"


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor(SHAPES)


def test_there_are_at_least_forty_shapes_with_examples_both_ways() -> None:
    assert (len(SHAPES) >= 40, [shape.name for shape in SHAPES if not (shape.masked and shape.kept)]) == (True, [])


@pytest.mark.parametrize(("shape", "text"), MASKED)
def test_a_credential_is_masked_among_all_shapes(shape: Shape, text: str, redactor: Redactor) -> None:
    masked = redactor.masked(b"before " + example_text(text) + b" after\nnext line\n")
    assert (b"[redacted:" in masked, masked.startswith(b"before"), masked.endswith(b" after\nnext line\n")) == (True, True, True)


@pytest.mark.parametrize(("shape", "text"), KEPT)
def test_what_looks_alike_is_kept(shape: Shape, text: str) -> None:
    assert Redactor([shape]).masked(example_text(text)) == example_text(text)


def test_only_the_value_of_an_assignment_goes(redactor: Redactor) -> None:
    line = example_text('  "db_password": "<16>", "port": 5432')
    assert redactor.masked(line) == b'  "db_password": "[redacted:assigned-secret]", "port": 5432'


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20, 3 << 20])
def test_a_credential_across_pieces_is_masked(size: int, redactor: Redactor) -> None:
    data = b"x" * 9_000 + b"\n" + b"log line\n" * 120_000 + b"token " + TOKEN + b"\n" + b"more\n" * 1_000
    pieces = (data[at : at + size] for at in range(0, len(data), size)) if size > 1 else iter([data])
    whole = b"".join(redactor(pieces))
    assert (TOKEN in whole, whole.count(b"\n")) == (False, data.count(b"\n"))


def test_a_private_key_keeps_its_lines_and_loses_its_body(redactor: Redactor) -> None:
    masked = redactor.masked(b"a\n" + KEY + b"b\n")
    assert masked.split(b"\n")[1:4] == [b"-----BEGIN RSA PRIVATE KEY-----", b"[redacted:private-key]", b"[redacted:private-key]"]
    assert (example_text("<64>") in masked, masked.count(b"\n")) == (False, KEY.count(b"\n") + 2)


def test_a_private_key_across_pieces_and_one_without_an_end(redactor: Redactor) -> None:
    filler = b"line of a log\n" * 80_000
    cut = KEY.split(b"-----END")[0]
    masked = b"".join(redactor([filler + KEY[:400], KEY[400:] + filler, cut]))
    assert (example_text("<64>") in masked, masked.count(b"\n")) == (False, (filler + KEY + filler + cut).count(b"\n"))


def test_a_line_without_an_end_is_not_held_back_for_ever(redactor: Redactor) -> None:
    pieces = [b"{" + b"x" * 1_000 + b'"k":1,' for _ in range(4_000)]
    out = list(redactor(pieces))
    assert (len(out) > 2, b"".join(out) == b"".join(pieces)) == (True, True)


def test_random_bytes_pass_unchanged(redactor: Redactor) -> None:
    data = random.Random(4).randbytes(1 << 20)
    assert b"".join(redactor([data])) == data


def test_a_text_keeps_bytes_that_are_no_utf8(redactor: Redactor) -> None:
    text = b"\xff ".decode("utf-8", "surrogateescape") + TOKEN.decode()
    assert redactor.text(text) == b"\xff [redacted:github-token]".decode("utf-8", "surrogateescape")


BROKEN = {
    "masks-nothing": ('masked = ["zz-<20>"]', 'masked = ["zy-<20>"]', "'zy-<20>' is not masked"),
    "masks-too-much": ('kept = ["zz-<3>"]', 'kept = ["zz-<30>"]', "'zz-<30>' is masked"),
    "explodes": ("pattern = 'zz-\\w{20}'", "pattern = 'zz-(\\w+)+$'", "may take very long"),
    "no-examples": ('kept = ["zz-<3>"]\n', "", "lacks 'kept'"),
}
PACK = """[pack]
name = "own"
[[secret]]
name = "zz"
anchors = ["zz-"]
pattern = 'zz-\\w{20}'
masked = ["zz-<20>"]
kept = ["zz-<3>"]
"""


@pytest.mark.parametrize(("old", "new", "what"), BROKEN.values(), ids=BROKEN)
def test_a_shape_that_disagrees_with_its_examples_breaks_its_pack(old: str, new: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(PACK.replace(old, new, 1))
    with pytest.raises(BrokenPack, match=what.replace("<", r"<")):
        load_pack(tmp_path / "own.toml")


@pytest.mark.parametrize(("shape", "text"), MASKED)
def test_spans_cover_what_is_masked(shape: Shape, text: str, redactor: Redactor) -> None:
    data = b"before " + example_text(text) + b" after\nnext line\n"
    hidden = bytearray(data)
    for start, end in redactor.spans(data):
        hidden[start:end] = b"*" * (end - start)
    kept = [part for part in re.split(rb"\[redacted:[\w-]+\]", redactor.masked(data)) if part]
    assert re.fullmatch(rb"\*+".join(map(re.escape, kept)), bytes(hidden)) is not None


def test_spans_of_many_keys_without_an_end_are_few(redactor: Redactor) -> None:
    data = KEY.split(b"-----END")[0] * 50
    assert redactor.spans(data)[0][0] == len(b"-----BEGIN RSA PRIVATE KEY-----")
    assert len(redactor.spans(data)) <= 50
