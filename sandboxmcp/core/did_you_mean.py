"""The known name that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, or nothing: the last part of a name counts as the whole."""
    from difflib import get_close_matches

    names = list(known)
    ends = [one for one in names if one.endswith(("_" + name, "." + name))]
    return next(iter(ends or get_close_matches(name, names, 1)), "")
