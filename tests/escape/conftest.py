"""How an escape is attempted: the same code as a plain process of the host, where it must work, and then inside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

PRELUDE = """
import ctypes, errno, fcntl, os, socket, struct, subprocess, sys
_libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(4096)

def call(number, *arguments):
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    if (result := _libc.syscall(ctypes.c_long(number), *words)) < 0:
        raise OSError(ctypes.get_errno(), "")
    return result

def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as one:
        one.settimeout(5)
        one.connect(address)

def in_child(action):
    r, w = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            action()
            os.write(w, b"0")
        except OSError as error:
            os.write(w, str(error.errno).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    if number := int(os.read(r, 9)):
        raise OSError(number, "")

def word(source):
    try:
        eval(source)
    except OSError as error:
        return errno.errorcode.get(error.errno, repr(error))
    return "done"
"""
_NOT_ALLOWED = {"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENODEV", "EIO", "EROFS"}
"""What a machine without a feature, or a user without a right, answers outside."""


class NotShownOutside(UserWarning):
    """An attempt that this machine or this user cannot make even without a sandbox; its inside half still ran."""


@dataclass(frozen=True)
class Attempt:
    """The same code on both sides."""

    outside: subprocess.CompletedProcess[str]
    inside: Any
    """A `Ran` of tests/conftest.py."""


def on_the_host(code: str, language: str, folder: Any, timeout_s: float) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c"] if language == "python" else ["/bin/bash", "-c"]
    return subprocess.run(
        [*program, code], cwd=folder, capture_output=True, text=True, errors="replace", timeout=timeout_s, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def attempt(inside) -> Callable[..., Attempt]:
    """Runs code outside and then inside: `attempt(code, language)`."""

    def both(code: str, language: str = "python", timeout_s: float = 20.0) -> Attempt:
        outside = on_the_host(code, language, inside.workspace, timeout_s)
        return Attempt(outside, inside.run(code, language, timeout_s))

    return both


@pytest.fixture
def prelude() -> str:
    """Source of what attempts call: `call`, `in_child`, `word`."""
    return PRELUDE


@pytest.fixture
def refused(inside) -> Callable[..., dict[str, str]]:
    """What becomes inside of each Python expression (name → source): `done`, or the error's name.

    Outside, each must come to another end than inside. Those in `perhaps` may fail there for want of a right or a feature;
    then a warning names them, so that nothing is passed over in silence. `helpers`: source of functions that they call.
    """

    def run(actions: Mapping[str, str], perhaps: Collection[str] = (), helpers: str = "") -> dict[str, str]:
        code = f"{PRELUDE}\n{helpers}\nimport json\n"
        code += f"print(json.dumps({{name: word(source) for name, source in {dict(actions)!r}.items()}}))"
        done = on_the_host(code, "python", inside.workspace, 30.0)
        assert done.returncode == 0, done.stderr
        outside: dict[str, str] = json.loads(done.stdout)
        ran = inside.run(code)
        assert ran.outcome.status == "ok", ran.stderr.decode()
        found: dict[str, str] = json.loads(ran.stdout)
        for name in [one for one in perhaps if outside[one] in _NOT_ALLOWED]:
            not_shown(name, f"{outside.pop(name)} as uid {os.getuid()} of this machine")
        assert {name: result for name, result in outside.items() if result == found[name]} == {}
        return found

    return run


def not_shown(name: str, why: str) -> None:
    warnings.warn(NotShownOutside(f"{name}: {why}"), stacklevel=3)


@pytest.fixture
def cannot_show() -> Callable[[str, str], None]:
    """Says in the test report that an attempt could not be shown to work outside, and why."""
    return not_shown
