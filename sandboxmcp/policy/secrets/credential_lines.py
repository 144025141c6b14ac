"""Secrets in files of lines: `KEY=value` as shells and dotenv read it, INI, TOML, properties, HCL, YAML, PHP's defines, and XML.

A value in quotes may go on over lines; a quote that is not closed hides the rest of the file. Where every value is a secret, so is
each line that is neither assignment, comment nor heading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sandboxmcp.policy.secrets.credential_spans import Filler, Span, is_placeholder, names_credential

Dialect = Literal["env", "lines", "toml", "yaml"]
_SEPARATOR = re.compile(rb"=>|[=:](?=[ \t\r\"']|\Z)|=")
_KEY = re.compile(
    rb"(?:\xef\xbb\xbf)?[ \t]*+(?P<remark>[#;]|//[ \t])?(?:[-#;?/][ \t]*+)*+(?:(?:export|set|setenv|declare -x)[ \t]++)?"
    rb"([\"']?)(?P<key>[\w.:@/$ -]{1,200})\2[ \t]*+"
)
_LONGEST_KEY = 256
_HEADING = re.compile(rb"[ \t]*+\[{1,2}[ \t]*[A-Za-z_][^\[\]\n]{0,200}\]{1,2}[ \t\r]*(?:#.*)?")
_FORM = re.compile(rb"[\s\[\]{}(),;-]*+|[ \t]*(?:\.\.\.|%YAML .*|<\?php|\?>)\s*")
_COMMENT = re.compile(rb"[ \t]*+[#;]")
_OPENER = re.compile(rb"[ \t]*+(?:[&!][\w.:/!-]*+[ \t]++)*+")
_QUOTE = re.compile(rb'"""|\'\'\'|["\'`]')
_ITEM = re.compile(rb"[ \t]*+(?:-[ \t]++)*+")
_BLOCK = re.compile(rb"[|>][-+0-9]*[ \t\r]*(?:#.*)?")
_HERE_DOCUMENT = re.compile(rb"<<[-~]?[\"']?(\w{1,60})")
_REMARK = re.compile(rb"[ \t\r,;)\]}]*+(?:#.*|//.*)?")
_TOML_SCALAR = re.compile(rb"[-+]?\d[\d_.:eETZxob+ -]*|true|false")
_PART = re.compile(rb"\"(?:[^\"\\\n]|\\.)*+\"?|'[^'\n]*+'?|[^\s\[\]{}()\"',=:]++[:=]?")
_MIDDLE = re.compile(rb"([\w.$-]{2,60}+)[\"']?(?:[ \t]{0,20}(?:=>|[=:])|(?<=[\"']),)[ \t]{0,20}+(?![=:>])")
_MIDDLE_VALUE = re.compile(rb"\"((?:[^\"\\\n]|\\.)*+)|'((?:[^'\\\n]|\\.)*+)|([^\s\"'<>,;&}\])]*+)")
_YAML_VALUE = re.compile(rb"\"((?:[^\"\\\n]|\\.)*+)|'((?:[^'\\\n]|\\.)*+)|([^\n\"'<>,;&}\])]*+)")
"""YAML's plain texts have blanks in them."""
_XML_ELEMENT = re.compile(rb"<([\w:.-]{1,80}+)[^<>]*+>\s*+(?:<!\[CDATA\[(.*?)(?:\]\]>|\Z)|([^<]*+))", re.S)
_XML_NAMED = re.compile(rb"\b(?:key|name)=([\"'])([^\"'<>]{1,100}+)\1[^<>]{0,200}?\bvalue=([\"'])([^\"'<>]*+)", re.I)
_SECRET_KIND = re.compile(rb"^kind:[ \t]*[\"']?Secret\b", re.M)
_SECRET_DATA = (b"data", b"stringData")


def assigned_spans(data: bytes, dialect: Dialect, *, every: bool) -> list[Span]:
    """Every value, or those of keys that name a credential, with what is indented below such a key.

    The data of a Secret of Kubernetes count too. An assignment in a comment is one.
    """
    return _Lines(data, dialect, every).spans()


def xml_spans(data: bytes) -> list[Span]:
    """Texts of elements, and values of attributes, whose name says that they are credentials."""
    found = [one.span(one.lastindex or 1) for one in _XML_ELEMENT.finditer(data) if names_credential(one[1])]
    found += [one.span(4) for one in _XML_NAMED.finditer(data) if names_credential(one[2])]
    spans = [Span(start, end) for start, end in found if not is_placeholder(data[start:end])]
    return [*spans, *_in_the_middle(data, 0, len(data), "stars")]


@dataclass(slots=True)
class _Lines:
    """One file while it is read."""

    data: bytes
    dialect: Dialect
    every: bool
    below: int = -1
    """The indent of the key below which everything is a secret; -1 for none."""

    def spans(self) -> list[Span]:
        found: list[Span] = []
        cluster = self.dialect == "yaml" and _SECRET_KIND.search(self.data) is not None
        at = 0
        while at < len(self.data):
            at = self._line(at, self._line_end(at), found, cluster) + 1
        return found

    @property
    def _filler(self) -> Filler:
        return "letters" if self.dialect == "yaml" else "stars"

    def _line_end(self, at: int) -> int:
        end = self.data.find(b"\n", at)
        return len(self.data) if end < 0 else end

    def _line(self, start: int, end: int, found: list[Span], cluster: bool) -> int:
        """Takes one line, and those that its value goes on over. Returns where the last one ends."""
        line = self.data[start:end]
        indent = _indent(line)
        if line.strip() and not (indent > self.below or (indent == self.below and line.lstrip().startswith(b"- "))):
            self.below = -1
        every = self.every or self.below >= 0
        key = _key_of(line)
        if key is None:
            return self._other(start, end, found, every)
        name, value = key["key"].strip(), start + key.end() + len(_separator(line, key.end()))
        if not (every or names_credential(name) or (cluster and name in _SECRET_DATA)):
            found += _in_the_middle(self.data, start, end, self._filler)
            return end
        if key["remark"]:
            found.append(Span(value, end))
            return end
        if not self.every and self.below < 0:
            self.below = indent
        return self._value(value, end, indent, found, every)

    def _other(self, start: int, end: int, found: list[Span], every: bool) -> int:
        """A line that is no assignment."""
        line = self.data[start:end]
        heading = self.dialect != "env" and _HEADING.fullmatch(line) is not None
        if not every:
            found += _in_the_middle(self.data, start, end, self._filler)
        elif not (heading or _FORM.fullmatch(line) or _COMMENT.match(line)):
            item = _ITEM.match(line)
            return self._value(start + (item.end() if item else 0), end, _indent(line), found, every)
        return end

    def _value(self, at: int, end: int, indent: int, found: list[Span], every: bool) -> int:
        """Hides what begins here. Returns where the line ends on which it stops."""
        opener = _OPENER.match(self.data, at, end)
        at = opener.end() if opener else at
        rest = self.data[at:end].rstrip(b" \t\r")
        if quote := _QUOTE.match(self.data, at, end):
            return self._quoted(quote[0], quote.end(), found, every)
        if self.dialect == "yaml" and _BLOCK.fullmatch(rest):
            return self._block(end, indent, found)
        if here := _HERE_DOCUMENT.match(rest):
            return self._here_document(end, here[1], found)
        if rest[:1] in (b"[", b"{"):
            found += _parts(self.data, at, end, self._filler)
        elif every or not is_placeholder(rest.rstrip(b",;")):
            plain = self.dialect == "toml" and _TOML_SCALAR.fullmatch(rest)
            found.append(Span(at, at + len(rest), "ones" if plain else self._filler))
        return self._continued(end, found)

    def _quoted(self, quote: bytes, at: int, found: list[Span], every: bool) -> int:
        close = _close(self.data, quote, at)
        if every or not is_placeholder(self.data[at:close]):
            found.append(Span(at, close))
        end = self._line_end(close)
        after = close + len(quote)
        if after < end and not _REMARK.fullmatch(self.data, after, end):
            found.append(Span(after, end, self._filler))
        return end

    def _block(self, end: int, indent: int, found: list[Span]) -> int:
        """YAML's block of text after a key: the lines that are indented more, whatever they look like."""
        while end < len(self.data):
            stop = self._line_end(end + 1)
            line = self.data[end + 1 : stop]
            if line.strip() and _indent(line) <= indent:
                break
            found.append(Span(stop - len(line.lstrip(b" ")), stop, self._filler))
            end = stop
        return end

    def _here_document(self, end: int, word: bytes, found: list[Span]) -> int:
        while end < len(self.data):
            start, end = end + 1, self._line_end(end + 1)
            if self.data[start:end].strip() == word:
                break
            found.append(Span(start, end))
        return end

    def _continued(self, end: int, found: list[Span]) -> int:
        """A backslash at the end of a line joins the next one."""
        while end < len(self.data) and self.data[max(0, end - 2) : end].rstrip(b"\r").endswith(b"\\"):
            start, end = end + 1, self._line_end(end + 1)
            found.append(Span(start, end, self._filler))
        return end


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" \t"))


def _separator(line: bytes, at: int) -> bytes:
    found = _SEPARATOR.match(line, at)
    return found[0] if found else b""


def _key_of(line: bytes) -> re.Match[bytes] | None:
    """The key of an assignment, up to its separator; None: the line is none."""
    separator = _SEPARATOR.search(line)
    if separator is None or separator.start() > _LONGEST_KEY or (key := _KEY.fullmatch(line, 0, separator.start())) is None:
        return None
    value, name = line[separator.end() :].strip(), key["key"].strip()
    if value.startswith(b"=") or (not value and separator[0] == b"=" and not (name.isupper() or name.islower())):
        return None  # the end of something in base64
    return key


def _close(data: bytes, quote: bytes, at: int) -> int:
    """Where a text in quotes ends; the end of the file if nowhere. A backslash keeps a quote from ending it."""
    while (found := data.find(quote, at)) >= 0:
        before = data[at:found]
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return found
        at = found + 1
    return len(data)


def _parts(data: bytes, start: int, end: int, filler: Filler) -> list[Span]:
    """The texts and words of a list or table on one line, without its keys."""
    spans = []
    for part in _PART.finditer(data, start, end):
        if part[0][:1] in (b'"', b"'"):
            spans.append(Span(part.start() + 1, part.end() - (len(part[0]) > 1 and part[0][-1:] == part[0][:1])))
        elif part[0][-1:] not in (b":", b"="):
            spans.append(Span(*part.span(), filler))
    return spans


def _in_the_middle(data: bytes, start: int, end: int, filler: Filler) -> list[Span]:
    """Values of keys that name a credential, wherever they stand in a line."""
    spans = []
    value_of = _YAML_VALUE if filler == "letters" else _MIDDLE_VALUE
    while (key := _MIDDLE.search(data, start, end)) is not None:
        start = key.end()
        if names_credential(key[1]) and (value := value_of.match(data, start, end)):
            group = value.lastindex or 3
            start = max(start, value.end())
            if not is_placeholder(value[group]):
                spans.append(Span(*value.span(group), "stars" if group < 3 else filler))
    return spans
