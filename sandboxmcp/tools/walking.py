"""The files of a folder in a stable order, as git would see them: `.gitignore` at every level, `.git/info/exclude`, never `.git`.

Read with pathspec, not asked of git: the project folder is writable from inside the sandbox, and git runs programs that a
repository's own configuration names (core.fsmonitor and others).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from sandboxmcp.core.errors import UsageError

_WILD = frozenset("*?[")
_Rules = tuple[tuple[Path, GitIgnoreSpec], ...]


def is_glob(path: str) -> bool:
    return not _WILD.isdisjoint(path)


def walk(folder: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Iterator[Path]:
    """Files under the folder that git would not ignore, sorted; symlinks to folders are not followed.

    `include` and `exclude` are patterns as in a .gitignore, relative to the folder.
    """
    wanted = GitIgnoreSpec.from_lines(include) if include else None
    unwanted = GitIgnoreSpec.from_lines(exclude)
    for file in _walk(folder, _rules_above(folder)):
        name = file.relative_to(folder).as_posix()
        if not unwanted.match_file(name) and (wanted is None or wanted.match_file(name)):
            yield file


def matches(pattern: str, project: Path, *, exclude: Sequence[str] = ()) -> Iterator[Path]:
    """Files that a glob names, absolute or relative to the project; ignored ones only if the glob has no wildcard folder."""
    base, rest = _split(project / pattern)
    if not base.is_dir():
        raise UsageError(f"no folder {base}", "Check the part of the glob before its first wildcard.")
    return walk(base, include=("/" + rest,), exclude=exclude)


def _split(pattern: Path) -> tuple[Path, str]:
    """The folder before the first wildcard, and the rest."""
    parts = pattern.parts
    first = next(index for index, part in enumerate(parts) if is_glob(part))
    return Path(*parts[:first]), "/".join(parts[first:])


def _walk(folder: Path, rules: _Rules) -> Iterator[Path]:
    rules = (*rules, *_rules_of(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = folder / entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _ignored(path, is_folder, rules):
            continue
        if is_folder:
            yield from _walk(path, rules)
        elif not (entry.is_symlink() and path.is_dir()):
            yield path


def _ignored(path: Path, is_folder: bool, rules: _Rules) -> bool:
    """The nearest file of rules that says something decides, and in it the last pattern that matches."""
    for base, spec in reversed(rules):
        said = spec.check_file(path.relative_to(base).as_posix() + ("/" if is_folder else "")).include
        if said is not None:
            return said
    return False


def _rules_above(folder: Path) -> _Rules:
    """The rules of the enclosing folders, from the repository's top down; none outside a repository."""
    above = [folder, *folder.parents]
    top = next((index for index, one in enumerate(above) if (one / ".git").exists()), 0)
    parents = above[1 : top + 1][::-1]
    exclude = _read(above[top] / ".git" / "info" / "exclude")
    return (*((above[top], spec) for spec in exclude), *(rule for parent in parents for rule in _rules_of(parent)))


def _rules_of(folder: Path) -> _Rules:
    return tuple((folder, spec) for spec in _read(folder / ".gitignore"))


def _read(file: Path) -> list[GitIgnoreSpec]:
    try:
        if not file.is_file() or file.is_symlink():
            return []
        return [GitIgnoreSpec.from_lines(file.read_text(encoding="utf-8", errors="replace").splitlines())]
    except (OSError, ValueError):
        return []
