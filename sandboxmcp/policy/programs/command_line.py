"""From a command line of curl or wget to the order that it comes to, or the refusal. Pure.

wget runs on curl's engine: one way through the relay, one set of budgets and one judge of redirects are easier to trust than
two, and wget 1.21 knows no SOCKS at all. What is wget's own stays so: its defaults, how it names files, its exit codes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote, urlsplit

from sandboxmcp.policy.programs.curl_options import Draft, treat
from sandboxmcp.policy.programs.options import OptionTable, read_options
from sandboxmcp.policy.programs.order import NOWHERE, STDOUT, Download, Family, FetchOrder, Kind, Option, Refusal, Retries
from sandboxmcp.policy.programs.urls import checked_url, file_name_of

_MOST_URLS = 20
_SCREEN = ("-", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2", "/proc/self/fd/1", "/proc/self/fd/2")
_QUERY_ESCAPES = {ord(letter): f"%{ord(letter):02X}" for letter in " \t\r\n#"}

Reader = Callable[[OptionTable, Sequence[str], tuple[str, ...], Kind, Kind], FetchOrder]


def read_curl(table: OptionTable, argv: Sequence[str], methods: tuple[str, ...], stdout: Kind, stderr: Kind) -> FetchOrder:
    """The order of one command line of curl, the program left out.

    Raises:
        Refusal: says why.
    """
    draft, options = _draft(table, argv, methods)
    urls = _urls(draft)
    body, query = _data(draft)
    outputs = draft.outputs + [None] * (len(urls) - len(draft.outputs)) if "all-named" in draft.flags else draft.outputs
    if len(outputs) > len(urls):
        raise Refusal("there are more outputs than URLs")
    if len(outputs) < len(urls) and stdout == "stream":
        raise Refusal("its output would land in the conversation: give every URL a file of its own, -o FILE or -O")
    places: list[str] = [_curl_place(url, name, draft.folder, stdout) for url, name in zip(urls, outputs, strict=False)]
    places += [STDOUT if stdout == "file" else NOWHERE] * (len(urls) - len(places))
    if "quiet" not in draft.flags and stderr == "stream" and set(places) != {NOWHERE}:
        raise Refusal("it is not quiet: add -sS")
    _check_headers_to(draft, urls)
    downloads = tuple(
        Download(checked_url(_with_query(url, query), draft.schemes), place) for url, place in zip(urls, places, strict=True)
    )
    return FetchOrder(
        downloads=downloads,
        options=(*draft.engine, *body, *_other_method(draft)),
        existing="number" if "keep" in draft.flags else "replace",
        create_folders="create-folders" in draft.flags,
        headers_to=draft.headers_to,
        write_out=draft.write_out,
        show_errors="silent" not in draft.flags or "show-errors" in draft.flags,
        max_redirects=int(draft.numbers.get("redirects", 20)) if "follow" in draft.flags else 0,
        max_seconds=draft.numbers.get("seconds"),
        max_bytes=_bytes(draft),
        head="head" in draft.flags or draft.method == "HEAD",
        fail="fail" in draft.flags,
        remove_on_error="remove" in draft.flags,
        schemes=draft.schemes,
        family=_family(draft),
        retries=Retries(
            int(draft.numbers.get("retries", 0)),
            draft.numbers.get("retry-delay"),
            draft.numbers.get("retry-seconds"),
            "retry-refused" in draft.flags,
            "retry-all" in draft.flags,
        ),
        shape=_shape(options),
    )


def read_wget(table: OptionTable, argv: Sequence[str], methods: tuple[str, ...], stdout: Kind, stderr: Kind) -> FetchOrder:
    """The order of one command line of wget, the program left out.

    Raises:
        Refusal: says why.
    """
    draft, options = _draft(table, argv, methods)
    urls = _urls(draft)
    if "quiet" not in draft.flags and stderr == "stream":
        raise Refusal("it is not quiet: add -q")
    if len(draft.outputs) > 1 or (draft.outputs and len(urls) > 1):
        raise Refusal("one -O FILE for one URL: wget would join several in one file")
    named = draft.outputs[0] if draft.outputs else None
    if named in _SCREEN and stdout == "stream":
        raise Refusal("its output would land in the conversation: give it a file, -O FILE")
    timeout = draft.numbers.get("timeout")
    return FetchOrder(
        downloads=tuple(Download(url, _wget_place(url, named, draft.folder, stdout)) for url in _checked(urls, draft)),
        options=(*draft.engine, *([("--connect-timeout", f"{timeout:g}")] if timeout else [])),
        existing="skip" if "keep" in draft.flags else "replace" if named else "number",
        create_folders="create-folders" in draft.flags,
        show_errors="silent" not in draft.flags,
        max_redirects=int(draft.numbers.get("redirects", 20)),
        head=draft.method == "HEAD",
        fail=True,
        schemes=draft.schemes,
        family=_family(draft),
        retries=Retries(max(0, int(draft.numbers.get("tries", 20)) - 1) if "tries" in draft.numbers else 2, 1.0),
        shape=_shape(options),
    )


READERS: Mapping[str, Reader] = {"curl": read_curl, "wget": read_wget}


def _draft(table: OptionTable, argv: Sequence[str], methods: tuple[str, ...]) -> tuple[Draft, list[str]]:
    options, operands = read_options(table, argv)
    draft = Draft(methods=methods)
    for name, value in options:
        treat(draft, table.taken[name], name, value)
    draft.urls += operands
    return draft, [name for name, _ in options]


def _urls(draft: Draft) -> list[str]:
    if not draft.urls:
        raise Refusal("no URL is given")
    if len(draft.urls) > _MOST_URLS:
        raise Refusal(f"more than {_MOST_URLS} URLs in one command")
    return draft.urls


def _checked(urls: list[str], draft: Draft) -> list[str]:
    """wget with --https-only still takes the scheme from the URL, and http is what a bare name means."""
    return [checked_url(url, draft.schemes) for url in urls]


def _data(draft: Draft) -> tuple[list[Option], list[str]]:
    """Options that send the data as a body, or the data as parts of the query."""
    if not draft.data:
        return [], []
    if "get" in draft.flags:
        return [], draft.data
    if "POST" not in draft.methods or draft.method == "GET" or "head" in draft.flags:
        raise Refusal(
            "-d sends a body, which is not allowed unless a pack's [[broker]] methods name POST; with -G it becomes a query"
        )
    return [("--data-raw", text) for text in draft.data], []


def _other_method(draft: Draft) -> list[Option]:
    return [("--request", draft.method)] if draft.method not in ("", "GET", "HEAD") and not draft.data else []


def _with_query(url: str, parts: list[str]) -> str:
    if not parts:
        return url
    bare, _, fragment = url.partition("#")
    joined = "&".join(part.translate(_QUERY_ESCAPES) for part in parts)
    return f"{bare}{'&' if '?' in bare else '?'}{joined}{'#' if fragment else ''}{fragment}"


def _curl_place(url: str, name: str | None, folder: str, stdout: Kind) -> str:
    if name is None:
        name = file_name_of(url if "://" in url else f"http://{url}")
        if not name:
            raise Refusal("-O: the URL has no file name; use -o FILE", 23)
    return _place(name, folder, stdout)


def _wget_place(url: str, name: str | None, folder: str, stdout: Kind) -> str:
    """wget names files by the decoded path, with the query; without a path it is index.html."""
    if name is not None:
        return _place(name, "", stdout)
    query = urlsplit(url).query
    name = unquote(file_name_of(url) or "index.html") + (f"?{query}" if query else "")
    return _place("".join(f"%{ord(one):02X}" if one in "/\0" or ord(one) < 32 else one for one in name), folder, stdout)


def _place(name: str, folder: str, stdout: Kind) -> str:
    if name in _SCREEN[:2]:
        if stdout == "stream":
            raise Refusal("its output would land in the conversation: name a file")
        return STDOUT if stdout == "file" else NOWHERE
    if name == NOWHERE:
        return NOWHERE
    if "\0" in name or name in _SCREEN or name.startswith(("/dev/", "/proc/", "/sys/")):
        raise Refusal(f"{name[:60]!r} is no regular file", 23)
    return posixpath.join(folder, name) if folder else name


def _check_headers_to(draft: Draft, urls: list[str]) -> None:
    if draft.headers_to is None:
        return
    if len(urls) > 1:
        raise Refusal("-D with several URLs is not supported here")
    if _place(draft.headers_to, "", "stream") == NOWHERE:
        draft.headers_to = None


def _bytes(draft: Draft) -> int | None:
    return int(draft.numbers["bytes"]) if "bytes" in draft.numbers else None


def _family(draft: Draft) -> Family:
    return "ipv4" if "ipv4" in draft.flags else "ipv6" if "ipv6" in draft.flags else "any"


def _shape(options: list[str]) -> str:
    return " ".join(dict.fromkeys(options))
