"""What the broker does with each option that it takes. A treatment is a word with arguments, as the tables of programs.toml
spell it.

Each one checks the value it is given and adds to the order; nothing of a command line reaches the real curl by any other way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sandboxmcp.policy.programs.order import Option, Refusal

_MOST_LETTERS = 4000
_HEADERS_OF_OURS = frozenset(
    "connection content-length expect host keep-alive proxy-authorization proxy-connection te trailer transfer-encoding "
    "upgrade".split()
)
"""They steer the connection, name another host, or would be read differently by two servers in a row (request smuggling)."""
_WRITE_OUT = frozenset(
    "content_type errormsg exitcode filename_effective http_code http_version method num_redirects response_code scheme "
    "size_download size_header speed_download time_appconnect time_connect time_namelookup time_pretransfer time_redirect "
    "time_starttransfer time_total url url_effective".split()
)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(slots=True)
class Draft:
    """What has been read so far of one command line."""

    methods: tuple[str, ...]
    engine: list[Option] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    """None: named after the URL."""
    data: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    method: str = ""
    folder: str = ""
    numbers: dict[str, float] = field(default_factory=dict)
    headers_to: str | None = None
    write_out: str | None = None
    schemes: tuple[str, ...] = ("http", "https")


Treatment = Callable[[Draft, str, list[str]], None]
"""(draft, value or empty, arguments of the treatment). Raises Refusal."""


def treat(draft: Draft, treatment: str, option: str, value: str | None) -> None:
    """Carry out one option.

    Raises:
        Refusal: its value is not allowed; names the option.
    """
    word, *arguments = treatment.split(" ")
    given = value or ""
    if "\0" in given or len(given) > _MOST_LETTERS:
        raise Refusal(f"option {option} has a value of more than {_MOST_LETTERS:,} letters, or one with a NUL")
    try:
        (VALUES if value is not None else FLAGS)[word](draft, given, arguments)
    except Refusal as refusal:
        raise Refusal(f"option {option}: {refusal}", refusal.code) from None


def treatment_problem(treatment: str, valued: bool) -> str:
    """What is wrong with a treatment as a table spells it; empty when nothing is."""
    word, *arguments = treatment.split(" ")
    known = VALUES if valued else FLAGS
    if word not in known:
        return f"{word!r} is no treatment of an option {'with' if valued else 'without'} a value: {', '.join(sorted(known))}"
    if word in ("text", "engine") and (not arguments or not arguments[0].startswith("-")):
        return f"{word!r} wants an option of curl"
    if word == "text" and len(arguments) > 1:
        try:
            re.compile(" ".join(arguments[1:]))
        except re.error as error:
            return f"{arguments[1]!r} is not a regular expression: {error}"
    if word in ("number", "whole") and (len(arguments) != 3 or not all(_is_number(text) for text in arguments[1:])):
        return f"{word!r} wants a name, the least and the most"
    return ""


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?", text) is not None


def _engine(draft: Draft, _value: str, arguments: list[str]) -> None:
    draft.engine += [(argument,) for argument in arguments]


def _flag(draft: Draft, _value: str, arguments: list[str]) -> None:
    draft.flags.update(arguments)


def _nothing(_draft: Draft, _value: str, _arguments: list[str]) -> None:
    """Taken, and without effect here."""


def _named_after_url(draft: Draft, _value: str, _arguments: list[str]) -> None:
    draft.outputs.append(None)


def _output(draft: Draft, value: str, _arguments: list[str]) -> None:
    if not value:
        raise Refusal("the name of the file is empty")
    draft.outputs.append(value)


def _folder(draft: Draft, value: str, arguments: list[str]) -> None:
    draft.folder = value
    draft.flags.update(arguments)


def _url(draft: Draft, value: str, _arguments: list[str]) -> None:
    draft.urls.append(value)


def _data(draft: Draft, value: str, arguments: list[str]) -> None:
    if value.startswith("@") and "raw" not in arguments:
        raise Refusal("`@FILE` reads a file and sends it: give the text itself")
    draft.data.append(value)


def _method(draft: Draft, value: str, _arguments: list[str]) -> None:
    if value not in draft.methods:
        raise Refusal(f"the method {value[:20]!r} is not allowed: only {', '.join(draft.methods)}")
    draft.method = value


def _header(draft: Draft, value: str, _arguments: list[str]) -> None:
    if value.startswith("@"):
        raise Refusal("`@FILE` reads a file and sends it: give the header itself")
    name, _, rest = value.replace(";", ":", 1).partition(":") if ":" not in value else value.partition(":")
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not _one_line(rest):
        raise Refusal("it is not of the form `Name: value`")
    if name.lower() in _HEADERS_OF_OURS:
        raise Refusal(f"the header {name!r} may not be set")
    draft.engine.append(("--header", value))


def _cookie(draft: Draft, value: str, _arguments: list[str]) -> None:
    if "=" not in value or not _one_line(value):
        raise Refusal("a value without `=` is a file to read: give NAME=VALUE")
    draft.engine.append(("--cookie", value))


def _user(draft: Draft, value: str, _arguments: list[str]) -> None:
    if ":" not in value or not _one_line(value):
        raise Refusal("it wants USER:PASSWORD, since nobody can be asked")
    draft.engine.append(("--user", value))


def _text(draft: Draft, value: str, arguments: list[str]) -> None:
    pattern = " ".join(arguments[1:])
    if value.startswith("@") or not _one_line(value) or (pattern and not re.fullmatch(pattern, value)):
        raise Refusal(f"{value[:60]!r} is not a value that it may have")
    draft.engine.append((arguments[0], value))


def _number(draft: Draft, value: str, arguments: list[str]) -> None:
    """`number NAME LEAST MOST`: into the draft's numbers, or to curl when NAME is one of its options."""
    name, least, most = arguments
    if not re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", value) or not float(least) <= float(value) <= float(most):
        raise Refusal(f"it wants a number from {least} to {most}, not {value[:40]!r}")
    _keep(draft, name, float(value))


def _whole(draft: Draft, value: str, arguments: list[str]) -> None:
    name, least, most = arguments
    if not re.fullmatch(r"\d{1,9}", value) or not int(least) <= int(value) <= int(most):
        raise Refusal(f"it wants a whole number from {least} to {most}, not {value[:40]!r}")
    _keep(draft, name, int(value))


def _keep(draft: Draft, name: str, number: float) -> None:
    if name.startswith("-"):
        draft.engine.append((name, f"{number:g}"))
    else:
        draft.numbers[name] = number


def _size(draft: Draft, value: str, arguments: list[str]) -> None:
    match = re.fullmatch(r"(\d{1,15})([kKmMgGtT]?)", value)
    if match is None or not int(match[1]):
        raise Refusal(f"it wants a size above 0, not {value[:40]!r}")
    draft.numbers[arguments[0]] = int(match[1]) * _UNITS[match[2].lower()]


def _schemes(draft: Draft, value: str, _arguments: list[str]) -> None:
    named = tuple(value.removeprefix("=").split(","))
    if not named or not set(named) <= {"http", "https"}:
        raise Refusal("it may name only http and https")
    draft.schemes = tuple(one for one in draft.schemes if one in named)


def _https_only(draft: Draft, _value: str, _arguments: list[str]) -> None:
    draft.schemes = ("https",)


def _headers_to(draft: Draft, value: str, _arguments: list[str]) -> None:
    draft.headers_to = value


def _write_out(draft: Draft, value: str, _arguments: list[str]) -> None:
    if value.startswith("@"):
        raise Refusal("`@FILE` reads a file: give the format itself")
    for match in re.finditer(r"%(?:\{([^}]*)\}|header\{|output\{|(.)|\Z)", value, re.S):
        if match[2] != "%" and match[1] not in _WRITE_OUT:
            raise Refusal(f"{match[0][:40]!r} is not among the variables that are allowed ({', '.join(sorted(_WRITE_OUT))})")
    draft.write_out = value


def _compression(draft: Draft, value: str, _arguments: list[str]) -> None:
    if value not in ("auto", "gzip", "none"):
        raise Refusal("it wants auto, gzip or none")
    draft.engine += [] if value == "none" else [("--compressed",)]


def _one_line(text: str) -> bool:
    return not any((ord(letter) < 32 and letter != "\t") or ord(letter) == 127 for letter in text)


FLAGS: Mapping[str, Treatment] = {
    "engine": _engine,
    "flag": _flag,
    "nothing": _nothing,
    "named-after-url": _named_after_url,
    "https-only": _https_only,
}
VALUES: Mapping[str, Treatment] = {
    "output": _output,
    "folder": _folder,
    "url": _url,
    "data": _data,
    "method": _method,
    "header": _header,
    "cookie": _cookie,
    "user": _user,
    "text": _text,
    "number": _number,
    "whole": _whole,
    "size": _size,
    "schemes": _schemes,
    "headers-to": _headers_to,
    "write-out": _write_out,
    "compression": _compression,
    "nothing": _nothing,
}
