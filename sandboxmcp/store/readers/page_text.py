"""A fetched page as text to keep: HTML's main content as Markdown, JSON laid out, feeds and PDF as headed sections."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sandboxmcp.core.errors import UsageError
from sandboxmcp.store.chunking.markup import laid_out, spell_html, without_endless
from sandboxmcp.store.lines import BREAK, HEADING

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{2,40})|<\?xml[^>]{0,100}encoding=["']([\w.:-]{2,40})""", re.I
)
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_OF_NO_PAGE = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})
"""Of Python's, by their own names: some take a time that grows with the square of the text, some change what text means."""
_MOST_TIMES = 8
"""So many times its size JSON may have when it is laid out: each level of nesting indents every line below it."""
_MARKDOWN_BYTES = 4 << 20
"""A larger HTML page is kept as it is; indexing reads its text anyway."""
_BLOCK = re.compile(
    r"<(?=(?:article|aside|blockquote|dd|div|dl|dt|footer|form|h[1-6]|header|li|main|nav|ol|p|pre|section|table|td|th|tr|ul)\b)",
    re.IGNORECASE,
)
"""The opening of an element whose words stand apart from those before it."""
_PAGES = 2_000
_DEEPEST = 300
"""Elements in each other; browsers write pages of a few dozen."""
_MOST_TAGS = 100_000
"""Tags of a page: the readers take about 40 microseconds for each. Counted, so that equal pages have equal texts."""
_NOISE = "script, style, noscript, template, svg, nav, footer, aside, form, iframe, button, dialog"
_HIDDEN = "[hidden], " + ", ".join(f"[role={name}]" for name in "navigation banner contentinfo search complementary".split())
_MAIN_LETTERS = 200
_SPACE = re.compile(r"\n{3,}")
_HTML_TYPES = ("text/html", "application/xhtml+xml")


def page_text(content: bytes, mime: str, charset: str, url: str) -> tuple[str, str]:
    """The text of a page and what it then is (a media type).

    Raises:
        UsageError: it is neither text nor PDF.
    """
    mime = recognised(content, mime)
    if mime == "application/pdf":
        return _pdf(content, url), "text/markdown"
    if not _is_text(mime) or (b"\0" in content[:8192] and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
        raise UsageError(f"{url} is {mime or 'binary'}, which is no text", "Download it with curl -o into the workspace instead.")
    text = decoded(content, charset)
    if mime in _HTML_TYPES:
        return _html(text, len(content))
    if mime == "application/json" or mime.endswith("+json"):
        return _json(text), "application/json"
    if mime in ("text/xml", "application/xml") or mime.endswith("+xml"):
        return _xml(text), "text/markdown" if _is_feed(text) else "application/xml"
    return text, mime


def plain_page(content: bytes, mime: str, charset: str, url: str) -> tuple[str, str]:
    """The words of a page whose structure takes too long to read: of HTML without its tags, of all else as it is."""
    text = decoded(content, charset)
    return (_words(text) if mime in _HTML_TYPES else text), "text/plain"


def decoded(content: bytes, charset: str) -> str:
    """Bytes as text by their byte order mark, the server's word, their own declaration, UTF-8, else Windows-1252."""
    declared = _META_CHARSET.search(content[:4096])
    own = (declared[1] or declared[2]).decode("ascii", "ignore") if declared else ""
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    for name in (marked, charset, own, "utf-8"):
        if _is_known(name):
            with contextlib.suppress(UnicodeError):
                return content.decode("cp1252" if name.lower() in ("iso-8859-1", "latin-1") else name)
    return content.decode(charset if _is_known(charset) else "cp1252", "replace")


def _is_known(charset: str) -> bool:
    """Python knows it, and it is one that pages are written in."""
    try:
        found = codecs.lookup(charset) if charset else None
    except (LookupError, ValueError):
        return False
    return found is not None and found._is_text_encoding and found.name not in _OF_NO_PAGE


def recognised(content: bytes, mime: str) -> str:
    """The media type; servers that name none, or just bytes, are helped."""
    if content.startswith(b"%PDF-"):
        return "application/pdf"
    if mime not in ("", "application/octet-stream", "text/plain", "binary/octet-stream"):
        return mime
    start = content[:1024].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return mime if mime.startswith("text/") else "" if b"\0" in content[:8192] else "text/plain"


def _is_text(mime: str) -> bool:
    known = ("json", "xml", "javascript", "yaml", "x-yaml", "toml", "csv", "markdown", "x-sh", "sql", "x-ndjson", "ecmascript")
    return mime.startswith("text/") or mime.partition("/")[2].rpartition("+")[2] in known


def _html(text: str, size: int) -> tuple[str, str]:
    if size > _MARKDOWN_BYTES:
        return text, "text/html"
    if text.count("<") > _MOST_TAGS:
        return _words(text), "text/plain"
    from bs4 import BeautifulSoup

    try:
        soup = BeautifulSoup(without_endless(text), "html.parser")
        if _is_deep(soup):
            return _words(text), "text/plain"
        title = " ".join(soup.title.get_text().split()) if soup.title else ""
        found = _markdown(_main(soup))
    except (RecursionError, ValueError, AssertionError):
        return _words(text), "text/plain"
    has_heading = found.startswith("# ") or "\n# " in found[:2000]
    return (f"# {title}\n\n{found}" if title and not has_heading else found) or text, "text/markdown"


def _words(text: str) -> str:
    """HTML without its tags, in linear time: blocks on lines of their own, no headings."""
    spelt = spell_html(_BLOCK.sub("\n<", text)).replace(HEADING, "").replace(BREAK, "\n")
    return _SPACE.sub("\n\n", "\n".join(line.strip() for line in spelt.split("\n"))).strip() + "\n"


def _is_deep(soup: BeautifulSoup) -> bool:
    """Deeper than readers follow, which look at all that is in each element, or call themselves for each."""
    from bs4 import Tag

    depths = {id(soup): 0}
    for one in soup.descendants:
        if isinstance(one, Tag):
            depths[id(one)] = depth = depths[id(one.parent)] + 1
            if depth > _DEEPEST:
                return True
    return False


def _main(soup: BeautifulSoup) -> Tag:
    """The part of a page that is about something: what it marks as main, else the element that holds most of the text."""
    for one in soup.select(f"{_NOISE}, {_HIDDEN}"):
        one.extract()
    body: Tag = soup.body or soup
    everything = len(body.get_text(" ", strip=True))
    for marked in map(soup.select, ("main", "[role=main]", "article")):
        best: Tag | None = max(marked, key=lambda one: len(one.get_text()), default=None)
        if best is not None and len(best.get_text(" ", strip=True)) >= min(_MAIN_LETTERS, everything // 4):
            return best
    for one in body.find_all("header"):
        if not one.find(["h1", "h2"]):
            one.extract()
    return body


def _markdown(element: Tag) -> str:
    from markdownify import ATX, MarkdownConverter

    class Converter(MarkdownConverter):
        def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
            number = numbers.get(id(el))
            return str(super().convert_li(el if number is None else _Numbered(number), text, parent_tags))  # type: ignore[misc]

    numbers = {
        id(item): place
        for one in element.find_all("ol")
        for place, item in enumerate(one.find_all("li", recursive=False), _start(one))
    }
    converter = Converter(heading_style=ATX, code_language_callback=_language, strip=["img"], bullets="-")
    lines = str(converter.convert_soup(element)).split("\n")
    return _SPACE.sub("\n\n", "\n".join(line.rstrip() for line in lines)).strip() + "\n"


def _start(numbered: Tag) -> int:
    """The number of the first item of a numbered list."""
    start = str(numbered.get("start") or "")
    return int(start) if start.isdecimal() and len(start) < 10 else 1


class _Numbered:
    """The first item of a list that begins with its number. For the number of any other, markdownify goes through all before it,
    a time that grows with the square of the list."""

    name = "ol"

    def __init__(self, number: int) -> None:
        self._number = number
        self.parent = self

    def get(self, _: str) -> str:
        return str(self._number)

    def find_previous_siblings(self, _: str) -> tuple[()]:
        return ()


def _language(element: Tag) -> str:
    """The language of a code block by the classes that highlighters set (`language-python`, `highlight-python`)."""
    around = [element, *element.find_all("code", limit=1), *list(element.parents)[:2]]
    for one in around:
        for name in one.get("class") or ():
            if match := re.fullmatch(r"(?:language|lang|highlight|highlight-source|brush:?)-([\w+#]{1,20})", str(name)):
                return match[1]
    return ""


def _json(text: str) -> str:
    try:
        spelt = laid_out(json.loads(text), _MOST_TIMES * len(text) + 1_000)
    except (ValueError, RecursionError):
        return text
    return text if spelt is None else spelt + "\n"


def _is_feed(text: str) -> bool:
    return re.search(r"<(?:rss|feed|rdf:RDF)[\s>]", text[:2000]) is not None


def _xml(text: str) -> str:
    """A feed as headed entries, any other XML as it is. One that declares entities is not parsed: they may multiply."""
    if not _is_feed(text) or "<!ENTITY" in text or "<!DOCTYPE" in text:
        return text
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 (no entities)
    except (ElementTree.ParseError, ValueError):
        return text
    entries = [one for one in root.iter() if _name(one) in ("item", "entry")]
    title = next((one.text or "" for one in root.iter() if _name(one) == "title"), "").strip()
    return "\n\n".join([f"# {title}" if title else "", *map(_entry, entries)]).strip() + "\n"


def _entry(entry: ElementTree.Element) -> str:
    facts: dict[str, str] = {}
    for one in entry:
        value = (one.text or "").strip() or one.get("href", "")
        if len(value) > len(facts.get(_name(one), "")):
            facts[_name(one)] = value
    body = facts.get("encoded") or facts.get("content") or facts.get("description") or facts.get("summary") or ""
    when = next((facts[name] for name in ("published", "pubDate", "updated", "date") if name in facts), "")
    below = "\n".join(filter(None, (facts.get("link", ""), when)))
    return f"## {facts.get('title', 'untitled')}\n\n{below}\n\n{_html(body, len(body))[0] if '<' in body else body}".rstrip()


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _pdf(content: bytes, url: str) -> str:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UsageError(f"{url} is a PDF with a password")
        return "\n\n".join(_pdf_pages(reader)) + "\n"
    except (
        PyPdfError,
        RecursionError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        OSError,
        NotImplementedError,
    ) as error:
        raise UsageError(f"{url} is a PDF that cannot be read: {str(error)[:200]}") from None


def _pdf_pages(reader: object) -> Iterable[str]:
    pages = reader.pages  # type: ignore[attr-defined]
    for number in range(min(len(pages), _PAGES)):
        yield f"## Page {number + 1}\n\n{pages[number].extract_text()}"
