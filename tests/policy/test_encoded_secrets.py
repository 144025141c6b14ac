"""A credential is masked as well where everyday programs colour it, underline it, escape it or put something before it."""

import codecs
import csv
import html
import io
import json
import quopri
import random
import re
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.text import neutral
from sandboxmcp.policy.pack import load_pack
from sandboxmcp.policy.secrets import Redactor, example_text

SHAPES = load_pack(data_folder("policies") / "secrets.toml").secrets
REDACTOR = Redactor(SHAPES)
EXAMPLES = [pytest.param(example_text(text).decode(), id=f"{shape.name}-{n}") for shape in SHAPES for n, text in enumerate(shape.masked)]
TOKEN = example_text("ghp_<36>").decode()
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + example_text("<64>\n").decode() * 12 + "-----END RSA PRIVATE KEY-----\n"


def _csv(text: str) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(["a", json.dumps({"said": text})])
    return out.getvalue()


def _grep(text: str) -> str:
    """As `grep --color=always` prints a match of the letters in the middle."""
    middle = len(text) // 2
    return f"{text[: middle - 2]}\x1b[01;31m\x1b[K{text[middle - 2 : middle]}\x1b[m\x1b[K{text[middle:]}"


def _between(what: str) -> Callable[[str], str]:
    return lambda text: what.join(text)


ENCODERS: dict[str, Callable[[str], str]] = {
    "repr": lambda text: repr("x\n" + text + "\n"),
    "repr-tab": lambda text: repr("x\t" + text),
    "repr-of-bytes": lambda text: repr(b"\x1b" + text.encode()),
    "json": lambda text: json.dumps({"out": "x\n" + text + "\n"}),
    "json-in-json": lambda text: json.dumps({"log": json.dumps({"out": "x\n" + text})}),
    "json-thrice": lambda text: json.dumps(json.dumps(json.dumps(["\t" + text]))),
    "go-json": lambda text: json.dumps("x\n" + text).replace("=", "\\u003d").replace("&", "\\u0026").replace("<", "\\u003c"),
    "php-json": lambda text: json.dumps("x\n" + text).replace("/", "\\/"),
    "percent": lambda text: urllib.parse.quote("x=" + text),
    "percent-all": lambda text: urllib.parse.quote("a b=" + text, safe=""),
    "percent-twice": lambda text: urllib.parse.quote(urllib.parse.quote("x=" + text, safe=""), safe=""),
    "form": lambda text: urllib.parse.urlencode({"q": text}),
    "quoted-printable": lambda text: quopri.encodestring(("x=" + text + "\n").encode(), quotetabs=False).decode(),
    "html": lambda text: f'<td title="{html.escape(text)}">',
    "html-twice": lambda text: html.escape(html.escape('"' + text)),
    "csv": _csv,
    "shell": lambda text: "$'x\\n" + text.replace("'", "\\'") + "'",
    "octal": lambda text: "x\\033" + text,
    "python-traceback": lambda text: f"    data = {text!r}\nValueError: {text!r}\n",
    "pytest-diff": lambda text: f"E         - {text!r}\nE         ? ^^^\nE         + ''",
    "set-x": lambda text: f"+ echo {text}",
    "grep-color": _grep,
    "every-letter-coloured": lambda text: "".join(f"\x1b[38;5;{n % 256}m{letter}\x1b[0m" for n, letter in enumerate(text)),
    "hyperlink": lambda text: f"\x1b]8;;https://example.org\x07{text[:9]}\x1b]8;;\x07{text[9:]}",
    "in-a-hyperlink": lambda text: f"\x1b]8;;https://example.org/ {text} \x1b\\here\x1b]8;;\x1b\\",
    "bold": lambda text: "".join(f"{letter}\b{letter}" for letter in text),
    "underlined": lambda text: "".join(f"_\b{letter}" for letter in text),
    "zero-width": _between("\u200b"),
    "soft-hyphens": _between("\u00ad"),
    "word-joiners": _between("\u2060"),
    "variation-selectors": _between("\ufe0f"),
    "combining": _between("\u0332"),
    "bidi": _between("\u202d"),
    "escaped-colours": lambda text: repr(_grep(text)),
    "json-colours": lambda text: json.dumps(_grep(text)),
    "nul-after": lambda text: f"A=b\0{text}\0PATH=/bin\0",
    "grep-n": lambda text: f"conf/app.env:12:{text}",
    "cat-n": lambda text: f"    12\t{text}",
    "diff": lambda text: f"-{text}\n+{text}",
    "quoted": lambda text: f"> > {text}",
    "crlf": lambda text: f"{text}\r\n",
}
WITHOUT_QUOTES = {"csv", "shell"}


def _letters(text: str) -> str:
    """What a reader could put together again: without what is not shown, letters and digits only."""
    return re.sub(r"[^A-Za-z0-9]+", "", re.sub("[\u0300-\u036f\ufe00-\ufe0f]|<U\\+202D>|.\b", "", neutral(text)))


def _secret(text: str) -> str:
    """The letters of what is masked in a text that stands for itself."""
    data = text.encode()
    return max((_letters(data[start:end].decode()) for start, end in REDACTOR.spans(data)), key=len)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_credential_is_masked_in_whatever_encoding(example: str, encoder: str) -> None:
    secret = _secret(example)
    encoded = ENCODERS[encoder](example)
    masked = REDACTOR.text(encoded)
    assert secret[:24] not in _letters(masked.replace("\b", "\b")), masked
    assert masked.count("\n") == encoded.count("\n")
