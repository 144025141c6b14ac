"""Reads a fetched page in a worker process: what a server chose to send may not hold the host up, nor use up its memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from sandboxmcp.core.errors import UsageError
from sandboxmcp.store.readers.page_text import decoded, page_text, recognised
from sandboxmcp.store.readers.worker import Lost, Workers

MOST_S = 30.0
"""Processor time; readers of HTML have inputs of a few kilobytes that take them minutes."""
_MOST_S_OF_PDF = 120.0
_MOST_S_PLAIN = 15.0
_MOST_BYTES = 64 << 20
"""Of the text of a page. Lists in lists and tables may have much more text than the page has."""
_PIECE = 1 << 20
_QUICK = ("text/plain", "text/markdown", "text/csv")
"""Kept as they are: nothing is read that could take long."""


class PageText(NamedTuple):
    """The text of a page and what it then is (a media type). `plain`: only its words, since its structure took too long to read."""

    text: str
    mime: str
    plain: bool = False


def read_page(workers: Workers, content: bytes, mime: str, charset: str, url: str) -> PageText:
    """What `page_text` gives; of a page that takes too long, or too much memory, its words alone.

    Raises:
        UsageError: it is neither text nor PDF, or a PDF that cannot be read within the limits.
    """
    mime = recognised(content, mime)
    if mime in _QUICK:
        return PageText(*page_text(content, mime, charset, url))
    order = {"order": "page", "mime": mime, "charset": charset, "url": url}
    try:
        return _ordered(workers, order, content, plain=False)
    except Lost:
        if mime == "application/pdf":
            raise UsageError(f"{url} is a PDF that takes too long, or too much memory, to be read") from None
    try:
        return _ordered(workers, order, content, plain=True)
    except Lost:
        return PageText(decoded(content, charset), "text/plain", plain=True)


def _ordered(workers: Workers, order: dict[str, Any], content: bytes, *, plain: bool) -> PageText:
    cpu_s = _MOST_S_PLAIN if plain else _MOST_S_OF_PDF if order["mime"] == "application/pdf" else MOST_S
    with tempfile.TemporaryFile() as file:
        found = workers.run({**order, "plain": plain}, _pieces(content), file, cpu_s=cpu_s, most_bytes=_MOST_BYTES)
        if "refused" in found:
            raise UsageError(found["refused"], found["fix"])
        return PageText(_text(file), found["mime"], found["mime"] == "text/plain")


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(_MOST_BYTES).decode(errors="surrogatepass")


def _pieces(content: bytes) -> Iterator[bytes]:
    return (content[start : start + _PIECE] for start in range(0, len(content), _PIECE))
