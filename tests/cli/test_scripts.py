"""The language of a script: its ending, else its first line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.cli.scripts import language_of, script_text
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.kernels.specs import kernel_languages

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


def test_a_byte_order_mark_is_no_part_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfprint(1)\n")
    assert script_text(str(tmp_path / "a.py")) == "print(1)\n"
