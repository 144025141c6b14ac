"""The kinds of values that settings have: how each is parsed, and which changes of it are stricter."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def whole_number(low: int, high: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"wants a whole number from {low:,} to {high:,}")
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"wants a whole number from {low:,} to {high:,}") from None
        if not low <= number <= high:
            raise ValueError(f"wants a whole number from {low:,} to {high:,}")
        return number

    return parse


def seconds(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError("wants seconds, more than 0 and at most 86,400") from None
    if isinstance(value, bool) or not 0 < number <= 86_400:
        raise ValueError("wants seconds, more than 0 and at most 86,400")
    return number


def size(value: Any) -> int:
    """Bytes, as a number or with a unit: `1073741824`, `"1GiB"`, `"512m"`."""
    match = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", str(value).strip().lower())
    number = 0 if match is None or isinstance(value, bool) else int(match[1]) * _UNITS[match[2]]
    if number <= 0:
        raise ValueError('wants a size above 0, in bytes or with a unit, such as "512MiB"')
    return number


def private_names(value: Any) -> tuple[str, ...]:
    """Addresses, networks and host names; what each is, the broker's rules find out when they are made from it."""
    found = names(value)
    for name in found:
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,253}(/\d{1,3})?", name):
            raise ValueError("wants addresses, networks or host names")
    return found


def switch(value: Any) -> bool:
    """TOML's own true and false, or a text that means one of them."""
    found = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    meant = found.get(str(value).strip().lower())
    if meant is None:
        raise ValueError("wants true or false")
    return meant


def folder(value: Any) -> Path | None:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("wants a path")
    return Path(os.path.abspath(os.path.expanduser(value))) if value.strip() else None


def choice(*known: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in known:
            raise ValueError(f"wants one of {', '.join(known)}")
        return str(value)

    return parse


def names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("wants a list of texts")
    return tuple(value)


MODES = ("rw", "overlay", "ro")
"""What scripts may write, the most permissive first."""


def stricter(old: Any, new: Any) -> bool:
    return MODES.index(new) >= MODES.index(old)


def smaller(old: Any, new: Any) -> bool:
    return bool(new <= old)


def fewer(old: Any, new: Any) -> bool:
    """For a list whose emptiness means everything: a project may only leave entries out."""
    return new == old or bool(new and (not old or set(new) <= set(old)))


def only_off(old: Any, new: Any) -> bool:
    return bool(old or not new)


def only_on(old: Any, new: Any) -> bool:
    return bool(new or not old)


def never(old: Any, new: Any) -> bool:
    return bool(old == new)
