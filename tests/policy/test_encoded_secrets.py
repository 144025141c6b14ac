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
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.text import neutral
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.secrets.redactor import Redactor, Shape, example_text

SHAPES = load_pack(data_folder("policies") / "secrets.toml").secrets
REDACTOR = Redactor(SHAPES)
EXAMPLES = [
    pytest.param(example_text(text).decode(), id=f"{shape.name}-{n}") for shape in SHAPES for n, text in enumerate(shape.masked)
]
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


def _ne(text: str) -> str:
    """The same with `GREP_COLORS=ne`, which clears no lines."""
    return _grep(text).replace("\x1b[K", "")


def _hidden(text: str, what: str) -> str:
    """The text with something that is not shown in its middle, and behind the first letters."""
    middle = len(text) // 2
    return text[:middle] + what + text[middle:]


def _between(what: str) -> Callable[[str], str]:
    return lambda text: what.join(text)


ENCODERS: dict[str, Callable[[str], str]] = {
    "repr": lambda text: repr("x\n" + text + "\n"),
    "repr-tab": lambda text: repr("x\t" + text),
    "repr-of-bytes": lambda text: repr(b"x\x00" + text.encode()),
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
    "octal": lambda text: "x\\012" + text,
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
    "repr-zero-width": lambda text: repr(_hidden(text, "\u2800")),
    "ascii-zero-width": lambda text: ascii(_hidden(text, "\u200b")),
    "ascii-every-zero-width": lambda text: ascii("\u200b".join(text)),
    "json-zero-width": lambda text: json.dumps(_hidden(text, "\u200b")),
    "json-soft-hyphen": lambda text: json.dumps(_hidden(text, "\u00ad")),
    "repr-soft-hyphen": lambda text: repr(_hidden(text, "\u00ad")),
    "json-tag": lambda text: json.dumps(_hidden(text, "\ufe0f")),
    "bytes-zero-width": lambda text: repr(_hidden(text, "\u200b").encode()),
    "percent-zero-width": lambda text: urllib.parse.quote(_hidden(text, "\u200b")),
    "html-zero-width": lambda text: _hidden(text, "&#8203;"),
    "html-hex-zero-width": lambda text: _hidden(text, "&#x200B;"),
    "html-soft-hyphen": lambda text: _hidden(text, "&shy;"),
    "rust-zero-width": lambda text: _hidden(text, "\\u{200b}"),
    "quoted-printable-zero-width": lambda text: _hidden(text.replace("=", "=3D"), "=E2=80=8B"),
    "cat-v-colour": lambda text: _grep(text).replace("\x1b", "^["),
    "cat-v-zero-width": lambda text: _hidden(text, "M-bM-^@M-^K"),
    "colour-without-escape": lambda text: _grep(text).replace("\x1b[K", "").replace("\x1b", ""),
    "form-feed": _between("\f"),
    "vertical-tab": _between("\v"),
    "escaped-colours": lambda text: repr(_grep(text)),
    "escaped-plain-colours": lambda text: repr(_ne(text)),
    "json-plain-colours": lambda text: json.dumps(_ne(text)),
    "cat-v-plain-colours": lambda text: _ne(text).replace("\x1b", "^["),
    "octal-plain-colours": lambda text: _ne(text).replace("\x1b", "\\033"),
    "shell-plain-colours": lambda text: _ne(text).replace("\x1b", "\\E"),
    "rust-plain-colours": lambda text: _ne(text).replace("\x1b", "\\u{1b}"),
    "html-plain-colours": lambda text: _ne(text).replace("\x1b", "&#27;"),
    "percent-plain-colours": lambda text: _ne(text).replace("\x1b", "%1B"),
    "json-colours": lambda text: json.dumps(_grep(text)),
    "nul-after": lambda text: f"A=b\0{text}\0PATH=/bin\0",
    "grep-n": lambda text: f"conf/app.env:12:{text}",
    "cat-n": lambda text: f"    12\t{text}",
    "diff": lambda text: f"-{text}\n+{text}",
    "quoted": lambda text: f"> > {text}",
    "crlf": lambda text: f"{text}\r\n",
}
WHOLE = [
    name
    for name in ENCODERS
    if not re.search(
        "colour|color|hyperlink|every|^zero|^bold|^under|^soft|^word|^vari|^comb|^bidi|zero-width|soft-hyphen|json-tag|form-feed|vertical",
        name,
    )
]
"""Encoders that may follow another: the others put something into the midst of its escapes."""


def _letters(text: str) -> str:
    """What a reader could put together again: without what is not shown, letters and digits only."""
    return re.sub(r"[^A-Za-z0-9]+", "", re.sub("[\u0300-\u036f\ufe00-\ufe0f]|<U\\+202D>|.\b", "", neutral(text)))


def _secret(text: str) -> str:
    """The letters of what is masked in a text that stands for itself."""
    data = text.encode()
    return max((_letters(data[start:end].decode()) for start, end in REDACTOR.spans(data)), key=len)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_credential_is_masked_in_whatever_encoding(example: str) -> None:
    secret, shown = _secret(example), {}
    for encoder, encode in ENCODERS.items():
        encoded = encode(example)
        masked = REDACTOR.text(encoded)
        if secret[:24] in _letters(masked) or masked.count("\n") != encoded.count("\n"):
            shown[encoder] = masked
    assert shown == {}


@given(st.sampled_from(SHAPES), st.sampled_from(sorted(ENCODERS)), st.lists(st.sampled_from(WHOLE), min_size=1, max_size=2))
@settings(max_examples=600, deadline=None, derandomize=True)
def test_encodings_upon_each_other_are_undone(shape: Shape, first: str, then: list[str]) -> None:
    example = example_text(shape.masked[0]).decode()
    encoded = example
    assume([first, *then].count("quoted-printable") < 2)  # its broken lines would have lost their mark
    for encoder in (first, *then):
        encoded = ENCODERS[encoder](encoded)
    assert _secret(example)[:24] not in _letters(REDACTOR.text(encoded))


@pytest.mark.parametrize(
    "code",
    [
        *range(1, 32),
        127,
        *range(0x80, 0xA0),
        0,
        *range(0x180B, 0x1810),
        *range(0x1BCA0, 0x1BCA4),
        *range(0x1D173, 0x1D17B),
        *map(
            ord, "\u17b4\u17b5\u2028\u2029\u2800\u00ad\u061c\u200b\u200c\u200d\u200e\u202e\u2060\u2066\u3164\ufeff\ufff9\U000e0041"
        ),
    ],
)
def test_whatever_is_not_shown_hides_no_token(code: int) -> None:
    if chr(code) in "\t\n\r\b\x1b\x9b":  # blanks part words when shown as well; three take a letter away with them
        return
    hidden = TOKEN[:9] + chr(code) + TOKEN[9:]
    assert TOKEN[12:] not in REDACTOR.text(f"a {hidden} b")


@pytest.mark.parametrize("first", [0x80, 0x800, 0x2000, 0x3000, 0xF000, 0xE0000])
def test_every_character_that_vanishes_when_shown_is_looked_through(first: int) -> None:
    vanishing = [
        chr(code) for code in range(first, first + 0x1000) if not 0xD800 <= code < 0xE000 and neutral("a" + chr(code) + "a") == "aa"
    ]
    left = [f"{ord(letter):x}" for letter in vanishing if TOKEN[9:] in REDACTOR.text(TOKEN[:9] + letter + TOKEN[9:])]
    assert left == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_token_in_utf_16_without_a_mark_is_masked(encoding: str) -> None:
    masked = REDACTOR.masked(f"token: {TOKEN}\nmore\n".encode(encoding))
    assert TOKEN.encode(encoding)[20:-1] not in masked


@pytest.mark.parametrize(
    "before",
    ["MY_", "token", "x-", "A1_", "\\\\n", "%3D%22", "&quot;", "=3D", "\\u003d", "+", "=", "/", "\\/", "$'", "\x1b[1m", "0:"],
)
def test_letters_before_a_token_that_cannot_be_mistaken_do_not_save_it(before: str) -> None:
    assert TOKEN[6:] not in REDACTOR.text(before + TOKEN)


@pytest.mark.parametrize(
    "written",
    [
        "&#95;",
        "&#095;",
        "&#x5f;",
        "&lowbar;",
        "%5F",
        "%5f",
        "%255F",
        "\\u005f",
        "\\\\u005f",
        "\\x5f",
        "\\u{5f}",
        "=5F",
        "\\_",
        "\\137",
    ],
)
def test_a_token_is_masked_when_its_first_letters_are_encoded(written: str) -> None:
    assert TOKEN[8:] not in REDACTOR.text("a " + TOKEN.replace("_", written) + " b")


@pytest.mark.parametrize("written", ["\\x%02x", "\\u%04x", "%%%02X", "&#%d;", "&#x%x;", "\\%03o"])
def test_a_token_is_masked_when_every_letter_is_encoded(written: str) -> None:
    assert REDACTOR.text("".join(written % ord(letter) for letter in TOKEN)) == "[redacted:github-token]"


@pytest.mark.parametrize("before", ["\U0001f511", "\x1b[1m", "\u200b", "\u00e9"])
@pytest.mark.parametrize("shape", ["hf_<34>", "AIza<35>", "sk-<48>", "AKIA<16A>", "abc8Q~<34>", "npm_<36>"])
def test_a_token_is_masked_behind_something_that_was_written_out(shape: str, before: str) -> None:
    token = example_text(shape).decode()
    texts = [
        ascii(before + token),
        json.dumps(before + token),
        repr((before + token).encode()),
        before.replace("\x1b", "^[") + token,
    ]
    texts += [before.replace("\x1b", "") + token, urllib.parse.quote(before + token), "A_" + token]
    assert [text for text in texts if "[redacted:" not in REDACTOR.text(text) and token in text] == []


@pytest.mark.parametrize("end", ["=\n", "=\r\n"])
@pytest.mark.parametrize("before", ["", "x" * 20, "token is ", "x" * 70])
@pytest.mark.parametrize("at", [2, 4, 6, 12, 30])
def test_a_token_in_quoted_printable_is_masked_wherever_its_line_goes_on(at: int, before: str, end: str) -> None:
    masked = REDACTOR.text(f"{before}{TOKEN[:at]}{end}{TOKEN[at:]}\nmore\n")
    assert (TOKEN[at:] in masked, masked.count("\n"), masked.endswith("\nmore\n")) == (False, 3, True)


@pytest.mark.parametrize("text", ["PASSWORD=\nUSER_2=ada\n", "TOKEN=\nsome/long/path/2\n", "PASSWORD=\0PATH2=/bin\0"])
def test_an_empty_value_is_not_the_next_line(text: str) -> None:
    assert REDACTOR.text(text) == text


KEYS = {
    "repr": lambda key: repr(key),
    "json": lambda key: json.dumps({"private_key": key}),
    "json-in-json": lambda key: json.dumps(json.dumps({"key": key})),
    "percent": lambda key: urllib.parse.quote(key),
    "form": lambda key: urllib.parse.urlencode({"k": key}),
    "quoted": lambda key: "".join(f"> {line}\n" for line in key.splitlines()),
    "diff": lambda key: "".join(f"+{line}\n" for line in key.splitlines()),
    "cat-n": lambda key: "".join(f"{number:6}\t{line}\n" for number, line in enumerate(key.splitlines(), 1)),
    "grep-n": lambda key: "".join(f"deploy/key.pem:{number}:{line}\n" for number, line in enumerate(key.splitlines(), 1)),
    "crlf": lambda key: key.replace("\n", "\r\n"),
    "indented": lambda key: "".join(f"        {line}\n" for line in key.splitlines()),
    "python": lambda key: "".join(f"    {line!r} +\n" for line in key.splitlines(True)),
    "coloured": lambda key: "".join(f"\x1b[33m{line[:20]}\x1b[0m\x1b[1m{line[20:]}\x1b[0m\n" for line in key.splitlines()),
    "head": lambda key: "".join(key.splitlines(True)[:6]),
    "tail": lambda key: "".join(key.splitlines(True)[-6:]),
    "tail-short-line": lambda key: "".join([*key.splitlines(True)[-6:-1], "abcd+/==\n", key.splitlines(True)[-1]]),
    "one-line-cut": lambda key: json.dumps({"key": key})[:400],
    "base64": lambda key: "data:\n  tls.key: " + codecs.encode(key.encode(), "base64").decode().replace("\n", "") + "\n",
    "yaml": lambda key: "key: |\n" + "".join(f"  {line}\n" for line in key.splitlines()),
    "latin-1-before": lambda key: "caf\xe9\n" + key,
}


@pytest.mark.parametrize("printed", KEYS)
def test_a_private_key_is_masked_however_it_is_printed(printed: str) -> None:
    text = "before\n" + KEYS[printed](KEY) + "\nafter\n"
    masked = REDACTOR.text(text)
    lines = [line for line in re.findall(r"[A-Za-z0-9]{40}", text) if line in masked]
    assert (lines, masked.count("\n"), masked.startswith("before\n"), masked.endswith("after\n")) == (
        [],
        text.count("\n"),
        True,
        True,
    )


@pytest.mark.parametrize(
    "text",
    [
        'if "-----BEGIN PRIVATE KEY-----" in text:\n    return parse(text)\nelse:\n    raise ValueError(text)\n',
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\nplease\n",
        'START = b"-----BEGIN OPENSSH PRIVATE KEY-----"\nEND = b"-----END OPENSSH PRIVATE KEY-----"\n_BODY = START + b".*" + END\n',
        "-----BEGIN CERTIFICATE-----\n" + "QUJD" * 16 + "\n-----END CERTIFICATE-----\n",
        "grep -r 'BEGIN RSA PRIVATE KEY' .\n" + "f" * 64 + "\n",
    ],
)
def test_what_only_speaks_of_private_keys_is_kept(text: str) -> None:
    assert REDACTOR.text(text) == text


def test_spans_are_what_masking_replaces() -> None:
    data = b"x\n" * 700_000 + ENCODERS["grep-color"](TOKEN).encode() + b" and " + TOKEN.encode() + b"\n" + KEY.encode()
    spans = REDACTOR.spans(data)
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(data[at:start])
        at = end
    kept = re.sub(rb"\[redacted:[a-z-]+\]", b"", REDACTOR.masked(data))
    left = b"".join([*pieces, data[at:]])
    assert (len(spans), left.replace(b"\n", b"") == kept.replace(b"\n", b"")) == (3, True)


def _tried_everywhere(text: bytes) -> list[tuple[int, int]]:
    """Every match of every pattern in every line: slow, and so simple that it is right."""
    found, offset = [], 0
    for line in text.split(b"\n"):
        found += [
            (offset + start, offset + end)
            for shape in SHAPES
            for match in shape.compiled.finditer(line)
            for start, end in [shape.masked_in(match)]
        ]
        offset += len(line) + 1
    return found


_WORDS = [text for shape in SHAPES for text in (*shape.masked, *shape.kept)]
_PIECES = st.one_of(
    st.sampled_from(_WORDS).map(lambda text: example_text(text)),
    st.sampled_from(
        [
            b" ",
            b"\n",
            b'"',
            b"=",
            b": ",
            b"://",
            b"_",
            b"-",
            b"x",
            b"9",
            b"\x1b[0m",
            b"\\n",
            b"%3D",
            b"token",
            b"password",
            b"\xc3\xa9",
            b"\0",
        ]
    ),
    st.binary(max_size=12),
)


@given(st.lists(_PIECES, max_size=24))
@settings(max_examples=300, deadline=None)
def test_whatever_any_pattern_matches_anywhere_is_masked(pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    spans = REDACTOR.spans(text)
    assert [one for one in _tried_everywhere(text) if not any(start <= one[0] and one[1] <= end for start, end in spans)] == []


@given(st.lists(_PIECES, max_size=24), st.lists(st.integers(0, 400), max_size=8))
@settings(max_examples=200, deadline=None)
def test_a_stream_is_masked_alike_however_it_is_cut(pieces: list[bytes], cuts: list[int]) -> None:
    text = b"".join(pieces)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[start:end] for start, end in pairwise(places)]
    assert b"".join(REDACTOR(parts)) == REDACTOR.masked(text)


@pytest.mark.parametrize("filler", [b"x", b"x y\n", b'{"a": 1},'])
@pytest.mark.parametrize("shift", [-80, -50, -41, -40, -20, -1, 0, 1, 7])
def test_a_token_at_the_end_of_a_block_is_masked_whole(filler: bytes, shift: int) -> None:
    block = 1 << 20
    before = (filler * block)[: block + shift - 1] + b" "
    data = before + TOKEN.encode() + b" " + (filler * block)[:block]
    draw = random.Random(shift)
    places = sorted({0, len(data), *(draw.randrange(len(data)) for _ in range(40)), len(before) + 9})
    parts = [data[start:end] for start, end in pairwise(places)]
    masked = b"".join(REDACTOR(parts))
    assert masked == before + b"[redacted:github-token] " + data[len(before) + 41 :]
