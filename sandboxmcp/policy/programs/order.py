"""An order: what a command line of curl or wget asks for, once every option has been found on the allow-list. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["file", "null", "stream"]
"""What a standard stream of the shim is: a regular file, /dev/null, or anything that is read as it comes."""
Existing = Literal["replace", "number", "skip"]
"""What to do when the output is there already: write over it, take `NAME.1`, or leave it and fetch nothing."""
Family = Literal["any", "ipv4", "ipv6"]
Option = tuple[str, ...]
"""An option of the real curl: its name, and its value if it has one."""

STDOUT = "-"
NOWHERE = "/dev/null"


class Refusal(Exception):
    """The command line is not allowed, or makes no sense. The message completes `curl: (sandbox) …`; `code` is the exit code."""

    def __init__(self, why: str, code: int = 2) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Download:
    """One URL and where its body goes: a path as the script wrote it, STDOUT (a regular file then), or NOWHERE."""

    url: str
    output: str


@dataclass(frozen=True, slots=True)
class Retries:
    """When a failed attempt is made again. The broker does it itself: curl would append the second body to the first."""

    count: int = 0
    delay_s: float | None = None
    """None: 1 s, doubled each time."""
    within_s: float | None = None
    refused_too: bool = False
    any_error: bool = False


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """Everything that the engine, and whoever opens the output, must know."""

    downloads: tuple[Download, ...]
    options: tuple[Option, ...] = ()
    """More options for the real curl, each checked."""
    existing: Existing = "replace"
    create_folders: bool = False
    headers_to: str | None = None
    write_out: str | None = None
    show_errors: bool = True
    max_redirects: int = 0
    """0: redirects are not followed."""
    max_seconds: float | None = None
    max_bytes: int | None = None
    head: bool = False
    fail: bool = False
    """An HTTP error writes no body."""
    remove_on_error: bool = False
    schemes: tuple[str, ...] = ("http", "https")
    family: Family = "any"
    """Which addresses of a name are connected to. The relay sees to it: curl's own `-4` fails on a proxy without an address."""
    retries: Retries = field(default_factory=Retries)
    shape: str = ""
    """For the log: the options that were given, without their values."""
