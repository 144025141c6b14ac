"""URLs as the broker takes them: http and https, ASCII, a host in its one plain spelling, no credentials. Pure."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from sandboxmcp.policy.programs.addresses import host_problem
from sandboxmcp.policy.programs.order import Refusal

_MOST_LETTERS = 8192
_MALFORMED = 3
"""curl's exit code for a URL that it cannot read; wget has 1 for everything of the kind."""


def checked_url(text: str, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """The URL with its scheme.

    Raises:
        Refusal: says what is wrong with it.
    """
    if len(text) > _MOST_LETTERS:
        raise Refusal(f"a URL of more than {_MOST_LETTERS:,} letters", _MALFORMED)
    if not text.isascii():
        raise Refusal("the URL is not ASCII: percent-encode its path, and punycode its host", _MALFORMED)
    if any(ord(letter) <= 32 or ord(letter) == 127 or letter == "\\" for letter in text):
        raise Refusal("the URL has blanks, control characters or backslashes: percent-encode them", _MALFORMED)
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError as error:
        raise Refusal(f"the URL cannot be read: {error}", _MALFORMED) from None
    if parts.scheme.lower() not in schemes:
        raise Refusal(f"the scheme {parts.scheme[:20]!r} is not allowed: only {' and '.join(schemes)}", 1)
    if "@" in parts.netloc:
        raise Refusal("credentials in the URL are not allowed: use -u USER:PASSWORD or a header", _MALFORMED)
    if problem := host_problem(host) if host else "it has no host":
        raise Refusal(f"the URL is refused: {problem}", _MALFORMED)
    if port == 0:
        raise Refusal("the URL is refused: 0 is no port", _MALFORMED)
    return url


def host_of(url: str) -> str:
    """Host and port of a checked URL, as `host:port`."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme.lower() == 'https' else 80)}"


def file_name_of(url: str) -> str:
    """The last part of the path; empty when there is none that could name a file."""
    name = urlsplit(url).path.rsplit("/", 1)[-1]
    return "" if name in ("", ".", "..") or "\0" in unquote(name) else name
