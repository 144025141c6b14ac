"""What a text is, recognised from its beginning: code, prose, log or data, and the form that its chunks follow. Pure."""

from __future__ import annotations

import re
from typing import Literal

from sandboxmcp.core.model import ContentKind

Form = Literal["markdown", "html", "json", "lines"]

SAMPLE_BYTES = 64 << 10
_LOOK_LINES = 400

_HTML = re.compile(r"<!doctype html|<html[\s>]", re.IGNORECASE)
_XML = re.compile(r"\s*<(?:\?xml|[A-Za-z][\w:.-]*[\s>/])")
_JSON = re.compile(r'\s*(?:\{\s*(?:"|\})|\[\s*(?:[\[{"\]\d-]|true|false|null))')
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
_SENTENCE = re.compile(r"[^\W\d_]+(?:[ ,;:'’-]+[^\W\d_]+){4,}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{8,}")
_PAIR = re.compile(r"\s*[\w.\-\"' ]{1,60}\s*[=:]\s*\S")
_SEPARATORS = ("\t", ",", ";", "|")


def recognise_kind(sample: str) -> ContentKind:
    """The kind of a text by its first lines (shown text; 64 KiB are plenty). What looks like nothing else is a log: lines."""
    lines = [line for line in sample.split("\n")[:_LOOK_LINES] if line.strip()]
    if not lines:
        return "prose"
    if _HTML.search(sample[:3_000]):
        return "prose"
    if sample.startswith("#!"):
        return "code"
    if _JSON.match(sample) or _XML.match(sample) or _is_table(lines):
        return "data"
    if _share(_STAMP, [line[:80] for line in lines], search=True) >= 0.4:
        return "log"
    if _has_headings(sample):
        return "prose"
    if _share(_CODE, lines) >= 0.35:
        return "code"
    if _share(_SENTENCE, lines, search=True) >= 0.5:
        return "prose"
    return "data" if _share(_PAIR, lines) >= 0.8 else "log"


def recognise_form(sample: str, kind: ContentKind) -> Form:
    """How to cut a text of this kind. The kind may come from the caller, so the form looks for itself."""
    if _HTML.search(sample[:3_000]):
        return "html"
    if kind == "prose" and _has_headings(sample):
        return "markdown"
    return "json" if _JSON.match(sample) else "lines"


def _has_headings(sample: str) -> bool:
    """Markdown headings: at the start or after a blank line, more than scripts have comments that look alike."""
    lines = sample.split("\n")
    if lines[0].startswith("#!"):
        return False
    headings = [i for i, line in enumerate(lines) if _HEADING.match(line) and (i == 0 or not lines[i - 1].strip())]
    followed = sum(i + 1 >= len(lines) or not lines[i + 1].strip() for i in headings)
    return bool(headings) and (followed * 2 >= len(headings) or headings[0] == 0)


def _is_table(lines: list[str]) -> bool:
    """Delimited rows: the same number of separators, two or more, on nearly every line."""
    head = lines[:50]
    if len(head) < 3:
        return False
    for separator in _SEPARATORS:
        counts = [line.count(separator) for line in head]
        usual = counts[0]
        if usual >= (2 if separator != "," else 3) and sum(count == usual for count in counts) >= 0.9 * len(counts):
            return True
    return False


def _share(pattern: re.Pattern[str], lines: list[str], search: bool = False) -> float:
    found = pattern.search if search else pattern.match
    return sum(found(line[:400]) is not None for line in lines) / len(lines)
