"""Every kind of structure: which lines stand under which title."""

from __future__ import annotations

import pytest

from sandboxmcp.store.chunking.forms import chunked
from sandboxmcp.store.chunking.kinds import recognise_form, recognise_kind
from sandboxmcp.store.chunking.markup import SPELLING
from sandboxmcp.store.lines import numbered_lines


def outlined(text: str) -> tuple[str, list[tuple[str, int, int]]]:
    """The form that is recognised, and every chunk as its title with its first and its last line."""
    form = recognise_form(text, recognise_kind(text))
    chunks = chunked(numbered_lines([text.encode()], 1, SPELLING.get(form)), form)
    return form, [(chunk.title, chunk.lines[0].number, chunk.lines[-1].number) for chunk in chunks]


RESTRUCTURED = """\
=====
Guide
=====

Words about the whole of it, as a sentence.

Install
-------

Fetch it and run the program as it is told.

On Linux
~~~~~~~~

Nothing more is needed there than this one.

Usage
-----

Call it with a name and read what it says.
"""
MANUAL = """\
LS(1)                            User Commands                           LS(1)

NAME
       ls - list directory contents

OPTIONS
       These options exist, and they are told
       here in two lines.

       -a, --all
              do not ignore entries starting with .

       -A     do not list implied . and ..

       -s
       --size
              print the size of each file

   Exit status:
       0      if all is well
"""
MANUAL_OF_COMMANDS = """\
SH(1)                            User Commands                           SH(1)

NAME
       sh - a shell

COMMANDS
       Built in.

       set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [argument ...]
       set [+abefhkmnptuvxBCEHPT] [+o option-name] [--] [-] [argument ...]
              Without options, show what is set.  They mean:
              -a      Each variable is given to
                      what is started.
              -b      Report at once.
              -o name
                      The name of an option.

       shift [n]
              Forget the first.
"""
PACKAGES = """\
Package: alpha
Version: 1.2
Description: reads letters
 and what follows them

Package: beta
Version: 3.4
Description: writes letters

Package: gamma
Version: 0.9
Description: burns letters
 Note: burning: is final
"""
QUERIED = """\
Name        : alpha
Version     : 1.2
Summary     : Reads letters
Description :
Note: it is for letters alone.
Name        : beta
Version     : 3.4
Summary     : Writes letters
Description :
Name        : gamma
Version     : 0.9
Summary     : Burns letters
"""
AFTER_A_PREAMBLE = """\
Manifest: 1.0
Made-By: hand

---
Name: alpha
Version: 1.2
Digest: 77
---
Name: beta
Version: 3.4
Digest: 78
---
Name: gamma
Version: 0.9
Digest: 79
"""
LOG_OF_GIT = """\
commit 1111111111111111111111111111111111111111
Author: A <a@example.org>
Date:   Mon Jan 1 00:00:00 2024

    Make the parser faster

    It was slow.

 parser.py | 2 +-

commit 2222222222222222222222222222222222222222
Author: B <b@example.org>

    Fix a typo

diff --git a/doc.md b/doc.md
index 1..2 100644
--- a/doc.md
+++ b/doc.md
@@ -1,2 +1,2 @@ def main():
-teh
+the
"""
PATCH = """\
--- old/one.c
+++ new/one.c
@@ -1,3 +1,3 @@
 a
-b
+c
--- old/two.c
+++ new/two.c
@@ -9,1 +9,1 @@ int two(void)
-d
+e
"""
PYTEST = """\
collected 3 items

=================================== FAILURES ===================================
___________________________________ test_sum ___________________________________

    def test_sum():
>       assert 1 + 1 == 3
E       assert 2 == 3
________________________________ test_parse[x] _________________________________

E   ValueError: no number
=========================== short test summary info ============================
FAILED test_it.py::test_sum
"""
GO_TEST = """\
=== RUN   TestAdd
--- FAIL: TestAdd (0.00s)
    add_test.go:9: got 3
    --- FAIL: TestAdd/negative (0.00s)
        add_test.go:12: got -1
--- PASS: TestSub (0.00s)
FAIL\texample.org/add\t0.01s
"""
CARGO = """\
running 2 tests
test tests::adds ... FAILED

failures:

---- tests::adds stdout ----
thread 'tests::adds' panicked at src/lib.rs:9:
assertion failed

failures:
    tests::adds
"""
UNITTEST = """\
F.
======================================================================
FAIL: test_sum (tests.TestSum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests.py", line 3, in test_sum
    self.assertEqual(2, 3)
AssertionError: 2 != 3

----------------------------------------------------------------------
Ran 2 tests in 0.001s
"""
JEST = """\
FAIL src/sum.test.js
  ● sum › adds

    expect(received).toBe(expected)

  ● sum › subtracts

    expect(received).toBe(expected)

Tests:       2 failed, 2 total
"""
JUNIT = """\
<testsuite name="suite.A" tests="2">
 <testcase name="passes" time="0.1"/>
 <testcase name="breaks" time="0.2">
  <failure>expected 1</failure>
 </testcase>
 <testcase name="passes too" time="0.1"/>
</testsuite>
"""
TRACES = """\
2024-01-01 10:00:00 INFO started
2024-01-01 10:00:01 ERROR it failed
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    main()
ValueError: bad value
2024-01-01 10:00:02 INFO again
java.io.IOException: no route
\tat com.example.Main.run(Main.java:5)
\tat com.example.Main.main(Main.java:9)
Caused by: java.net.SocketException: refused
\t... 2 more
2024-01-01 10:00:03 INFO done
"""
LISTING = """\
stdout:
NAMESPACE   NAME      READY   STATUS
default     web-1     1/1     Running
default     web-2     0/1     Pending

done
"""
CSV = "id,name,city,size\n1,a,x,5\n2,b,y,6\n"
SNAPSHOT = """\
- banner:
  - link "Home":
    - /url: /
- main:
  - heading "Reports" [level=1]
  - text: Words about reports.
  - table "Sales":
    - row "north 5"
    - row "south 7"
- contentinfo: Imprint
"""
JSON = """\
{
  "name": "demo",
  "dependencies": {
    "left": "1.0",
    "right": "2.0"
  },
  "jobs": [
    {
      "name": "build",
      "steps": ["BUILD"]
    },
    {
      "name": "deploy",
      "steps": ["DEPLOY"]
    }
  ]
}
""".replace("BUILD", "b" * 400).replace("DEPLOY", "d" * 400)

LONG = "of so many words that it fills a part of its own "
ROWS = f"      <string>{LONG}</string>\n"
MAVEN = f"""\
<?xml version="1.0"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <!-- not a
    <dependency> -->
  <artifactId>zoo</artifactId>
  <packaging>jar</packaging>
  <dependencies>
    <dependency>
      <groupId>a</groupId>
      <artifactId>zebra</artifactId>
    </dependency>
    <dependency>
      <groupId>a</groupId>
      <artifactId>giraffe</artifactId>
    </dependency>
  </dependencies>
  <build>
    <plugin>
      <artifactId>compiler</artifactId>
{ROWS * 10}\
    </plugin>
  </build>
  <name>after</name>
</project>
"""
ANDROID = f"""\
<Layout xmlns:android="http://schemas.android.com/apk/res/android"
    android:orientation="vertical">
    <TextView
        android:id="@+id/title"
        android:text="a &lt; b {LONG * 5}"
    />
    <Button android:id="@+id/go"
        android:text="{LONG * 6}"/>
</Layout>
"""
PLIST = f"""\
<?xml version="1.0"?>
<plist version="1.0">
<dict>
  <key>Name</key>
  <string>Zoo</string>
  <key>Security</key>
  <dict>
{ROWS * 10}\
  </dict>
</dict>
</plist>
"""
FEED = (
    "<rss><channel><title>News</title>"
    + "".join(f"<item><title>{name}</title><description>{LONG * 10}</description></item>" for name in ("One", "Two"))
    + "</channel></rss>\n"
)
BROKEN_XML = f"""\
<config>
 <server name="web">
  a < b <c </server>
 <server name="db">
{ROWS * 11}\
 </serber>
"""
ENTITIES = """\
<!DOCTYPE lolz [
 <!ENTITY lol "lol">
 <!ENTITY more "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
 <!ENTITY file SYSTEM "file:///etc/passwd">
]>
<lolz>
 <a>&more; &file;</a></lolz>
"""
_SET = "COMMANDS › set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [argument ...]"
OUTLINES = {
    "reStructuredText": (
        RESTRUCTURED,
        "restructured",
        [("Guide", 1, 6), ("Guide › Install", 7, 11), ("Guide › Install › On Linux", 12, 16), ("Guide › Usage", 17, 20)],
    ),
    "man page": (
        MANUAL,
        "manual",
        [
            ("", 1, 2),
            ("NAME", 3, 5),
            ("OPTIONS", 6, 9),
            ("OPTIONS › -a, --all", 10, 12),
            ("OPTIONS › -A", 13, 14),
            ("OPTIONS › -s --size", 15, 18),
            ("OPTIONS › Exit status:", 19, 20),
        ],
    ),
    "git log": (
        LOG_OF_GIT,
        "history",
        [
            ("Make the parser faster", 1, 10),
            ("Fix a typo", 11, 15),
            ("Fix a typo › doc.md", 16, 19),
            ("Fix a typo › doc.md › def main():", 20, 22),
        ],
    ),
    "patch": (
        PATCH,
        "history",
        [("new/one.c", 1, 2), ("new/one.c", 3, 6), ("new/two.c", 7, 8), ("new/two.c › int two(void)", 9, 11)],
    ),
    "pytest": (
        PYTEST,
        "lines",
        [
            ("", 1, 2),
            ("FAILURES", 3, 3),
            ("FAILURES › test_sum", 4, 8),
            ("FAILURES › test_parse[x]", 9, 11),
            ("short test summary info", 12, 13),
        ],
    ),
    "go test": (GO_TEST, "lines", [("", 1, 1), ("TestAdd", 2, 3), ("TestAdd/negative", 4, 5), ("", 6, 7)]),
    "cargo test": (
        CARGO,
        "lines",
        [
            ("", 1, 5),
            ("tests::adds", 6, 6),
            ("tests::adds › thread 'tests::adds' panicked at src/lib.rs:9:", 7, 8),
            ("tests::adds", 9, 9),
            ("", 10, 11),
        ],
    ),
    "unittest": (
        UNITTEST,
        "lines",
        [
            ("", 1, 2),
            ("test_sum (tests.TestSum)", 3, 4),
            ("test_sum (tests.TestSum) › AssertionError: 2 != 3", 5, 8),
            ("test_sum (tests.TestSum)", 9, 10),
            ("", 11, 11),
        ],
    ),
    "jest": (JEST, "lines", [("", 1, 1), ("sum › adds", 2, 5), ("sum › subtracts", 6, 9), ("", 10, 10)]),
    "JUnit": (JUNIT, "report", [("suite.A", 1, 2), ("suite.A › breaks", 3, 5), ("suite.A", 6, 6), ("", 7, 7)]),
    "Maven": (
        MAVEN,
        "xml",
        [
            ("project zoo", 1, 6),
            ("project zoo › dependencies", 7, 16),
            ("project zoo › build", 17, 17),
            ("project zoo › build › plugin compiler", 18, 31),
            ("project zoo", 32, 33),
        ],
    ),
    "Android": (ANDROID, "xml", [("Layout", 1, 2), ("Layout › TextView @+id/title", 3, 6), ("Layout › Button @+id/go", 7, 9)]),
    "property list": (PLIST, "xml", [("plist", 1, 2), ("plist › dict", 3, 5), ("plist › dict › Security", 6, 20)]),
    "feed": (
        FEED,
        "xml",
        [("rss › channel News", 1, 1), ("rss › channel News › item One", 1, 1), ("rss › channel News › item Two", 1, 1)],
    ),
    "broken XML": (BROKEN_XML, "xml", [("config › server web", 1, 3), ("config › server db", 4, 16)]),
    "XML with entities": (ENTITIES, "xml", [("lolz", 1, 7)]),
    "traces": (
        TRACES,
        "lines",
        [("", 1, 2), ("ValueError: bad value", 3, 6), ("", 7, 7), ("java.io.IOException: no route", 8, 12), ("", 13, 13)],
    ),
    "man page of commands": (
        MANUAL_OF_COMMANDS,
        "manual",
        [
            ("", 1, 2),
            ("NAME", 3, 5),
            ("COMMANDS", 6, 8),
            (_SET, 9, 11),
            (f"{_SET} › -a", 12, 13),
            (f"{_SET} › -b", 14, 14),
            (f"{_SET} › -o name", 15, 17),
            ("COMMANDS › shift [n]", 18, 19),
        ],
    ),
    "packages": (PACKAGES, "records", [("Package: alpha", 1, 5), ("Package: beta", 6, 9), ("Package: gamma", 10, 13)]),
    "packages without gaps": (
        QUERIED,
        "records",
        [("Name        : alpha", 1, 5), ("Name        : beta", 6, 9), ("Name        : gamma", 10, 12)],
    ),
    "records after others": (
        AFTER_A_PREAMBLE,
        "records",
        [("Manifest: 1.0", 1, 4), ("Name: alpha", 5, 8), ("Name: beta", 9, 12), ("Name: gamma", 13, 15)],
    ),
    "listing": (LISTING, "lines", [("", 1, 1), ("NAMESPACE NAME READY STATUS", 2, 4), ("", 5, 6)]),
    "CSV": (CSV, "rows", [("id,name,city,size", 1, 3)]),
    "snapshot": (
        SNAPSHOT,
        "snapshot",
        [("", 1, 10)],
    ),
    "JSON": (
        JSON,
        "json",
        [("demo", 1, 7), ("demo › jobs › build", 8, 11), ("demo › jobs › deploy", 12, 17)],
    ),
}


def test_one_key_alone_makes_no_records():
    assert outlined("\n\n".join(f"error: no route to host {n}" for n in range(9)))[0] == "lines"


@pytest.mark.parametrize("name", OUTLINES)
def test_every_part_stands_under_its_title(name):
    text, form, chunks = OUTLINES[name]
    assert outlined(text) == (form, chunks)


def test_entities_are_neither_expanded_nor_fetched():
    lines = numbered_lines([ENTITIES.encode()], spell=SPELLING["xml"])
    assert "".join(f"{line.text}\n" for line in lines) == ENTITIES


def test_a_markdown_text_that_begins_with_an_element_is_one():
    text = '<p align="center">\n  <img src="x.png">\n</p>\n\n# Zoo\n\nWords.\n'
    assert (recognise_kind(text), recognise_form(text, "prose")) == ("prose", "markdown")


def test_xml_that_quotes_markdown_is_xml():
    text = "<?xml version='1.0'?>\n<notes>\n\n# Zoo\n\nWords.\n</notes>\n"
    assert (recognise_kind(text), recognise_form(text, "data")) == ("data", "xml")
