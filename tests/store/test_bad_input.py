"""Texts that nobody would write: each is kept byte for byte, found by a word at its end, and cited by lines that exist."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sandboxmcp.core.model import Scope
from sandboxmcp.store.store import Store

P = Scope("p")


def _deep(levels: int) -> Any:
    return {"level": _deep(levels - 1), "name": f"n{levels}"} if levels else {"found": "rhinoceros"}


TEXTS: dict[str, Callable[[], bytes]] = {
    "a megabyte on one line": lambda: b" ".join(b"w%d" % n for n in range(150_000)) + b" rhinoceros",
    "a megabyte without a blank": lambda: b"A1b2" * 250_000 + b" rhinoceros",
    "binary": lambda: bytes(range(256)) * 2_000 + b"\nrhinoceros\n",
    "nothing but NUL": lambda: b"\0" * 1_000_000 + b"\nrhinoceros",
    "lone surrogates": lambda: "half \ud800 of \udfff it\nrhinoceros\n".encode("utf-8", "surrogatepass") * 10,
    "half of UTF-16": lambda: b"\xff\xfe" + "rhinoceros".encode("utf-16-le") + b"\x00",
    "JSON of 40 levels": lambda: json.dumps(_deep(40)).encode(),
    "JSON of 40 levels, indented": lambda: json.dumps(_deep(40), indent=1).encode(),
    "JSON deeper than Python reads": lambda: b'{"a":' * 100_000 + b'"rhinoceros"' + b"}" * 100_000,
    "CSV with a column of megabytes": lambda: b"id,what\n1," + b"x y " * 750_000 + b"\n2,rhinoceros\n",
    "10,000 equal headings": lambda: b"# Same\n\ntext\n\n" * 10_000 + b"# Same\n\nrhinoceros\n",
    "10,000 headings in each other": lambda: (
        b"".join(b"%s Same\n\n" % (b"#" * (1 + n % 6)) for n in range(10_000)) + b"rhinoceros\n"
    ),
    "carriage returns": lambda: b"state\r" * 200_000 + b"rhinoceros\n",
    "escapes that never end": lambda: b"\x1b]0;" * 100_000 + b"\nrhinoceros\n",
    "tags that never end": lambda: b"<html>" + b"<div " * 100_000 + b"\n<p>rhinoceros</p>\n",
    "one letter a line": lambda: b"a\n" * 200_000 + b"rhinoceros\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_kept_and_found(store: Store, add: Any, name: str) -> None:
    content = TEXTS[name]()
    source = add(content)
    found = store.search("rhinoceros", P)
    assert found and "rhinoceros" in "".join(hit.text for hit in found)
    assert all(1 <= hit.first_line <= hit.last_line <= source.lines and len(hit.text) < 5_000 for hit in found)
    if name != "half of UTF-16":
        assert b"".join(store.raw(source.handle)) == content
