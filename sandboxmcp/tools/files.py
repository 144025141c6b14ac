"""The files of `ctx_execute_file`: which are meant, which may be read, and how each gets to its script.

Which file is meant is decided once, by opening it and asking where it really lies. One of the project is then read inside the
sandbox under that path: what a script has put in its place meanwhile is resolved inside. One of another allowed folder is
opened and checked once more when it is copied in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.model import BoundFile
from sandboxmcp.core.surface import call, quoted
from sandboxmcp.session import Session
from sandboxmcp.tools.roots import allowed_roots, meant, opened, refuse_secret
from sandboxmcp.tools.walking import is_glob, matches

MOST_FILES = 500
"""Of one call: each is an item of its own."""
_MOST_TOLD = 5
"""Files that are left out, by name."""


def bound_files(session: Session, path: str | None, paths: Sequence[str]) -> tuple[list[tuple[str, BoundFile]], tuple[str, ...]]:
    """The files with the names to show them by, and a note of each that a glob matches and that may not be read. Blocking.

    Raises:
        UsageError: both or neither is given, nothing matches, there are too many, or one that is named may not be read.
    """
    given = [*([path] if path is not None else []), *paths]
    if not given or (path is not None and paths):
        raise UsageError(
            f"give either {quoted('path')} or {quoted('paths')}", "A path, or a list of paths and globs such as logs/*.txt."
        )
    project = Path(session.project)
    roots = allowed_roots(session.settings)
    found = list(islice(dict.fromkeys(file for one in given for file in _files(one, project, roots)), MOST_FILES + 1))
    if not found:
        raise UsageError(
            f"no file matches {', '.join(given)[:200]}", "Globs start at the project's folder; ignored files are left out."
        )
    if len(found) > MOST_FILES:
        fix = f"Narrow the glob, or read them with one script in {call('ctx_execute')}."
        raise UsageError(f"more than {MOST_FILES} files match {', '.join(given)[:200]}", fix)
    named = {meant(one, project) for one in given}
    files: list[tuple[str, BoundFile]] = []
    refused: list[UsageError] = []
    for file in found:
        try:
            files.append((_shown(file, project), _bound(session, file)))
        except UsageError as error:
            if file in named:
                raise
            refused.append(error)
    if not files:
        raise refused[0]
    return files, _told(refused)


def _told(refused: Sequence[UsageError]) -> tuple[str, ...]:
    more = (f"left out: {len(refused) - _MOST_TOLD} more",) if len(refused) > _MOST_TOLD else ()
    return (*(f"left out: {error.what}" for error in refused[:_MOST_TOLD]), *more)


def _files(path: str, project: Path, roots: Sequence[Path]) -> Iterator[Path]:
    whole = meant(path, project)
    if is_glob(path) and not os.path.lexists(whole):
        yield from matches(str(whole), project, roots)
    else:
        yield whole


def _bound(session: Session, file: Path) -> BoundFile:
    roots = allowed_roots(session.settings)
    with opened(file, roots) as readable:
        real = Path(os.path.realpath(readable))
        refuse_secret(file, real, readable)
    workspace = Path(os.path.realpath(session.settings.workspace))
    if real.is_relative_to(workspace):
        return BoundFile(real)
    return BoundFile(real, partial(opened, real, roots))


def _shown(file: Path, project: Path) -> str:
    return file.relative_to(project).as_posix() if file.is_relative_to(project) else str(file)
