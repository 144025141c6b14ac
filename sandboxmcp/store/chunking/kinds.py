"""What a text is, recognised from its beginning: code, prose, log or data, and the form that its chunks follow. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Literal

from sandboxmcp.core.model import ContentKind

Form = Literal[
    "code",
    "history",
    "html",
    "json",
    "lines",
    "manual",
    "markdown",
    "plain",
    "records",
    "report",
    "restructured",
    "rows",
    "snapshot",
    "xml",
]
"""`plain` is what no text is recognised as: lines without any structure, for what could not be read within its limits."""

SAMPLE_BYTES = 64 << 10
_LOOK_LINES = 400

_HTML = re.compile(r"(?:^|>)\s*<(?:!doctype html|html[\s>])", re.IGNORECASE | re.MULTILINE)
_BEFORE_HTML = re.compile(r"\s*(?:<|HTTP/|$)")
"""Comments and declarations, or the headers of a response. What only speaks of HTML, as code does, would lose its tags."""
_CODE_SUFFIXES = frozenset(
    """.bash .c .cc .cjs .clj .cpp .cs .cxx .dart .erl .ex .exs .go .groovy .h .hpp .hs .java .jl .js .jsx .kt .kts .lua .m .mjs
    .ml .nim .php .pl .pm .ps1 .py .pyi .r .rb .rs .scala .sh .sql .swift .ts .tsx .zig .zsh""".split()
)
_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE\s|[A-Za-z][\w:.-]*[\s>/])")
_JSON = re.compile(r'\s*(?:\{\s*(?:"|\})|\[\s*(?:[\[{"\]]|-?\d[\d.eE+-]*\s*[,\]]|true|false|null))')
_JSON_LINE = re.compile(r'\s*(?:["{}\[\]]|-?\d[\d.eE+-]*\s*,?\s*$|true|false|null)')
_HEADING = re.compile(r" {0,3}#{1,6} +\S")
_STAMP = re.compile(
    r"\d{4}[-/.]\d\d[-/.]\d\d[T ,_]?|\d\d:\d\d:\d\d"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\[?\b(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\b"
)
_CODE = re.compile(
    r"\s*(?:def |class |import |from \S+ import |function\b|func |fn |pub |public |private "
    r"|static |const |let |var |return\b|if \(|if .*:$"
    r"|for .*[:{]$|while .*[:{]$|elif |else[:{ ]|#include|package |using |namespace "
    r"|async |await |export |@\w+|//|/\*|\* |\}|\)\s*\{)"
    r"|.*[;{}]\s*$"
)
_SENTENCE = re.compile(r"(?<![^\W\d_])[^\W\d_]++(?:[ ,;:'’-]++[^\W\d_]++){4}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{8,}")
_PAIR = re.compile(r"\s*+(?:[\w.\-\"'][\w.\-\"' ]{0,59}\s*+|(?<= ))[=:]\s*\S")
PAIR = re.compile(r"([A-Za-z][\w./() -]{0,40}?)\s*+[:=](?:\s|$)")
"""A line that gives a key its value."""
_FEWEST_RECORDS = _FEWEST_KEYS = 3
_SEPARATORS = ("\t", ",", ";", "|")
_FEWEST = {"\t": 1, ",": 3}
"""Separators that a row has at least; two of the others."""
_HISTORY = re.compile(r"commit [0-9a-f]{7,64}\b|From [0-9a-f]{40} |diff --git |diff --cc |Index: \S")
_HUNK = re.compile(r"@@+ -\d+(?:,\d+)? .*\+\d+(?:,\d+)? @@")
_CAPITALS = re.compile(r"[^\W\d_a-z][^a-z]{2,60}$|\S+\(\w+\) .* \S+\(\w+\)$")
_NODE = re.compile(r" *- (?:['\"]?[a-z]+(?: |:|$)|/url: )")
_ROW = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")


def is_picture(mime: str) -> bool:
    """Whether this is no text at all, which is kept as it is and never searched."""
    return mime.startswith(("image/", "audio/", "video/")) and mime != "image/svg+xml"


def recognise_kind(sample: str, name: str = "") -> ContentKind:
    """The kind of a text by its first lines (shown text; 64 KiB are plenty), and by its file's name where they are mere lines
    or sentences: of code that is documented well most lines are. What looks like nothing else is a log: lines."""
    kind = _kind(sample)
    is_named = kind in ("log", "prose") and name[name.rfind(".") :].lower() in _CODE_SUFFIXES
    return "code" if is_named and not _is_html(sample) else kind


def _kind(sample: str) -> ContentKind:
    lines = [line for line in sample.split("\n")[:_LOOK_LINES] if line.strip()]
    if not lines:
        return "prose"
    if _is_html(sample):
        return "prose"
    if sample.startswith("#!"):
        return "code"
    if _is_json(lines) or _is_xml(sample) or _is_table(lines):
        return "data"
    if _share(_STAMP, [line[:80] for line in lines], search=True) >= 0.4:
        return "log"
    if _has_headings(sample):
        return "prose"
    if _share(_CODE, lines) >= 0.35:
        return "code"
    if _share(_SENTENCE, _without_underlined(lines), search=True) >= 0.5:
        return "prose"
    return "data" if _share(_PAIR, lines) >= 0.8 else "log"


def recognise_form(sample: str, kind: ContentKind) -> Form:
    """How to cut a text of this kind. The kind may come from the caller, so the form looks for itself."""
    if _is_html(sample):
        return "html"
    lines = [line for line in sample.split("\n")[:_LOOK_LINES] if line.strip()]
    if _is_xml(sample):
        return "report" if "<testsuite" in sample else "xml"
    for form, fits in _MARKED:
        if fits(lines):
            return form
    if kind == "prose" and _has_headings(sample):
        return "markdown"
    if kind == "code":
        return "code"
    if kind == "data" and _is_table(lines):
        return "rows"
    if _has_records(sample):
        return "records"
    return "restructured" if kind == "prose" and _has_underlines(lines) else "lines"


def _is_html(sample: str) -> bool:
    begins = _HTML.search(sample[:3_000])
    return begins is not None and _BEFORE_HTML.match(sample[: begins.start()]) is not None


def _is_xml(sample: str) -> bool:
    """It says so, or begins with an element; so does many a Markdown text, to be centred."""
    return _XML.match(sample) is not None and (sample.lstrip().startswith(("<?", "<!")) or not _has_headings(sample))


def _is_json(lines: list[str]) -> bool:
    """It begins like a value and goes on like one: a log may begin with one record."""
    return bool(lines) and _JSON.match("\n".join(lines[:2])) is not None and _share(_JSON_LINE, lines) >= 0.7


def _is_history(lines: list[str]) -> bool:
    """A log of git with whole messages, a patch or a diff: it begins like one, or has a hunk and the file that it belongs to."""
    if any(map(_HISTORY.match, lines[:2])):
        return True
    return any(map(_HUNK.match, lines)) and any(line.startswith(("+++ ", "diff ")) for line in lines)


def _is_manual(lines: list[str]) -> bool:
    """Sections in capitals at the margin, with indented text under them."""
    at_margin = [line for line in lines if not line[0].isspace()]
    sections = sum(_CAPITALS.match(line) is not None for line in at_margin)
    return sections >= 2 and sections * 2 >= len(at_margin) and len(at_margin) * 4 <= len(lines)


def _is_snapshot(lines: list[str]) -> bool:
    return bool(lines) and _share(_NODE, lines[:100]) >= 0.8


def _has_underlines(lines: list[str]) -> bool:
    return any(map(_is_underlined, lines, lines[1:]))


def _without_underlined(lines: list[str]) -> list[str]:
    """Without rows of marks and the headings over them, which are no sentences."""
    pairs = zip(lines, [*lines[1:], ""], strict=True)
    return [line for line, below in pairs if not _ROW.match(line) and not _is_underlined(line, below)] or lines


def _is_underlined(line: str, below: str) -> bool:
    return _ROW.match(below) is not None and len(line.rstrip()) <= len(below.rstrip()) and _ROW.match(line) is None


_MARKED: tuple[tuple[Form, Callable[[list[str]], bool]], ...] = (
    ("json", _is_json),
    ("history", _is_history),
    ("manual", _is_manual),
    ("snapshot", _is_snapshot),
)
"""Forms with marks of their own, whatever kind the words are."""


def _has_headings(sample: str) -> bool:
    """Markdown headings: at the start or after a blank line, more than scripts have comments that look alike."""
    lines = sample.split("\n")
    if lines[0].startswith("#!"):
        return False
    headings = [i for i, line in enumerate(lines) if _HEADING.match(line) and (i == 0 or not lines[i - 1].strip())]
    followed = sum(i + 1 >= len(lines) or not lines[i + 1].strip() for i in headings)
    return bool(headings) and (followed * 2 >= len(headings) or headings[0] == 0)


def _is_table(lines: list[str]) -> bool:
    """Delimited rows: the same number of separators on nearly every line."""
    head = lines[:50]
    if len(head) < 3:
        return False
    for separator in _SEPARATORS:
        counts = [line.count(separator) for line in head]
        usual = counts[0]
        if usual >= _FEWEST.get(separator, 2) and sum(count == usual for count in counts) >= 0.9 * len(counts):
            return True
    return False


def _has_records(sample: str) -> bool:
    """Pairs of a key and a value with keys that come again and again; one of them begins a record of several lines."""
    lines = sample.split("\n")[:_LOOK_LINES]
    keys = [match[1] if (match := PAIR.match(line[:100])) else "" for line in lines]
    counts, begins = Counter(filter(None, keys)), Counter[str]()
    begins.update(key for key, above in zip(keys, ["", *lines], strict=False) if key and not above.strip(" -"))
    opener, _ = max(begins.items(), key=lambda one: one[1], default=("", 0))
    filled = sum(1 for line in lines if line.strip())
    fitting = sum(1 for line, key in zip(lines, keys, strict=True) if key or (line.strip() and line[0].isspace()))
    again = sum(count >= _FEWEST_RECORDS for count in counts.values())
    return again >= _FEWEST_KEYS and _FEWEST_RECORDS <= counts[opener] <= filled / 3 and fitting >= 0.7 * filled


def _share(pattern: re.Pattern[str], lines: list[str], search: bool = False) -> float:
    found = pattern.search if search else pattern.match
    return sum(found(line[:400]) is not None for line in lines) / len(lines)
