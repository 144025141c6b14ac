"""Markup and one-line JSON spelt as a reader sees them, line by line, so that citations stay lines of the captured text. Pure.

Both functions keep every "\\n" in its place; where one line of the source is several for a reader they leave `lines.BREAK`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping

from sandboxmcp.core.text import neutral
from sandboxmcp.store.kinds import Form
from sandboxmcp.store.lines import BREAK, HEADING

_HIDDEN = re.compile(r"<(script|style|template)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_CELL_END = re.compile(r"</t[dh]\s*>", re.IGNORECASE)
_HEADING_TAG = re.compile(r"<h([1-6])\b[^<>]*>", re.IGNORECASE)
_BLOCK_END = re.compile(
    r"</(?:p|div|li|tr|h[1-6]|dt|dd|pre|table|section|article|ul|ol|dl|blockquote|title|option)\s*>|<(?:br|hr)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[A-Za-z!?][^<>]{0,2000}>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_BEFORE_KEY = re.compile(r'(?<=[,{\[])(?=\s{0,99}"[^"\\]{1,80}"\s*:)')
_BETWEEN_TAGS = re.compile(r"(?<=[^<])> *<(?=[^/])")
_SPACED_JSON = 200
"""A shorter line of JSON or XML is read easily as it stands."""


def spell_html(text: str) -> str:
    """HTML as its text: scripts, comments and tags gone, entities resolved, blocks apart, headings marked."""
    text = _HIDDEN.sub(_newlines, text)
    text = _HEADING_TAG.sub(lambda match: BREAK + HEADING * int(match[1]) + _newlines(match), text)
    text = _CELL_END.sub("\t", text)
    text = _BLOCK_END.sub(lambda match: BREAK + _newlines(match), text)
    return _ENTITY.sub(_resolved, _TAG.sub(_newlines, text))


def spell_xml(text: str) -> str:
    """Lines of XML that hold several elements, and long ones, with one element per part; all others as they are."""
    return "\n".join(
        _BETWEEN_TAGS.sub(f">{BREAK}<", line) if len(line) > _SPACED_JSON and "><" in line else line for line in text.split("\n")
    )


def spell_json(text: str) -> str:
    """Long lines of JSON, whole values or parts of one, with one key per part; all others as they are."""
    return "\n".join(map(_spell_json_line, text.split("\n")))


def _spell_json_line(line: str) -> str:
    if len(line) < _SPACED_JSON or '":' not in line:
        return line
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _BEFORE_KEY.sub(BREAK, line)
    spelt = json.dumps(value, indent=1, ensure_ascii=False)
    return neutral(spelt).replace("\n", BREAK)


def _newlines(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _resolved(match: re.Match[str]) -> str:
    return " ".join(neutral(html.unescape(match.group())).split("\n")).replace("\xa0", " ")


SPELLING: Mapping[Form, Callable[[str], str]] = {
    "html": spell_html,
    "json": spell_json,
    "lines": spell_json,
    "report": spell_xml,
    "xml": spell_xml,
}
"""How a text of a form is spelt for a reader; of other forms as it stands."""
