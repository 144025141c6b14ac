"""`ctx_index`: a text, a file, a folder or a glob becomes sources; what could not be read is told, file by file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import StoreError, UsageError
from sandboxmcp.core.model import NewSource, Source
from sandboxmcp.core.surface import argument, call, quoted
from sandboxmcp.render.answer import Answer, answer
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.render.fence import clean_label, one_line
from sandboxmcp.render.receipt import size
from sandboxmcp.session import Session
from sandboxmcp.store.captures.content import SAMPLE_BYTES, is_utf16
from sandboxmcp.store.index.bulk_add import Together
from sandboxmcp.tools.roots import allowed_roots, meant, opened, refuse_secret, require_inside
from sandboxmcp.tools.walking import is_glob, matches, walk

MAX_FILES = 2_000
_MOST_FILES = 100_000
_MOST_COUNTED = 20_000
"""Files beyond max_files are counted as far as this: each is looked at as git would."""
_NAMED = 5
"""Binary files that an answer names."""


@dataclass(slots=True)
class _Tally:
    """What became of the files: sources made, reasons for those that were not."""

    sources: list[Source] = field(default_factory=list)
    binary: int = 0
    binaries: list[str] = field(default_factory=list)
    """Names of the first few binary files."""
    refused: list[str] = field(default_factory=list)
    beyond: int = 0
    """Files after the first max_files, counted up to a bound."""
    room: int = 0
    """Bytes that this call may still read."""

    def skip_binary(self, name: str) -> None:
        self.binary += 1
        if len(self.binaries) < _NAMED:
            self.binaries.append(one_line(name, 80))

    def leave_out(self, path: Path, reason: str) -> None:
        self.refused.append(one_line(f"{path} {reason}", 200))


def index(
    session: Session,
    *,
    content: str | None = None,
    path: str | None = None,
    more: Sequence[str] = (),
    source: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_files: int = MAX_FILES,
    budget_tokens: int,
) -> Answer:
    """Store and index; blocking. `more`: further paths; what cannot be read of several is told and does not stop the others.

    Raises:
        UsageError: both or neither of content and path, an empty content, a glob without a match, a pattern that is none, a
            path that may not be read or is not there, a binary file, a file of secrets or one that is too large.
        StoreError.
    """
    checked_budget(budget_tokens)
    if content is None and path is None:
        raise UsageError(
            "nothing is given to index", f"Give {quoted('content')}, a text, or {quoted('path')}, a file, folder or glob."
        )
    if content is not None and path is not None:
        raise UsageError(f"both {quoted('content')} and {quoted('path')} are given", "Give one of them.")
    if not 0 < max_files <= _MOST_FILES:
        raise UsageError(f"max_files is {str(max_files)[:20]}", f"Give a number from 1 to {_MOST_FILES:,}.")
    if content is not None:
        if not content.strip():
            raise UsageError("content is empty", "Give a text with something in it.")
        new = NewSource(clean_label(source or "", "text", session.masked), "text", session.project, session.id)
        tally = _Tally([session.store.add(new, content)])
    else:
        tally = _Tally(room=session.settings.limits.output)
        for one in (path or "", *more):
            try:
                _index_path(session, one, source, include, exclude, max_files, tally)
            except UsageError as error:
                if not more:
                    raise
                tally.refused.append(one_line(error.what, 200))
    return answer(_lines(tally, max_files), budget_tokens, _facts(tally), is_error=bool(more) and not tally.sources)


def _index_path(
    session: Session, path: str, source: str | None, include: Sequence[str], exclude: Sequence[str], max_files: int, tally: _Tally
) -> None:
    roots = allowed_roots(session.settings)
    project = Path(session.project)
    whole = meant(path, project)
    if os.path.isdir(whole):
        require_inside(whole, roots)
        files = walk(whole, include=include, exclude=exclude, left_out=tally.leave_out)
        _index_files(session, files, whole, source, max_files, tally)
    elif is_glob(path) and not os.path.lexists(whole):
        files = matches(str(whole), project, roots, exclude=exclude, left_out=tally.leave_out)
        before = len(tally.refused)
        if not _index_files(session, files, project, source, max_files, tally):
            because = f" ({tally.refused[before]})" if tally.refused[before:] else ""
            fix = "A glob is relative to the project, and ignored files do not count."
            raise UsageError(f"no file matches {path[:200]!r}{because}", fix)
    elif not _index_one(session, whole, clean_label(source or f"file:{_relative(whole, project)}", "file", session.masked), tally):
        raise UsageError(f"{whole} is a binary file", "Only text is indexed.")


def _index_files(session: Session, files: Iterator[Path], base: Path, source: str | None, max_files: int, tally: _Tally) -> int:
    """Says how many files there were, up to max_files."""
    number = 0
    with session.store.together() as batch:
        for file in islice(files, max_files):
            number += 1
            name = _relative(file, Path(session.project) if source is None else base)
            label = clean_label(f"{source}/{name}" if source else f"file:{name}", "file", session.masked)
            try:
                if not _index_file(session, batch, file, label, tally):
                    tally.skip_binary(name)
            except UsageError as error:
                tally.refused.append(one_line(error.what, 200))
    tally.sources += batch.sources
    tally.beyond += sum(1 for _ in islice(files, _MOST_COUNTED))
    return number


def _index_one(session: Session, file: Path, label: str, tally: _Tally) -> bool:
    with session.store.together() as batch:
        is_text = _index_file(session, batch, file, label, tally)
    tally.sources += batch.sources
    return is_text


def _index_file(session: Session, batch: Together, file: Path, label: str, tally: _Tally) -> bool:
    """Says whether it is text and will be in the store with the batch."""
    with opened(file, allowed_roots(session.settings)) as readable:
        refuse_secret(file, Path(os.path.realpath(readable)), readable)
        status = readable.stat()
        if status.st_size > tally.room:
            raise UsageError(
                f"{file} has {status.st_size:,} bytes, {tally.room:,} are left of what one call may read (limits.output)",
                f"Raise limits.output, or read the part that you need with {call('ctx_execute_file')}.",
            )
        with readable.open("rb") as stream:
            if _is_binary(stream.read(SAMPLE_BYTES), status.st_size):
                return False
        new = NewSource(label, "file", session.project, session.id, path=str(file), stamp=stamp_of(status))
        try:
            stored = batch.add(new, readable)
        except OSError as error:
            raise StoreError(f"{file} could not be read to its end: {error.strerror}") from None
    tally.room -= 0 if stored is not None and stored.unchanged else status.st_size
    return True


def _is_binary(beginning: bytes, size: int) -> bool:
    """A NUL is the mark (as for git)."""
    return b"\0" in beginning and not is_utf16(beginning, size)


def index_again(session: Session, batch: Together, path: str, label: str) -> None:
    """Read a file that was stored before and has changed since.

    Raises:
        UsageError: it can no longer be read, or lies outside the roots by now. StoreError.
    """
    _index_file(session, batch, Path(path), label, _Tally(room=session.settings.limits.output))


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
    if not (tally.sources or tally.binary or tally.refused):
        lines.append("no file there is left by include, exclude and .gitignore")
    if tally.beyond:
        beyond = f"{tally.beyond} more" if tally.beyond < _MOST_COUNTED else f"{_MOST_COUNTED:,} and more"
        lines.append(
            f"{beyond} files than {argument('max_files', max_files)} were left out; raise it or narrow with {argument('include')}"
        )
    if tally.binary:
        more = f" and {tally.binary - len(tally.binaries)} more" if tally.binary > len(tally.binaries) else ""
        lines.append(f"binary: {', '.join(tally.binaries)}{more}")
    return [*lines, *(f"refused: {text}" for text in tally.refused), *map(_listed, tally.sources)]


def _listed(one: Source) -> str:
    partly = one.indexed_bytes < one.bytes or one.bytes < one.total_bytes
    return f"{one.handle} {one.label}: {size(one)}" if partly else f"{one.handle} {one.label}"


def _facts(tally: _Tally) -> dict[str, Any]:
    fresh = [one for one in tally.sources if not one.unchanged]
    facts: dict[str, Any] = {
        "indexed": len(fresh),
        "unchanged": len(tally.sources) - len(fresh),
        "binary": tally.binary,
        "refused": len(tally.refused),
        "beyond_max_files": tally.beyond > 0,
        "bytes": sum(one.bytes for one in tally.sources),
        "chunks": sum(one.chunks for one in tally.sources),
    }
    return facts | ({"handle": tally.sources[0].handle} if len(tally.sources) == 1 else {})
