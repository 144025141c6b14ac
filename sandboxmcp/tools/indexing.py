"""`ctx_index`: a text, a file, a folder or a glob becomes sources; what could not be read is told, file by file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import StoreError, UsageError
from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.services import Services
from sandboxmcp.tools.answer import Answer, answer
from sandboxmcp.tools.budget import checked_budget
from sandboxmcp.tools.fence import clean_label, one_line
from sandboxmcp.tools.receipt import size
from sandboxmcp.tools.roots import allowed_roots, opened, require_inside
from sandboxmcp.tools.walking import is_glob, matches, walk

MAX_FILES = 2_000
_SAMPLE = 8 << 10
"""Bytes looked at for a NUL, the mark of a binary file (as git does)."""


@dataclass(slots=True)
class _Tally:
    """What became of the files: sources made, reasons for those that were not."""

    sources: list[Source] = field(default_factory=list)
    binary: int = 0
    refused: list[str] = field(default_factory=list)
    beyond: bool = False


def index(
    services: Services,
    *,
    content: str | None = None,
    path: str | None = None,
    source: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_files: int = MAX_FILES,
    budget_tokens: int,
) -> Answer:
    """Store and index; blocking.

    Raises:
        UsageError: both or neither of content and path, an empty content, a glob without a match, a path that may not be read
            or is not there, a binary file.
        StoreError.
    """
    checked_budget(budget_tokens)
    if content is None and path is None:
        raise UsageError("nothing is given to index", "Give `content`, a text, or `path`, a file, folder or glob.")
    if content is not None and path is not None:
        raise UsageError("both `content` and `path` are given", "Give one of them.")
    if content is not None:
        if not content.strip():
            raise UsageError("content is empty", "Give a text with something in it.")
        new = NewSource(clean_label(source or "", "text"), "text", services.project, services.session)
        tally = _Tally([services.store.add(new, content)])
    else:
        tally = _index_path(services, _clean_path(path or ""), source, include, exclude, max_files)
    return answer(_lines(tally, max_files), budget_tokens, _facts(tally))


def _clean_path(path: str) -> str:
    if not path or "\0" in path:
        raise UsageError(f"path is {'empty' if not path else 'broken by a NUL byte'}", "Give a file, a folder or a glob.")
    return path


def _index_path(
    services: Services, path: str, source: str | None, include: Sequence[str], exclude: Sequence[str], max_files: int
) -> _Tally:
    roots = allowed_roots(services.settings)
    project = Path(services.project)
    whole = project / Path(path).expanduser()
    if whole.is_dir():
        require_inside(whole, roots)
        return _index_files(services, walk(whole, include=include, exclude=exclude), whole, source, max_files)
    if is_glob(path) and not whole.exists():
        tally = _index_files(services, matches(path, project, exclude=exclude), project, source, max_files)
        if not (tally.sources or tally.binary or tally.refused):
            raise UsageError(f"no file matches {path!r}", "A glob is relative to the project, and ignored files do not count.")
        return tally
    tally = _Tally()
    if not _index_file(services, whole, clean_label(source or f"file:{_relative(whole, project)}", "file"), tally):
        raise UsageError(f"{whole} is a binary file", "Only text is indexed.")
    return tally


def _index_files(services: Services, files: Iterable[Path], base: Path, source: str | None, max_files: int) -> _Tally:
    tally = _Tally()
    remaining = iter(files)
    for file in islice(remaining, max_files):
        name = _relative(file, Path(services.project) if source is None else base)
        label = clean_label(f"{source}/{name}" if source else f"file:{name}", "file")
        try:
            tally.binary += not _index_file(services, file, label, tally)
        except UsageError as error:
            tally.refused.append(one_line(error.what, 200))
    tally.beyond = next(remaining, None) is not None
    return tally


def _index_file(services: Services, file: Path, label: str, tally: _Tally) -> bool:
    """Says whether it was text and is now in the store."""
    with opened(file, allowed_roots(services.settings)) as readable:
        with readable.open("rb") as stream:
            if b"\0" in stream.read(_SAMPLE):
                return False
        new = NewSource(label, "file", services.project, services.session, path=str(file), stamp=stamp_of(readable.stat()))
        try:
            tally.sources.append(services.store.add(new, readable))
        except OSError as error:
            raise StoreError(f"{file} could not be read to its end: {error.strerror}") from None
    return True


def index_again(services: Services, path: str, label: str) -> None:
    """Read a file that was stored before and has changed since.

    Raises:
        UsageError: it can no longer be read, or lies outside the roots by now. StoreError.
    """
    _index_file(services, Path(path), label, _Tally())


def stamp_of(status: os.stat_result) -> str:
    """What differs when a file was changed: its time in nanoseconds, its size, and which file it is."""
    return f"{status.st_mtime_ns}:{status.st_size}:{status.st_ino}"


def _relative(file: Path, base: Path) -> str:
    return file.relative_to(base).as_posix() if file.is_relative_to(base) else str(file)


def _lines(tally: _Tally, max_files: int) -> list[str]:
    if len(tally.sources) == 1 and not (tally.binary or tally.refused or tally.beyond):
        one = tally.sources[0]
        return [f"{'unchanged' if one.unchanged else 'indexed'} {one.handle} {one.label}: {size(one)}"]
    counts = Counter("unchanged" if one.unchanged else "indexed" for one in tally.sources)
    parts = [f"{number} {what}" for what, number in counts.items()] or ["nothing indexed"]
    parts += [f"{tally.binary} binary skipped"] * bool(tally.binary) + [f"{len(tally.refused)} refused"] * bool(tally.refused)
    lines = [f"{', '.join(parts)}: {sum(one.bytes for one in tally.sources)} B"]
    if tally.beyond:
        lines.append(f"more files than max_files={max_files} were left out; raise it or narrow with include")
    return [*lines, *(f"refused: {text}" for text in tally.refused), *(f"{one.handle} {one.label}" for one in tally.sources)]


def _facts(tally: _Tally) -> dict[str, Any]:
    fresh = [one for one in tally.sources if not one.unchanged]
    facts: dict[str, Any] = {
        "indexed": len(fresh),
        "unchanged": len(tally.sources) - len(fresh),
        "binary": tally.binary,
        "refused": len(tally.refused),
        "beyond_max_files": tally.beyond,
        "bytes": sum(one.bytes for one in tally.sources),
        "chunks": sum(one.chunks for one in tally.sources),
    }
    return facts | ({"handle": tally.sources[0].handle} if len(tally.sources) == 1 else {})
