"""Masked copies of files of secrets: everything but the credentials, of equal length and with the same line ends.

Each reader gives spans of a file's bytes that are secrets; what no reader understands is masked as a whole. All of them are linear.
Which file is read by which one, sandbox/workspace/secret_names.py says. The length of a secret is told, and nothing else of it.
Not covered: a secret in a key's name, in a comment of no known shape, or in a file of settings under a name that says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from sandboxmcp.policy.secrets.credential_lines import Dialect, assigned_spans, xml_spans
from sandboxmcp.policy.secrets.credential_spans import Filler, Span, hidden, json_spans
from sandboxmcp.sandbox.workspace.secret_names import SecretKind, kind_of

_DIALECTS: tuple[Dialect, ...] = ("env", "lines", "toml", "yaml")
_LINE = re.compile(rb"[^\n]+")
_URL_TOKEN = re.compile(rb"https?://([^/\s@:\"']{12,})@")
"""A token in the place of a user; names of people are shorter."""
_URL_USER = re.compile(rb"://([^\n]*)@")
_KEY_BLOCK = re.compile(
    rb"-----BEGIN (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----(.*?)"
    rb"(?:-----END (?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----|\Z)",
    re.S,
)
_OPENVPN_BLOCK = re.compile(rb"<(key|tls-auth|tls-crypt(?:-v2)?|secret|auth-user-pass|pkcs12)>(.*?)(?:</\1>|\Z)", re.S)
_PUTTY_KEY = re.compile(rb"^Private-Lines:[^\n]*\n(.*)", re.M | re.S)
_NETRC_WORD = re.compile(rb"[^\s]+|\n")
_NETRC_STATES = {
    **dict.fromkeys((b"machine", b"login", b"user", b"port"), "shown"),
    **dict.fromkeys((b"password", b"passwd", b"account"), "secret"),
    b"default": "keyword",
    b"macdef": "macro",
}


class Spans(Protocol):
    """What finds credentials by their shapes, whatever file they stand in (policy/secrets/redactor.py)."""

    def spans(self, data: bytes) -> Iterable[tuple[int, int]]: ...


def masked_copy(path: str, data: bytes, shapes: Spans | None = None) -> bytes:
    """The content of a file of that name with its credentials masked; the same if it holds none."""
    kind = kind_of(path) or SecretKind("whole")
    spans = credential_spans(kind, data)
    if "/.git/" in f"/{path}" and b"\0" not in data:
        spans = [*spans, *(Span(*match.span(1)) for match in _URL_TOKEN.finditer(data))]
    filler: Filler = "letters" if kind.reader == "yaml" else "stars"
    found = [Span(start, end, filler) for start, end in shapes.spans(data)] if shapes is not None else []
    return hidden(data, [*spans, *found])


def credential_spans(kind: SecretKind, data: bytes) -> list[Span]:
    """What of a file's bytes is secret, in any order; all of them where it is no text, or one in UTF-16."""
    if kind.reader == "whole" or b"\0" in data:
        return [Span(0, len(data))]
    return _READERS[kind.reader](data, kind)


def _assigned(dialect: Dialect, data: bytes, kind: SecretKind) -> list[Span]:
    return assigned_spans(data, dialect, every=kind.degree == "all")


def _netrc(data: bytes, kind: SecretKind) -> list[Span]:
    """netrc(5): every word but the keywords, and what follows those that name a machine or a user."""
    spans: list[Span] = []
    state, blank = "keyword", True
    for word in _NETRC_WORD.finditer(data):
        text = word[0]
        if text == b"\n":
            state = "keyword" if state == "rest" or (state == "macro" and blank) else state
            blank = True
            continue
        blank = False
        if state == "keyword" and text in _NETRC_STATES:
            state = _NETRC_STATES[text]
            continue
        if state != "shown":
            spans.append(Span(*word.span()))
        if state != "macro":  # a quoted password may hold blanks
            state = "rest" if state == "rest" or (state == "secret" and text.startswith(b'"')) else "keyword"
    return spans


def _urls(data: bytes, kind: SecretKind) -> list[Span]:
    """Users and passwords of one URL a line; a token may stand in the place of either. A line without them is a secret whole."""
    spans = []
    for line in _LINE.finditer(data):
        found = _URL_USER.search(data, line.start(), line.end())
        spans.append(Span(*found.span(1)) if found else Span(*line.span()))
    return spans


def _fields(data: bytes, kind: SecretKind) -> list[Span]:
    """The rest of each line after so many colons (`\\:` is none); of a line with fewer colons, all."""
    kept = re.compile(rb"(?:(?:[^:\\\n]|\\.)*:){%d}" % kind.kept_fields)
    spans = []
    for line in _LINE.finditer(data):
        found = kept.match(data, line.start(), line.end())
        spans.append(Span(found.end() if found else line.start(), line.end()))
    return spans


def _key(data: bytes, kind: SecretKind) -> list[Span]:
    """The bodies of private keys; certificates beside them stay. A file without a body that can be told is a secret whole."""
    if (putty := _PUTTY_KEY.search(data)) is not None:
        return [Span(*putty.span(1))]
    spans = [Span(*block.span(1)) for block in _KEY_BLOCK.finditer(data)]
    spans += [Span(*block.span(2)) for block in _OPENVPN_BLOCK.finditer(data)]
    return spans or [Span(0, len(data))]


_READERS: Mapping[str, Callable[[bytes, SecretKind], list[Span]]] = {
    **{name: partial(_assigned, name) for name in _DIALECTS},
    "xml": lambda data, kind: xml_spans(data),
    "json": lambda data, kind: json_spans(data, every=kind.degree != "some"),
    "netrc": _netrc,
    "urls": _urls,
    "fields": _fields,
    "key": _key,
}
