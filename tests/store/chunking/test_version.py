"""Whoever changes how texts are cut raises the version, so that what users have stored is cut anew."""

from __future__ import annotations

import hashlib
import json

from sandboxmcp.store.chunking.forms import VERSION, chunked
from sandboxmcp.store.chunking.kinds import recognise_form, recognise_kind
from sandboxmcp.store.chunking.markup import SPELLING
from sandboxmcp.store.chunking.parts import passages_of
from sandboxmcp.store.lines import numbered_lines

WORDS = "the zebra runs over the plain and sleeps under a tree that nobody else has seen before today"
TEXTS = (
    f"# One\n\n{WORDS}\n\n## Two\n\n```\ncode here\n```\n\nThree\n=====\n\n{WORDS}\n{WORDS}\n{WORDS}\n{WORDS}\n{WORDS}\n{WORDS}\n",
    f"Title\n=====\n\n{WORDS}.\n\nPart\n----\n\n{WORDS}.\n",
    f"<!doctype html><html><body><h1>One</h1><p>{WORDS}</p><h2>Two</h2><pre>a\nb</pre></body></html>\n",
    json.dumps([{"name": f"zebra {n}", "size": n, "tags": ["a", "b"]} for n in range(30)], indent=2),
    json.dumps([{"name": f"zebra {n}", "size": n} for n in range(30)]),
    "name,size,colour\n" + "".join(f"zebra {n},{n},striped\n" for n in range(40)),
    "import os\n\n\nclass Herd:\n    def run(self):\n        return os.name\n\n\ndef main():\n    return 1\n",
    "import os\n\n\nclass Herd:\n    def run(self:\n        return os.name\n\n\ndef main():\n    return 1\n",
    "package main\n\nfunc Run(x int) int {\n\treturn x\n}\n\ntype Herd struct {\n\tsize int\n}\n",
    "class Herd < Base\n  def run(\n    x =\n  end\n\n  def stop\n    1\n  end\nend\n",
    "commit 1234567890abcdef\nAuthor: A <a@b.c>\n\n    Run faster\n\ndiff --git a/x.py b/x.py\n"
    "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@ def run\n-a\n+b\n",
    "ZEBRA(1)          Manual          ZEBRA(1)\n\nNAME\n       zebra - run\n\nOPTIONS\n"
    "       -a, --all\n              Run all.\n\n       -b     Both.\n",
    "==== test session ====\n____ test_run ____\n\n    assert 1 == 2\n"
    "E   AssertionError\n\nTraceback (most recent call last):\n  File x\nValueError: no\n",
    "".join(f"2024-01-0{n % 9 + 1} 10:00:0{n % 10} INFO zebra {n} runs\n" for n in range(60)) + "x" * 2_000 + "\n",
    "NAME    READY   STATUS\nzebra-1   1/1   Running\nzebra-2   0/1   Pending\n",
    '- main:\n  - heading "Zebras" [level=1]\n  - table "Herd":\n    - row "one"\n  - link "more":\n    - /url: /x\n',
    '<testsuite name="s">\n<testcase name="a"/>\n<testcase name="b">\n<failure>no\n</failure>\n</testcase>\n</testsuite>\n',
    "<project>\n  <dependencies>\n    <dependency>\n"
    "      <artifactId>zebra</artifactId>\n    </dependency>\n  </dependencies>\n</project>\n",
)
FINGERPRINT = (5, "b270d808c2a48a36")


def _cut(text: str) -> list[object]:
    kind = recognise_kind(text)
    form = recognise_form(text, kind)
    chunks = chunked(numbered_lines([text.encode()], spell=SPELLING.get(form)), form)
    return [kind, form, [(chunk.title, [tuple(passage) for passage in passages_of(chunk)]) for chunk in chunks]]


def test_a_change_of_how_texts_are_cut_raises_the_version() -> None:
    found = hashlib.sha256(json.dumps([_cut(text) for text in TEXTS]).encode()).hexdigest()[:16]
    assert (VERSION, found) == FINGERPRINT, "raise VERSION in chunking/forms.py, and write both here"
