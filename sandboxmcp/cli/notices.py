"""What every command tells on standard error before it begins: never on standard output, which may be a document or a protocol."""

from __future__ import annotations

import os
import sys

from sandboxmcp.core.settings import misspelt_variables


def tell_misspelt() -> None:
    """A line for each variable of the environment that is called like a setting and is none."""
    for sentence in misspelt_variables(os.environ):
        print(f"sandboxmcp: note: {sentence}", file=sys.stderr)
