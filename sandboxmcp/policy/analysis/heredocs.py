"""Heredocs as bash reads them: delimiter, text and end (POSIX 2.7.4; bash: make_cmd.c make_here_document, parse.y read_a_line)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

_BLANKS = re.compile(rb"(?:[ \t]|\\\n)*")
_DELIMITER = re.compile(
    rb"(?:[^ \t\n\\'\"`$;&|<>()]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$'(?:[^'\\]|\\.)*'|\$\"(?:[^\"\\]|\\.)*\""
    rb"|\$\{[^}]*\}|\$\([^)]*\)|`(?:[^`\\]|\\.)*`|\$)+",
    re.DOTALL,
)
_PIECE = re.compile(
    rb"\\(?P<escaped>.)|'(?P<single>[^']*)'|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|\$?\"(?P<double>(?:[^\"\\]|\\.)*)\"|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(slots=True)
class Heredoc:
    """One heredoc of the code, by places."""

    at: int
    """Of its operator."""
    end: int
    """Behind the delimiter."""
    delimiter: bytes
    quoted: bool
    """Its text is taken as it stands."""
    strips: bool
    """`<<-`: tabs at the start of its lines do not count."""
    depth: int = 0
    """In how many texts of other heredocs it stands."""
    body: int = -1
    """Where its text begins; -1: it has none."""
    text_end: int = -1
    after: int = -1
    """Behind the line with the delimiter."""
    doubtful: bool = False
    """Its text may end elsewhere in another version of bash, so that some of it may be code."""

    holes: list[int] = field(default_factory=list)
    """Where each expansion in its text begins and ends."""

    def expands(self, source: bytes) -> bool:
        """Whether anything in its text is expanded."""
        text = (self.body, self.text_end)
        return not self.quoted and (source.find(b"$", *text) >= 0 or source.find(b"`", *text) >= 0)

    def joins(self, source: bytes) -> bool:
        """Whether an expansion in its text has lines that bash joins before it reads the expansion, even between single quotes."""
        return any(b"\\\n" in source[start:stop] for start, stop in zip(self.holes[::2], self.holes[1::2], strict=True))

    def text(self, source: bytes, expanded: Callable[[str], str]) -> str:
        """Its text; `expanded` gives what an expansion such as `$x` becomes."""
        pieces: list[str] = []
        at = self.body
        for start, stop in zip(self.holes[::2], self.holes[1::2], strict=True):
            pieces += [self._plain(source[at:start]), expanded(source[start:stop].decode("utf-8", "replace"))]
            at = stop
        text = "".join([*pieces, self._plain(source[at : self.text_end])]) if self.body >= 0 else ""
        return re.sub(r"(?m)^\t+", "", text) if self.strips else text

    def _plain(self, text: bytes) -> str:
        found = text if self.quoted else re.sub(rb"\\(\n|([$`\\]))", rb"\2", text)
        return found.decode("utf-8", "replace")


BLANK = bytes(one if one == 10 else 32 for one in range(256))
_FILLER = bytes(one if one == 10 else 104 for one in range(256))


def without_heredocs(source: bytes, heredocs: Sequence[Heredoc], others: Sequence[tuple[int, bytes]] = ()) -> bytes:
    """The code as long as it was, with every place and line where it was: `<<EOF` is `<hhhh`, and the texts are blank.

    What reads the tree of it knows a heredoc by the place of its operator. `others`: what else to replace, by place.
    """
    code = bytearray(source)
    for at, text in others:
        code[at : at + len(text)] = text
    for one in heredocs:
        filler = source[one.at + 1 : one.end].translate(_FILLER)
        code[one.at : one.end] = b"<" + (b'"' + filler[1:-1] + b'"' if b"\n" in filler else filler)
        if one.body >= 0:
            code[one.body : one.after] = source[one.body : one.after].translate(BLANK)
    return bytes(code)


def read_delimiter(source: bytes, at: int, end: int) -> tuple[bytes, bool, int, bool] | None:
    """The delimiter behind an operator: its text, whether any of it is quoted, its end, and whether its meaning is in doubt."""
    blanks = _BLANKS.match(source, at, end)
    start = blanks.end() if blanks else at
    found = _DELIMITER.match(source, start, end)
    if found is None:
        return None
    raw = found[0]
    doubtful = b"$(" in raw or b"`" in raw or b"${" in raw or b"\n" in raw.replace(b"\\\n", b"")
    doubtful = doubtful or bool(re.search(rb"\$'[^']*\\", raw))
    text = b"".join(map(_unquoted, _PIECE.finditer(raw)))
    quoted = any(mark in raw.replace(b"\\\n", b"") for mark in (b"'", b'"', b"\\"))
    return text, quoted, found.end(), doubtful


def _unquoted(piece: re.Match[bytes]) -> bytes:
    if piece["escaped"] is not None:
        return b"" if piece["escaped"] == b"\n" else piece["escaped"]
    if piece["double"] is not None:
        return re.sub(rb"\\(\n|([$`\"\\]))", rb"\2", piece["double"])
    if piece["ansi"] is not None:
        return re.sub(rb"\\(.)", rb"\1", piece["ansi"], flags=re.DOTALL)
    return piece["single"] if piece["single"] is not None else piece["plain"]


def read_body(heredoc: Heredoc, source: bytes, at: int, end: int, ends_early: bool) -> Iterator[str]:
    """Fill in where the text stands. Yields what is in doubt.

    `ends_early`: it stands in a `$( )`, where bash 5.2 takes a line that begins with the delimiter and holds a `)` for its end,
    and goes on with the rest of that line as code.
    """
    heredoc.body = at
    for start, logical, after in _lines(source, at, end, joined=not heredoc.quoted):
        line = logical.lstrip(b"\t") if heredoc.strips else logical
        if line == heredoc.delimiter:
            heredoc.text_end, heredoc.after = start, after
            return
        if ends_early and line.startswith(heredoc.delimiter) and b")" in line:
            heredoc.text_end = start  # the rest of the line is code
            heredoc.after = start + len(logical) - len(line) + len(heredoc.delimiter)
            if line[len(heredoc.delimiter) :].strip(b" \t")[:1] != b")":
                heredoc.doubtful = True
                yield "a heredoc that ends in the midst of a line"
            return
    heredoc.text_end = heredoc.after = end
    if ends_early:
        heredoc.doubtful = True
        yield "a heredoc in a substitution, without its end"


def _lines(source: bytes, at: int, end: int, *, joined: bool) -> Iterator[tuple[int, bytes, int]]:
    """Lines with their starts and ends; `joined`: a backslash at the end of a line takes the next one in."""
    while at < end:
        start, pieces = at, list[bytes]()
        while True:
            stop = source.find(b"\n", at, end)
            piece = source[at : stop if stop >= 0 else end]
            at = stop + 1 if stop >= 0 else end
            backslashes = len(piece) - len(piece.rstrip(b"\\"))
            if not joined or backslashes % 2 == 0 or at >= end:
                pieces.append(piece)
                break
            pieces.append(piece[:-1])
        yield start, b"".join(pieces), at
