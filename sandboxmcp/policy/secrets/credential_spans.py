"""Spans of bytes that are hidden in place, keys that say that their value is a credential, and the values of JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Filler = Literal["stars", "letters", "ones"]


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes that are hidden, and by what: a file keeps its form, so that programs can still read it."""

    start: int
    end: int
    filler: Filler = "stars"
    """`letters` where a star has a meaning (YAML's alias), `ones` for numbers, whose signs and points stay."""


_FILLERS: dict[Filler, bytes] = {
    "stars": bytes(code if code in b"\n\r" else ord("*") for code in range(256)),
    "letters": bytes(code if code in b"\n\r" else ord("x") for code in range(256)),
    "ones": bytes(ord("1") if chr(code).isdigit() and code < 128 else code for code in range(256)),
}
_JSON_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[{}\[\],:]|[^\s"{}\[\],:]++', re.S)
_JSON_COLON = re.compile(rb"\s*+:")
_JSON_ASSIGNED = re.compile(rb"(?<![\w.-])([\w.-]{2,60}+)=([^\s&;\"]++)|(?<=\")([\w-]{2,60}+):[ ]([^\"]++)")
_JSON_NUMBER = re.compile(rb"-?\d[\d.eE+-]*")
_SHALLOW = (b"auth", b"authorization", b"pass")
"""Keys whose value may be an object of settings, the keys in which decide for themselves."""
_JSON_WORDS = (b"true", b"false", b"null")
_WORDS = (
    r"pass(?:word|wd|phrase|code|key)?|pwd|secrets?|token|oauth|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?keys?|credentials?"
    r"|(?:client|account|master|encryption|signing|storage|shared|license|auth|secret|app|service|deploy|host|site|bot|pre[_-]?shared|session"
    r"|cipher|crypto?|aes|hmac|rsa|ssh|nonce|logged[_-]?in|maps)"
    r"[_-]?key|(?:client|tls|server)[_-]?key[_-]?data|auth(?:[_-]?ident)?|salt|connection[_-]?strings?|dsn|webhook(?:[_-]?url)?|bearer|jwt"
    r"|authorization|extraheader|sonar\.login|login[_-]?key|secure[_-]?string|identity[_-]?token"
)
_KEY = re.compile(
    rf"(?:{_WORDS})[_-]?(?:hash|value|data|base|base64|text|prod|production|dev|test|staging|live|main|old|new|primary|secondary|\d{{1,3}})?$",
    re.I,
)
_VARIABLE = re.compile(r"[A-Z0-9_]*_(?:KEY|PAT|PW|PASS|CREDS?)")
"""Names of variables, as in the `env` of an agent's settings."""
_PLACEHOLDER = re.compile(
    rb"\$\{[^{}]*\}|\$\(?\w+\)?|%\w+%|<[^<>]*>|\{\{.*\}\}|env\(.*\)|process\.env\.\w+|(?:os\.)?getenv\(.*\)|!\w+ .*|var\.[\w.]+"
    rb"|[\w.:$>-]+[(\[]|\*+|x{3,}|null|nil|none|true|false|~|your[\w-]*|change[_-]?me|\d{0,5}",
    re.I,
)
"""What stands for a credential and is none; `!vault` and `!Ref` say where it is."""
_LONGEST_KEY = 256


def hidden(data: bytes, spans: Iterable[Span]) -> bytes:
    """The same with the spans filled: as many bytes, as many lines. Of spans that overlap the one that begins first goes first."""
    out = bytearray(data)
    for span in sorted(spans, key=lambda span: (span.filler != "ones", span.start)):
        out[span.start : span.end] = data[span.start : span.end].translate(_FILLERS[span.filler])
    return bytes(out)


def names_credential(key: bytes) -> bool:
    """Whether a key of a file of settings says that its value is a credential: the end of its name decides."""
    name = key[: _LONGEST_KEY + 1].decode("utf-8", "replace")
    return len(key) <= _LONGEST_KEY and (_KEY.search(name) or _VARIABLE.fullmatch(name)) is not None


def is_placeholder(value: bytes) -> bool:
    """Whether a value stands for a credential and holds none."""
    return len(value) <= _LONGEST_KEY and _PLACEHOLDER.fullmatch(value.strip()) is not None


def json_spans(data: bytes, *, every: bool) -> list[Span]:
    """Values of a JSON text: `every` one, or those whose key, or a key above, names a credential. Keys and the form stay."""
    spans: list[Span] = []
    above: list[bool] = []
    wanted = deep = every
    option = False
    for token in _JSON_TOKEN.finditer(data):
        text, word = token[0], token[0].strip(b"\"'")
        if text in (b"{", b"["):
            above.append(deep if text == b"{" else wanted)
        elif text in (b"}", b"]", b","):
            _ = above.pop() if above and text != b"," else None
            wanted = deep = above[-1] if above else every
            option = option and text == b","
        elif text == b":":
            continue
        elif _JSON_COLON.match(data, token.end()):
            all_below = above[-1] if above else every
            wanted = all_below or names_credential(word)
            deep = all_below or (wanted and word.lower() not in _SHALLOW)
        else:
            if not (wanted or option):
                spans += _in_text(data, *token.span())
            elif every or not is_placeholder(word):
                spans.append(_json_value(text, *token.span()))
            option = word.startswith(b"-") and names_credential(word)
    return [span for span in spans if span.start < span.end]


def _in_text(data: bytes, start: int, end: int) -> list[Span]:
    """In a text such as an argument, a header or a URL: what follows `--token=`, `Authorization: ` or `?api_key=`."""
    found = [(one[1] or one[3], one.span(one.lastindex or 2)) for one in _JSON_ASSIGNED.finditer(data, start, end)]
    return [Span(*span) for key, span in found if names_credential(key) and not is_placeholder(data[slice(*span)])]


def _json_value(text: bytes, start: int, end: int) -> Span:
    if text.startswith(b'"'):
        return Span(start + 1, end - text.endswith(b'"') if len(text) > 1 else end)
    if text in _JSON_WORDS:
        return Span(start, start)
    return Span(start, end, "ones" if _JSON_NUMBER.fullmatch(text) else "stars")
