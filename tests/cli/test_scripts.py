"""The language of a script: its ending, else its first line."""

from __future__ import annotations

import pytest

from sandboxmcp.cli.scripts import language_of

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
]


@pytest.mark.parametrize(("file", "text", "language"), SCRIPTS)
def test_the_ending_counts_before_the_first_line(file: str, text: str, language: str) -> None:
    assert language_of(file, text, "otherwise") == language
