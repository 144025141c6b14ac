"""Credentials that a key names from elsewhere: from the line before, as the name of a pair, as a variable of a command.

Shapes of packs look at one line, and at an assignment in it. Here the key stands apart from its value. A value holds letters and
digits and no blanks; a word of a language, a name in a program and a placeholder are none. Not covered: values of letters alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sandboxmcp.policy.secrets.credential_spans import is_placeholder

WORDS = (
    *(b"password", b"passwd", b"passphrase", b"pwd", b"secret", b"token", b"credential", b"private_key", b"privatekey"),
    *(b"api_key", b"api-key", b"api key", b"apikey", b"access_key", b"access-key", b"access key", b"accesskey"),
    *(b"auth_key", b"client_key", b"master_key", b"signing_key", b"encryption_key"),
)
"""In small letters one of them is in every key."""
LONGEST = 4 << 10
VALUE = rb"(?=[^\s\"'<>]{0,60}\d)(?=[^\s\"'<>]{0,60}[A-Za-z])[^\s\"'$<>{}()*\[\],;\\|]{8,%d}" % LONGEST
_NAME_END = rb"(?:[_-]?(?:access|key|value|data|string|base64|hash|\d{1,2})){0,3}s?"
_SEPARATED = re.compile(
    _NAME_END + rb"(?:[\"']?\]|[\"'])?[ \t]{0,40}(?:=>|:=|[=:>,/]|\n|\r|</)|" + _NAME_END + rb"[\"']?[ \t]", re.I
)
"""What follows a key that names something apart: looked at first, since most words are followed by something else."""
_NEXT_LINE = re.compile(
    _NAME_END + rb"(?:[\"']?\]|[\"'])?[ \t]{0,40}(?:=>|:=|[=:>])[ \t]{0,8}"
    rb"(?P<opener>Some\(|[\[(]|[|>][-+0-9]{0,3}|\"\"\"|'''|<<[-~]?[\"']?\w{1,20}[\"']?|\\|\"[^\"\n]{0,200}\"|'[^'\n]{0,200}')?"
    rb"[ \t]{0,8}(?:#[^\n]{0,200})?(?:\r?\n|(?<=Some\())(?P<indent>[ \t]{0,200})(?:- |string\(\d{1,5}\) )?[bfru]?(?P<quote>[\"']?)"
    rb"(?P<value>" + VALUE + rb")(?P=quote)",
    re.I,
)
_LINE_END = re.compile(rb"[\"']{0,3}[ \t\r,;]*(?:</|\n|\Z)")
_MORE_TEXT = re.compile(rb"[\"']\s{1,200}[bfru]?[\"'](?P<value>[^\s\"'\\]{1,%d})(?=[\"'])" % LONGEST)
_MORE_LINES = re.compile(rb"[ \t\r]*\n([ \t]{1,200})(?P<value>[^\s\"'$<>{}()*\[\]\\]{8,%d})(?=[ \t\r]*(?:\n|\Z))" % LONGEST)
_MOST_LINES = 64
_NAMED = re.compile(rb"\b(?:name|key)[\"']?\s{0,4}[:=>]\s{0,4}[\"']?[\w./-]{0,60}\Z", re.I)
_PAIRED = re.compile(
    _NAME_END
    + rb"[\"']?(?P<gap>[^{}\[\]]{0,300}?)\b(?:value|string)[\"']?[ \t]{0,8}(?:[:>]|=>?)\s{0,40}[\"']?(?P<value>"
    + VALUE
    + rb")",
    re.I,
)
_OTHER_PAIR = re.compile(rb"(?<!/)\b(?:name|key)\b|\n[ \t]*- ", re.I)
_VALUE_FIRST = re.compile(
    rb"\bvalue[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<value>" + VALUE + rb")[\"']?,?\s{0,40}[\"']?(?:name|key)[\"']?\s{0,4}[:=]"
    rb"\s{0,4}[\"']?[\w./-]{0,60}\Z",
    re.I,
)
_BEFORE = 500
_APART = re.compile(
    _NAME_END
    + rb"[\"']?[ \t]{1,80}(?P<bar>\||\xe2\x94\x82)?[ \t]{0,60}[\"']?(?P<value>"
    + VALUE
    + rb")[\"']?(?P<after>[ \t]{0,2})",
    re.I,
)
_COMMAND = re.compile(
    rb"\s*(?:\$ |> )?(?:set[ \t]{1,8}(?:-\w{1,10}[ \t]{1,8}){1,3}|setenv[ \t]{1,8}|setx[ \t]{1,8})[\"']?[\w.-]{0,60}", re.I
)
_KEY_HEAD = re.compile(rb"[ \t]{0,80}[\w.-]{0,60}[._-]")
_BAR_HEAD = re.compile(rb"[ \t]{0,80}(?:(?:\||\xe2\x94\x82)[ \t]{0,80})?(?:[\w.-]{1,40}[ ._-])?")
_IDENTIFIER = re.compile(
    rb"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|_*[a-z]+[0-9]*(?:_[a-z0-9]+)+|[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+|[a-z]+(?:-[a-z]+)*(?:-?v?\d{1,3})?"
    rb"|[A-Za-z]+\d{0,2}(?:[A-Z][a-z]+)+\d{0,3}|[a-z][\w+.-]*://.*|[.~]?/.*|[\w.-]+[:=]|[A-Za-z]{1,12}\d{1,3}[A-Za-z]{0,12}|\w+=.*"
)
_DATE = re.compile(rb"\d{4}-\d\d-\d\d(?:T[\d:.+Z-]*)?")


def is_value(text: bytes) -> bool:
    """Whether something that stands where a key says a credential does looks like one: no word, no name, no path, no date."""
    return not (is_placeholder(text) or _IDENTIFIER.fullmatch(text) or _DATE.fullmatch(text))


def values(text: bytes, words: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The ranges of values that the words name from another place than an assignment does."""
    for start, end in words:
        if not _SEPARATED.match(text, end):
            continue
        line = text.rfind(b"\n", max(0, start - _BEFORE), start) + 1 or max(0, start - _BEFORE)
        yield from _in_next_line(text, line, end)
        yield from _in_pair(text, line, start, end)
        yield from _apart(text, line, start, end)


def _in_next_line(text: bytes, line: int, end: int) -> Iterator[tuple[int, int]]:
    found = _NEXT_LINE.match(text, end)
    if found is None or not is_value(found["value"]):
        return
    opener, quote = found["opener"] or b"", found["quote"]
    if not quote and not _LINE_END.match(text, found.end()):
        return
    if not (quote or opener) and len(found["indent"]) <= _indent(text, line):
        return
    yield found.span("value")
    more, at = (_MORE_LINES, found.end()) if opener[:1] in (b"|", b">") else (_MORE_TEXT, found.end() - len(quote))
    for _ in range(_MOST_LINES):
        following = more.match(text, at)
        if following is None:
            break
        yield following.span("value")
        at = following.end()


def _in_pair(text: bytes, line: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """`name: X` beside `value: Y`, in either order, in JSON, YAML, XML and property lists."""
    if not _NAMED.search(text[line:start]):
        floor = max(0, line - _BEFORE)
        previous = text.rfind(b"\n", floor, max(0, line - 1)) + 1 or floor
        if text[line:start].strip(b" \t\"'") or not _NAMED.search(text[previous:start]):
            return
    paired = _PAIRED.match(text, end)
    if paired and not _OTHER_PAIR.search(paired["gap"]) and is_value(paired["value"]):
        yield paired.span("value")
    floor = max(0, start - _BEFORE)
    before = _VALUE_FIRST.search(text[floor:start])
    if before and is_value(before["value"]):
        yield floor + before.start("value"), floor + before.end("value")


def _apart(text: bytes, line: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A key and its value with only blanks or a bar between: shells that set variables, properties, lists with two columns."""
    found = _APART.match(text, end)
    if found is None or not is_value(found["value"]):
        return
    head, last = text[line:start], text[found.end() : found.end() + 1] in (b"", b"\n", b"\r")
    if found["bar"]:
        wanted = _BAR_HEAD.fullmatch(head) is not None and (last or bool(found["after"]))
    else:
        wanted = _COMMAND.fullmatch(head) is not None or (
            _KEY_HEAD.fullmatch(head) is not None and (last or len(found["after"]) == 2)  # a sentence goes on after one blank
        )
    if wanted:
        yield found.span("value")


def _indent(text: bytes, line: int) -> int:
    at = line
    while text[at : at + 1] in (b" ", b"\t"):
        at += 1
    return at - line
