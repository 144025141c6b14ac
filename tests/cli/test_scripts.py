"""The language of a script: its ending, else its first line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.cli.scripts import language_of, language_to_run, script_text
from sandboxmcp.core.errors import UsageError
from sandboxmcp.kernels.jupyter.kernelspecs import kernel_languages
from sandboxmcp.kernels.languages import script_languages

ENDINGS = {
    "sh": "shell", "js": "javascript", "mjs": "javascript", "ts": "typescript", "mts": "typescript", "rb": "ruby", "go": "go",
    "rs": "rust", "php": "php", "pl": "perl", "r": "r", "R": "r", "ex": "elixir", "exs": "elixir", "cs": "csharp",
}  # fmt: skip
SCRIPTS = [
    ("a.py", "#!/bin/sh", "python"),
    ("a", "#!/bin/sh", "shell"),
    ("a", "#! /usr/bin/env python3.12", "python"),
    ("a", "#!/usr/bin/env -S LANG=C bash -eu", "shell"),
    ("a", "#!/usr/bin/env node\nprocess", "javascript"),
    ("a.PY", "", "python"),
    ("a", "#!/usr/bin/tclsh", "otherwise"),
    ("a", "echo '#!/bin/sh'", "otherwise"),
    ("-", "", "otherwise"),
    ("a.txt", "#!/usr/bin/python3", "python"),
    *((f"a.{ending}", "", language) for ending, language in ENDINGS.items()),
]


@pytest.mark.parametrize(("file", "text", "language"), SCRIPTS)
def test_the_ending_counts_before_the_first_line(file: str, text: str, language: str) -> None:
    assert language_of(file, text, "otherwise") == language


def test_every_language_has_an_ending() -> None:
    assert {*ENDINGS.values(), "python"} == {*kernel_languages(), *script_languages()}


UNTOLD = {
    "ending": ("cpp.cc", "int main() {}", "no language is known for this script: 'cpp.cc' ends in '.cc'"),
    "first-line": ("a", "#!/usr/bin/tclsh\n", "no language is known for this script: the first line names 'tclsh'"),
    "both": ("a.tcl", "#!/usr/bin/env tclsh\n", "the first line names 'tclsh'"),
}


@pytest.mark.parametrize(("file", "text", "what"), UNTOLD.values(), ids=UNTOLD)
def test_what_names_no_known_language_is_not_run_as_python(file: str, text: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"{what}.*Name it with --language; known endings: .bash, .cjs, .cs, "):
        language_to_run(file, text)


@pytest.mark.parametrize(("file", "text", "language"), [("", "1", "python"), ("a", "1", "python"), ("a.cc", "#!/bin/sh", "shell")])
def test_without_an_ending_and_a_first_line_a_script_is_python(file: str, text: str, language: str) -> None:
    assert language_to_run(file, text) == language


def test_a_byte_order_mark_is_no_part_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfprint(1)\n")
    assert script_text(str(tmp_path / "a.py")) == "print(1)\n"
