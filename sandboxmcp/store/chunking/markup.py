"""Markup and one-line JSON spelt as a reader sees them, line by line, so that citations stay lines of the captured text. Pure.

Both functions keep every "\\n" in its place; where one line of the source is several for a reader they leave `lines.BREAK`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping

from sandboxmcp.core.text import neutral
from sandboxmcp.store.chunking.kinds import Form
from sandboxmcp.store.lines import BREAK, HEADING

_OPENS_HIDDEN = re.compile(r"<(?:(script)|(style)|(template))\b|(<!--)", re.IGNORECASE)
_ENDS_HIDDEN = [re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in ("script", "style", "template")] + [re.compile("-->")]
"""What ends that which each group of the expression above begins."""
_ENDLESS = [
    (re.compile(opening, re.IGNORECASE), re.compile(end, re.IGNORECASE))
    for opening, end in (
        ("<!--", "-->"),
        (r"<!\[", r"\]\s*>"),
        (r"<[!?](?!--)", ">"),
        ("</?(?=[a-z])", ">"),
    )
]
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
_MOST_TIMES = 16
"""So many times its size a line of JSON may have when it is laid out; a deeper one is broken before its keys, without indents."""


def spell_html(text: str) -> str:
    """HTML as its text: scripts, comments and tags gone, entities resolved, blocks apart, headings marked."""
    text = without_hidden(text)
    text = _HEADING_TAG.sub(lambda match: BREAK + HEADING * int(match[1]) + _newlines(match), text)
    text = _CELL_END.sub("\t", text)
    text = _BLOCK_END.sub(lambda match: BREAK + _newlines(match), text)
    return _ENTITY.sub(_resolved, _TAG.sub(_newlines, text))


def without_hidden(text: str) -> str:
    """HTML without scripts, styles, templates and comments; of each its line ends stay. One that nothing ends is no such part.

    What has no end is looked for once and not from each opening: that would take a time that grows with the square of the text.
    """
    kept: list[str] = []
    endless: set[int] = set()
    start = position = 0
    while opening := _OPENS_HIDDEN.search(text, position):
        position, kind = opening.end(), (opening.lastindex or 1) - 1
        end = None if kind in endless else _ENDS_HIDDEN[kind].search(text, position)
        if end is None:
            endless.add(kind)
            continue
        kept += [text[start : opening.start()], "\n" * text.count("\n", opening.start(), end.end())]
        start = position = end.end()
    return "".join([*kept, text[start:]])


def without_endless(text: str) -> str:
    """HTML without the openings of scripts, comments and sections that nothing ends: some readers look from each for its end."""
    for opening, end in _ENDLESS:
        last = max((match.end() for match in end.finditer(text)), default=0)
        text = text[:last] + opening.sub("", text[last:])
    return text


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
    spelt = laid_out(value, _MOST_TIMES * len(line))
    return _BEFORE_KEY.sub(BREAK, line) if spelt is None else neutral(spelt).replace("\n", BREAK)


def laid_out(value: object, most: int) -> str | None:
    """A value of JSON as `json.dumps(value, indent=1, ensure_ascii=False)` writes it; None if that has more than `most` letters.

    Every level of nesting indents all lines below it: of a value that is as deep as it is long the square of its size would come.
    """
    written: list[str] = []
    for piece in _laid_out(value):
        most -= len(piece)
        if most < 0:
            return None
        written.append(piece)
    return "".join(written)


def _laid_out(value: object) -> Iterator[str]:
    """A loop and not a recursion: a value may be nested deeper than Python calls."""
    open_: list[tuple[Iterator[tuple[str, object]], str]] = []
    before = ""
    while True:
        if isinstance(value, dict | list) and value:
            yield before + ("{" if isinstance(value, dict) else "[")
            open_.append(_entries(value))
            between = ""
        else:
            yield before + json.dumps(value, ensure_ascii=False)
            between = ","
        while open_:
            entries, closing = open_[-1]
            if entry := next(entries, None):
                key, value = entry
                before = f"{between}\n{' ' * len(open_)}{key}"
                break
            open_.pop()
            yield f"\n{' ' * len(open_)}{closing}"
            between = ","
        else:
            return


def _entries(value: dict[str, object] | list[object]) -> tuple[Iterator[tuple[str, object]], str]:
    """What stands before each member, and the member; and what closes them all."""
    if isinstance(value, list):
        return (("", one) for one in value), "]"
    return ((f"{json.dumps(key, ensure_ascii=False)}: ", one) for key, one in value.items()), "}"


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
