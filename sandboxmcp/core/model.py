"""The nouns that travel between rooms. Plain frozen values: no behaviour that touches the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandboxmcp.core.reasons import Reason

Action = Literal["allow", "ask", "deny"]
Setting = Literal["kernel", "host"]
"""Where the judged code would run: inside our kernel, or on the agent's own host shell."""

Status = Literal["ok", "failed", "timeout", "cancelled", "killed", "denied", "skipped"]
"""How an item ended. `failed`: by its own exit code, or with exit code 0 where a full disk lost some of what it wrote;
`killed`: by a limit, a signal or a sibling."""

ContentKind = Literal["code", "prose", "log", "data"]
Origin = Literal["execute", "batch", "file", "text", "artifact", "page"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """What where a text came from means for storing it."""

    is_known_again: bool = False
    """The same content under the same label and path is the source that is there already."""
    replaces: bool = False
    """A new content takes the place of the old one, which leaves search."""
    is_outside: bool = False
    """It came from the network: only a worker process reads its structure."""


PROVENANCE: Mapping[Origin, Provenance] = {
    "execute": Provenance(),
    "batch": Provenance(),
    "artifact": Provenance(),
    "text": Provenance(is_known_again=True),
    "file": Provenance(is_known_again=True, replaces=True),
    "page": Provenance(is_known_again=True, replaces=True, is_outside=True),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the policy says of one piece of code, before anything starts."""

    action: Action
    pack: str | None = None
    rule: str | None = None
    line: int | None = None
    """1-based line of the judged code."""
    because: str = ""
    instead: str = ""
    program: str = field(default="", compare=False)
    """What the rule was about: a program, a function, a module, a path."""
    unknown: tuple[str, ...] = ()
    """Parts that static analysis could not resolve, for the reader; they do not change the action by themselves."""


@dataclass(frozen=True, slots=True)
class BoundFile:
    """A file that a script is about: bound to FILE_PATH and FILE_CONTENT in its language."""

    path: Path
    """Its real path on the host."""
    opened: Callable[[], AbstractContextManager[Path]] | None = None
    """For a file that the sandbox does not see: gives, after checks of its own, a path under which it can be copied. None: the
    sandbox sees it at the same path, and whatever stands there is resolved inside."""


BYTE_ORDER_MARK = "\ufeff"
"""What some editors begin a file with, and interpreters take for code."""


@dataclass(frozen=True, slots=True)
class Script:
    """One thing to run: an item of a batch, or a single execution."""

    label: str
    language: str
    code: str
    timeout_s: float = 120.0
    kernel: str | None = None
    """The named kernel to run in; None: a fresh one."""
    cwd: str | None = None
    """Absolute path of the working folder; None: the workspace, or where the named kernel is."""
    file: BoundFile | None = None


@dataclass(frozen=True, slots=True)
class StreamCapture:
    """One captured stream as it lies on the host's disk, byte for byte."""

    path: Path
    total: int
    """Bytes the script wrote."""
    kept: int
    """Bytes in the file; less than `total` when the cap was reached, or something went wrong."""
    trouble: str = ""
    """What went wrong: the disk is full, or cannot be written."""
    wanted: int = 0
    """Bytes that the cap lets in, of what the script wrote."""

    @property
    def lost(self) -> int:
        """Bytes that should have been kept and could not."""
        return max(self.wanted - self.kept, 0) if self.trouble else 0


@dataclass(frozen=True, slots=True)
class Artifact:
    """A rich result (image, HTML, JSON…) that a kernel displayed, saved to a file of its own."""

    mime: str
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one script. A non-zero exit is a result, not an error of ours."""

    script: Script
    status: Status
    exit_code: int | None
    """None when it did not end by itself (timeout, cancelled, killed, denied, skipped)."""
    wall_s: float
    stdout: StreamCapture | None = None
    stderr: StreamCapture | None = None
    artifacts: tuple[Artifact, ...] = ()
    reasons: tuple[Reason, ...] = ()
    """What the status alone does not say: which limit, what was lost, what to change. A denial has its verdict instead."""
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class NewSource:
    """What is known about a text before it is stored."""

    label: str
    origin: Origin
    project: str
    session: str
    batch: str | None = None
    kind: ContentKind | None = None
    """None: recognised from the content."""
    path: str | None = None
    """Where it came from: the absolute path of a `file`, the URL of a `page`."""
    mime: str = "text/plain"
    total_bytes: int | None = None
    """What the script wrote, when more than was kept."""
    stamp: str = ""
    """What tells that a file changed without reading it: its time in nanoseconds, a colon, its size and what else there is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stored text: a capture, a file, a document. `handle` is what is unique; labels may repeat."""

    handle: str
    label: str
    origin: Origin
    kind: ContentKind
    project: str
    session: str
    batch: str | None
    bytes: int
    total_bytes: int
    lines: int
    chunks: int
    indexed_bytes: int
    created_at: float
    """Seconds since the epoch."""
    hits: int = 0
    path: str | None = None
    mime: str = "text/plain"
    unchanged: bool = False
    """True when storing found the same content already indexed under this label and path."""
    plain: bool = False
    """True when storing could not read its structure within the limits, so that it was indexed as plain lines."""
    digest: str = ""
    """Of its content: sources with the same one are copies."""
    gone: bool = False
    """True when the file that it came from is no longer there."""


@dataclass(slots=True, unsafe_hash=True)  # not frozen: that takes five times as long to make, and a search makes hundreds
class Hit:
    """One passage that answers a query, ready to cite as `handle:first-last`."""

    handle: str
    label: str
    first_line: int
    last_line: int
    """1-based, inclusive, as `Store.read` counts them."""
    text: str
    score: float
    title: str = ""
    created_at: float = 0.0
    partial: bool = False
    """True when a very long line was cut: the citation still names the whole line."""
    passages: int = field(default=1, compare=False)
    """So many of the index, joined as they follow on each other."""
    best_line: int = field(default=-1, compare=False)
    """Index of the line in `text` that says most for the query; -1 where nobody knows."""

    @property
    def citation(self) -> str:
        return f"{self.handle}:{self.first_line}-{self.last_line}"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which sources a search may look at; every given field must match. `project=None` means all projects."""

    project: str | None
    session: str | None = None
    batch: str | None = None
    handles: tuple[str, ...] = field(default=())
    source: str | None = None
    """Substring of the label; `%` and `_` mean themselves."""
    kind: ContentKind | None = None
