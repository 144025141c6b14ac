"""Texts in UTF-16 told from binary data that begin alike."""

from __future__ import annotations

import random

import pytest

from sandboxmcp.store.captures.content import Content, is_utf16

TEXTS = {
    "English": "the zebra runs\r\nand sleeps\r\n",
    "Russian": "зебра бежит по полю\n",
    "Chinese with Latin": "斑马在草原上奔跑，然后休息 zebra\n",
    "Japanese": "シマウマは草原を走る。その後、休む。\n",
    "coloured": "\x1b[31mred zebra\x1b[0m\n",
    "one letter": "x",
    "nothing": "",
}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_with_its_mark_becomes_utf_8(text: str, encoding: str) -> None:
    data = f"\ufeff{text}".encode(encoding)
    assert (is_utf16(data, len(data)), b"".join(Content(data).pieces())) == (True, text.encode())


def test_a_text_that_was_cut_in_the_middle_of_a_character_is_still_one() -> None:
    data = "\ufeffthe zebra runs".encode("utf-16-le") + b"\n"
    assert b"".join(Content(data).pieces()).startswith(b"the zebra runs")


@pytest.mark.parametrize("size", [65, 256, 5_000, 60_001])
def test_random_bytes_with_the_mark_stay_bytes(size: int) -> None:
    draw = random.Random(size)
    for mark in (b"\xff\xfe", b"\xfe\xff"):
        data = mark + draw.randbytes(size)
        assert (is_utf16(data, len(data)), b"".join(Content(data).pieces())) == (False, data)


BINARY = {
    "a table of numbers": b"\xff\xfe" + bytes(range(256)) * 8,
    "small numbers": b"\xff\xfe" + b"".join(n.to_bytes(2, "little") for n in range(1, 40)),
    "UTF-8 behind it": b"\xff\xfe" + b"the zebra runs and sleeps, as zebras do in the long grass\n",
}


@pytest.mark.parametrize("data", BINARY.values(), ids=BINARY)
def test_other_data_with_the_mark_stay_bytes(data: bytes) -> None:
    assert b"".join(Content(data).pieces()) == data
