"""Content that is made to be slow to understand: twice as much takes at most about twice as long, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import pytest

from sandboxmcp.core.text import shown
from sandboxmcp.core.words import Pieces, words_of_each
from sandboxmcp.store.chunking.forms import chunked
from sandboxmcp.store.chunking.kinds import SAMPLE_BYTES, recognise_form, recognise_kind
from sandboxmcp.store.chunking.markup import SPELLING
from sandboxmcp.store.chunking.parts import passages_of
from sandboxmcp.store.lines import numbered_lines
from tests.measuring import MOST, growth, thread_seconds

_PIECE = 256 << 10
_TRIES = 5

Shape = Callable[[int], str | bytes]
"""Content of about so many bytes."""


def _filled(size: int, unit: str) -> str:
    return unit * (size // len(unit) + 1)


def _repeated(unit: str, before: str = "", after: str = "") -> Shape:
    return lambda size: before + _filled(size, unit) + after


def _numbered(line: str, before: str = "", after: str = "") -> Shape:
    """A line with its number in it, again and again."""
    return lambda size: before + "".join(line.format(n) for n in range(size // len(line.format(1000)) + 1)) + after


def _around(opening: str, closing: str, before: str = "", inside: str = "") -> Shape:
    def nested(size: int) -> str:
        times = size // (len(opening) + len(closing)) + 1
        return before + opening * times + inside + closing * times

    return nested


def _growing(line: str, before: str = "", step: int = 1) -> Shape:
    """Every line stands deeper than the one before it."""

    def indented(size: int) -> str:
        lines, total, depth = [before], 0, 0
        while total < size:
            lines.append(" " * (depth % 500) + line.format(depth))
            total, depth = total + len(lines[-1]) + 1, depth + step
        return "\n".join(lines)

    return indented


def _deep_json(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


_TELLING = 40
"""So many lines of a language tell it, however little of the others is like it."""
PYTHON = "import os\n" * _TELLING + "\n\ndef run(x):\n    return x\n\n\n"
SCRIPT = "const a = 1\n" * _TELLING + "function f() {\n  return 1;\n}\n"
TYPESCRIPT = "interface A {\n}\n" * _TELLING
CSHARP = "using System;\n" * _TELLING
BASH = "#!/bin/bash\n" + "set -e\n" * _TELLING
PHP = "<?php\n" + "use B;\n" * _TELLING
RUBY = "require 'x'\n" * _TELLING + "module A\nend\n"
PERL = "use strict;\n" * _TELLING
RUST = "use a::b;\n" * _TELLING
ELIXIR = "use A\n" * _TELLING
GO = "package a\n" + "import (\n)\n" * _TELLING


def _balanced(size: int) -> str:
    """Braces and blanks in code of C# on one line."""
    return CSHARP + "namespace A {\n" + _filled(size, "public static readonly ")


SHAPES: dict[str, Shape] = {
    # HTML and XML
    "comments without an end": _repeated("<!--", "<html>"),
    "scripts without an end": _repeated("<script>", "<html>"),
    "styles without an end, on lines": _repeated("<style>\n", "<html>"),
    "templates, scripts and comments mixed": _repeated("<template><!--<script>", "<html>"),
    "scripts that another ends": _repeated("<script></style>", "<html>"),
    "ends of scripts that never close": _repeated("<script></script ", "<html>"),
    "CDATA without an end": _repeated("<![CDATA[", "<html>"),
    "CDATA in XML": _repeated("<![CDATA[", "<?xml version='1.0'?>\n<a>\n"),
    "CDATA in XML, on lines": _repeated("<b><![CDATA[\n", "<?xml version='1.0'?>\n<a>\n"),
    "links whose quote stays open": _repeated('<a href="', "<html>"),
    "links whose quote stays open, in XML": _repeated('<a href="', "<?xml version='1.0'?>\n<r>\n"),
    "quotes in turn in XML": _repeated("<a b='\"", "<?xml version='1.0'?>\n<r>\n"),
    "tags that stay open": _repeated("<div ", "<html>"),
    "less-than signs": _repeated("<", "<html>"),
    "more-than signs and blanks": _repeated(">  ", "<?xml version='1.0'?><a>"),
    "ampersands": _repeated("&", "<html>"),
    "entities without an end": _repeated("&amp", "<html>"),
    "entities": _repeated("&#x1F600;&lt;", "<html>"),
    "nested divisions": _repeated("<div>", "<html><body>"),
    "nested divisions, closed": _around("<div>", "</div>", "<html><body>", "x"),
    "nested lists in HTML": _repeated("<ul><li>a", "<html><body>"),
    "headings in HTML": _repeated("<h1><h2><h3><h4><h5><h6>a", "<html><body>"),
    "heading tags that stay open": _repeated("<h1 ", "<html>"),
    "nested elements of XML": _repeated("<a>\n", "<?xml version='1.0'?>\n"),
    "nested elements of XML, named": _numbered('<a{0} name="n{0}">\n', "<?xml version='1.0'?>\n"),
    "elements of two lines": _repeated("<a>\n</a>\n", "<?xml version='1.0'?>\n<r>\n"),
    "ends of elements that never began": _repeated("</a>\n", "<?xml version='1.0'?>\n<r>\n"),
    "names with blanks in XML": lambda size: "<?xml version='1.0'?>\n<r>\n<s>\n" + _filled(size, "<name>" + " " * 580 + "\n"),
    "an element with attributes": _numbered(' a{0}="{0}"', "<?xml version='1.0'?>\n<r", "/>"),
    "an element with namespaces": _numbered(' xmlns:n{0}="u{0}"\n', "<?xml version='1.0'?>\n<r", "/>"),
    "entities that multiply": _numbered(
        '<!ENTITY l{0} "&l;&l;&l;">\n', "<?xml version='1.0'?>\n<!DOCTYPE l [\n", "]>\n<l>&l9;</l>"
    ),
    "a report of tests": _numbered('<testcase name="t{0}"><failure>\n', "<testsuite>\n"),
    "names of cases that stay open": _repeated('<testcase name="', "<testsuite>\n"),
    # JSON
    "JSON as deep as it is long": _around('{"a":', "}", inside="1"),
    "JSON lists as deep as they are long": _around("[", "]"),
    "JSON lists without an end": _repeated("["),
    "JSON lines, 400 deep": lambda size: _filled(size, _deep_json(400) + "\n"),
    "JSON lines, 900 deep, with lists": lambda size: _filled(size, '{"a":' * 900 + "[1,2,3]" + "}" * 900 + "\n"),
    "JSON of keys on one line": lambda size: json.dumps({f"k{n}": n for n in range(size // 14 + 1)}),
    "JSON of keys on lines": lambda size: json.dumps({f"k{n}": n for n in range(size // 14 + 1)}, indent=1),
    "JSON with long keys": lambda size: json.dumps({f"{n}" + "k" * 300: n for n in range(size // 310 + 1)}),
    "JSON with one long key": lambda size: json.dumps({"k" * size: 1}),
    "a list with 300 levels around it": lambda size: "[" * 300 + _filled(size, "1,") + "1" + "]" * 300,
    "JSON of numbers": lambda size: json.dumps({"a": [1] * (size // 3)}),
    "JSON with a huge number": lambda size: '{"a": ' + "9" * size + "}",
    "JSON strings without an end": _repeated('{"a": "', "[\n"),
    "JSON escapes without an end": _repeated("\\", '{"a": "'),
    "commas and quotes": _repeated(',"', '{"a":'),
    "keys and blanks": lambda size: '{"a":[' + _filled(size, ',"a"' + " " * 90),
    "JSON on lines, growing": _growing('"k{0}": {{', "{"),
    "a name and blanks": lambda size: '{\n "a": [\n  {\n' + _filled(size, '"name":' + " " * 480 + "x" * 101 + "\n"),
    # Tables and records
    "a quoted cell without an end": _repeated('"a, b\n', 'a,b,c,d\n1,2,3,4\n1,2,3,4\n1,2,3,"'),
    "a row of columns": _repeated("a,", "a,b,c,d\n1,2,3,4\n1,2,3,4\n"),
    "rows of commas": _repeated(",,,,\n", "a,b,c,d,e\n"),
    "tabs": _repeated("\t", "a\tb\n1\t2\n1\t2\n"),
    "keys and values": _numbered("Key {0}: value\nOther: 1\n\n", "Name: a\nOther: 2\n\nName: b\nOther: 3\n\n"),
    "keys and blanks without a value": lambda size: _filled(size, "Name: a\nOther: 2\nThird: 1\n\nName" + " " * 550 + "x\n"),
    # YAML, TOML and indents
    "YAML, every line deeper": _growing("k{0}:"),
    "YAML of keys": _numbered("k{0}: {0}\n"),
    "YAML of anchors and aliases": _numbered("a{0}: &x{0} [*x1, *x1]\n"),
    "YAML of flow maps": _repeated("{a: ", "a: "),
    "TOML of tables": _numbered("[a.b.c{0}]\nx = 1\n"),
    "indents that grow": _growing("word {0} here"),
    "a tree of regions": _growing('- region "r{0}":', "- main:", 2),
    "a tree of regions, quotes open": _repeated('- region "\\\n', "- main:\n"),
    "slashes in a tree": lambda size: "- main:\n" + _filled(size, "- link " + "/" * 500 + " [\n"),
    # Markup of texts
    "headings of Markdown": _numbered("### h{0}\n\n", "# a\n\n"),
    "headings of all depths": _repeated("# a\n\n## b\n\n### c\n\n#### d\n\n##### e\n\n###### f\n\n"),
    "headings of one letter": _repeated("# h\n", "# a\n\n"),
    "titles over one mark": _repeated("a\n=\n", "Title\n=====\n\nWords are here, and so are these ones.\n\n"),
    "blanks in headings": lambda size: "# a\n\n" + _filled(size, "# a" + " " * 560 + "b\n\n"),
    "marks in headings": lambda size: "# a\n\n" + _filled(size, "# a" + " #" * 280 + "b\n\n"),
    "fences without an end": _repeated("```\ncode\n~~~\n", "# a\n\n"),
    "fences that grow": lambda size: "# a\n\n" + "".join("`" * (3 + n % 500) + "\n" for n in range(size // 250 + 1)),
    "quotes in quotes": _repeated(">", "# a\n\n"),
    "emphasis in emphasis": _repeated("*a _b ", "# a\n\n"),
    "a table of columns": _repeated("| a ", "# a\n\n"),
    "definitions of links": _numbered("[l{0}]: http://x/{0} 'title\n", "# a\n\n"),
    "open links": _repeated("[", "# a\n\n"),
    "HTML in Markdown": _repeated("<div><!--", "# a\n\n"),
    "nested lists": _growing("- item {0}", "# a\n"),
    "underlines": _repeated("Title\n=====\n\n", "Title\n=====\n\nWords are here, and so are these ones.\n\n"),
    "underlines of all marks": lambda size: "".join(
        f"Title {n}\n{chr(33 + n % 15) * 12}\n\nWords are here and so are they.\n\n" for n in range(size // 56 + 1)
    ),
    "directives": _growing(".. note::", "Title\n=====\n\nWords are here and so are they all.\n"),
    # What programs print
    "a man page of options": _numbered("       -o{0}, --option{0}\n              Text.\n\n", "NAME\n       a - b\n\nOPTIONS\n"),
    "a man page of blanks": lambda size: "NAME\n       a - b\n\nOPTIONS\n" + _filled(size, "       a" + " b" * 250 + "\n\n"),
    "commits": _numbered("commit {0:040x}\nAuthor: a\n\n    Subject\n\n"),
    "commits without a subject": _numbered("commit {0:040x}\n"),
    "hunks of huge counts": _repeated(
        "@@ -1,99999999999999 +1,99999999999999 @@ f\n-a\n", "diff --git a/x b/x\n--- a/x\n+++ b/x\n"
    ),
    "files of a diff": lambda size: "diff --git a/x b/x\n" + _filled(size, "diff --git a/" + " b/" * 180 + "\n"),
    "at signs": _repeated("@@ -1 ", "diff --git a/x b/x\n@@"),
    "traces": _repeated("Traceback (most recent call last):\n  File x\nE: y\n\nDuring handling\n\n"),
    "traces without an error": _repeated("Traceback (most recent call last):\n", "a\n"),
    "frames": _repeated("\tat a.b(C.java:1)\nCaused by: x\n", "Error\n"),
    "failures of tests": _numbered("___ test_{0} ___\n\n    assert 0\nE   x\n", "=== FAILURES ===\n"),
    "rows of equals signs": lambda size: "x\n" + _filled(size, "=== a" + " =" * 290 + "\n"),
    "panics": lambda size: "x\n" + _filled(size, "thread '" + "' " * 280 + "\n"),
    # Code
    "code with open brackets": _repeated("(", PYTHON),
    "code with open braces": _repeated("{", PYTHON),
    "code with brackets on lines": _repeated("x = [\n", PYTHON),
    "minus signs in code": _repeated("-", PYTHON + "x = "),
    "powers in code": _repeated("a**", PYTHON + "x = "),
    "attributes in code": _repeated("a.", PYTHON + "x = "),
    "a choice of many": _numbered("elif x == {0}:\n    pass\n", PYTHON + "if x:\n    pass\n"),
    "strings in strings": _repeated("f'{", PYTHON + "x = "),
    "choices in choices": lambda size: (
        PYTHON + "".join(f"{' ' * n}if x:\n" for n in range(90)) + _filled(size, " " * 90 + "x = 1\n")
    ),
    "classes in code": _numbered("class A{0}:\n    def f(self):\n        pass\n", PYTHON),
    "classes in classes": _growing("class A{0}:", PYTHON),
    "a code that does not parse": _numbered("def f{0}(:\n    pass\n", PYTHON),
    "one line of code": _repeated("x = 1; ", PYTHON),
    "a long name of a class": lambda size: PYTHON + "class " + "a" * size,
    "functions and an error": _numbered("function f{0}() {{ return 1; }}\n", SCRIPT, "function ("),
    "functions without an end": _repeated("function f() {\n", SCRIPT),
    "functions without an end on one line": _repeated("function f() { ", SCRIPT),
    "open brackets of a script": _repeated("(", SCRIPT),
    "less-than signs in TypeScript": _repeated("a<", TYPESCRIPT + "export type C = "),
    "comments over functions": lambda size: SCRIPT + _filled(size // 2, "// a\n") + _filled(size // 2, "function f() {} "),
    "attributes over classes": _numbered("[A] class C{0} {{ }}\n", CSHARP + "namespace A {\n"),
    "words of C#": _balanced,
    "imports from imports": lambda size: SCRIPT + _filled(size, "import " + " from '" * 2_000 + "\n"),
    "macros of Rust": _repeated("m!{", RUST + "fn main() {\n"),
    "shell in shell": _repeated("$(", BASH),
    "here-documents": _numbered("cat <<E{0}\n", BASH),
    "parts of PHP": _repeated("<?php ", PHP),
    "blocks of Ruby": _repeated("def f\n", RUBY),
    "quotes of Perl": _repeated("q{", PERL),
    "modules of Elixir": _repeated("defmodule A do\n", ELIXIR),
    "functions of Go": _numbered("func f{0}() {{\n", GO),
    # Characters
    "ends of lines in turn": _repeated("\r\n\n\r"),
    "carriage returns": _repeated("\r"),
    "states of progress": _numbered("{0}%\r"),
    "backspaces": _repeated("\b"),
    "letters and backspaces": lambda size: "a" * (size // 2) + "\b" * (size // 2),
    "escapes without an end": _repeated("\x1b["),
    "an escape with numbers": _repeated("0;", "\x1b["),
    "titles of terminals without an end": _repeated("\x1b]0;a"),
    "combining characters": _repeated("́", "a"),
    "joiners": _repeated("‍"),
    "NULs": _repeated("\0"),
    "surrogates": lambda size: ("\ud800" * (size // 3)).encode("utf-8", "surrogatepass"),
    "one line of a letter": _repeated("a"),
    "one line of words": _numbered("word{0} "),
    "lines of a letter": _repeated("a\n"),
    "names with underscores": lambda size: _filled(size, "a" * 590 + " _\n"),
    "UTF-16": lambda size: ("\ufeff" + _filled(size // 2, "word ")).encode("utf-16-le"),
    "bytes": lambda size: bytes(range(256)) * (size // 256 + 1),
    "base64": _repeated("QUJDRA0Zz+/x"),
    "Chinese": lambda size: _filled(size // 3, "斑马在草原上奔跑"),
    "blank lines": _repeated("\n"),
    "blanks": _repeated(" "),
}


def understood(content: bytes) -> int:
    """Does with some content what indexing does with it, and says how many words that are."""
    sample = shown(content[:SAMPLE_BYTES])
    form = recognise_form(sample, recognise_kind(sample))
    pieces = [content[start : start + _PIECE] for start in range(0, len(content), _PIECE)]
    beside, words = Pieces(), 0
    for chunk in chunked(numbered_lines(pieces, 1, SPELLING.get(form)), form):
        texts = [passage.text for passage in passages_of(chunk)]
        for text, own in zip(texts, words_of_each(texts), strict=True):
            words += len(own) + len(beside.beside(text, own))
    return words


def seconds(shape: Shape, size: int) -> float:
    content = shape(size)
    content = content.encode() if isinstance(content, str) else content
    return thread_seconds(lambda: understood(content))


@pytest.mark.parametrize("name", SHAPES)
def test_twice_as_much_takes_about_twice_as_long(name: str) -> None:
    assert growth(lambda size: seconds(SHAPES[name], size)) <= MOST


WORDS = _repeated("The zebra runs over the plain and sleeps under a tree that nobody else has seen before today.\n")
MOST_SLOWER = 40
"""How many times as long as that much prose anything may take; what is linear may still be hopelessly slow."""


@cache
def _of_prose(size: int) -> float:
    return min(seconds(WORDS, size) for _ in range(3))


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_takes_very_much_longer_than_prose(name: str) -> None:
    size = 64 << 10
    least = seconds(SHAPES[name], size)
    for _ in range(_TRIES):
        if least <= MOST_SLOWER * _of_prose(size):
            return
        least = min(least, seconds(SHAPES[name], size))
    raise AssertionError(least / _of_prose(size))
