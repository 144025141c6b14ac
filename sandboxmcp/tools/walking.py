"""The files of a folder in a stable order, as git would see them: `.gitignore` at every level, `.git/info/exclude`, never `.git`.

Read with pathspec, not asked of git: the project folder is writable from inside the sandbox, and git runs programs that a
repository's own configuration names (core.fsmonitor and others).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.safe_open import read_regular
from sandboxmcp.tools.roots import require_inside

_WILD = frozenset("*?[")
_DEEPEST = 200
"""Folders inside each other; beyond it the system's longest path is near."""
_LONGEST_PATTERN = 1_000
_MOST_STARS = 4
"""In one part of a path: pathspec tries every way to share a name out among them, which with ten takes years."""
_UNREADABLE = (ValueError, re.error, RecursionError, OverflowError)
"""What pathspec raises for a pattern that is none."""
_Rules = tuple[tuple[Path, GitIgnoreSpec], ...]
LeftOut = Callable[[Path, str], None]
"""Told of a file or folder that is not read, and why."""


def is_glob(path: str) -> bool:
    return not _WILD.isdisjoint(path)


def walk(
    folder: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = (), left_out: LeftOut | None = None
) -> Iterator[Path]:
    """Files under the folder that git would not ignore, sorted; symlinks to folders are not followed.

    `include` and `exclude` are patterns as in a .gitignore, relative to the folder.

    Raises:
        UsageError: a pattern that is none, at once.
    """
    wanted = _spec("include", include) if include else None
    return _chosen(folder, wanted, _spec("exclude", exclude), left_out or _untold)


def matches(
    pattern: str, project: Path, roots: Sequence[Path], *, exclude: Sequence[str] = (), left_out: LeftOut | None = None
) -> Iterator[Path]:
    """Files that a glob names, absolute or relative to the project; ignored ones only if the glob has no wildcard folder.

    Raises:
        UsageError: the folder before its first wildcard is not there, or lies outside the roots; nothing is looked at then.
    """
    base, rest = _split(Path(os.path.normpath(project / pattern)))
    require_inside(base, roots)
    if not os.path.isdir(base):
        raise UsageError(f"no folder {str(base)[:200]}", "Check the part of the glob before its first wildcard.")
    return walk(base, include=("/" + rest,), exclude=exclude, left_out=left_out)


def _untold(path: Path, reason: str) -> None:
    """For callers that do not ask what was left out."""


def _spec(name: str, patterns: Sequence[str]) -> GitIgnoreSpec:
    """The patterns of an argument.

    Raises:
        UsageError: one of them says nothing.
    """
    for pattern in patterns:
        if (
            not pattern.strip()
            or "\0" in pattern
            or len(pattern) > _LONGEST_PATTERN
            or _is_endless(pattern)
            or not _readable([pattern])
        ):
            raise UsageError(
                f"{name} holds {pattern[:80]!r}, which is no pattern", "Give patterns as in a .gitignore, such as *.md."
            )
    return GitIgnoreSpec.from_lines(patterns)


def _is_endless(pattern: str) -> bool:
    """Would a long name be tried against it for years?"""
    return any(part.count("*") > _MOST_STARS for part in pattern.split("/"))


def _readable(lines: Iterable[str]) -> list[str]:
    """Those of the lines that pathspec can read; git too passes over one that it cannot read."""
    kept = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except _UNREADABLE:
            continue
        kept.append(line)
    return kept


def _split(pattern: Path) -> tuple[Path, str]:
    """The folder before the first wildcard, and the rest."""
    parts = pattern.parts
    first = next(index for index, part in enumerate(parts) if is_glob(part))
    return Path(*parts[:first]), "/".join(parts[first:])


def _chosen(folder: Path, wanted: GitIgnoreSpec | None, unwanted: GitIgnoreSpec, left_out: LeftOut) -> Iterator[Path]:
    within = len(os.path.join(folder, ""))
    for file in _walk(folder, _rules_above(folder), left_out):
        name = str(file)[within:]
        if not unwanted.match_file(name) and (wanted is None or wanted.match_file(name)):
            yield file


def _walk(folder: Path, rules: _Rules, left_out: LeftOut) -> Iterator[Path]:
    """Depth first, folders and files by name together. Not recursive: a script can make folders deeper than Python calls itself."""
    waiting = [_listed(folder, rules, left_out)]
    while waiting:
        inner = next(waiting[-1], None)
        if inner is None:
            waiting.pop()
        elif isinstance(inner, Path):
            yield inner
        elif len(waiting) == _DEEPEST:
            left_out(inner[0], f"a folder {_DEEPEST} folders deep")
        else:
            waiting.append(_listed(*inner, left_out))


def _listed(folder: Path, rules: _Rules, left_out: LeftOut) -> Iterator[Path | tuple[Path, _Rules]]:
    """Files of one folder, and its folders with the rules for them."""
    rules = (*rules, *_rules_of(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        left_out(folder, f"the folder cannot be read: {error.strerror}")
        return
    for entry in entries:
        path = folder / entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or _ignored(path, is_folder, rules):
            continue
        if is_folder:
            yield path, rules
        elif entry.is_symlink() and os.path.isdir(path):
            left_out(path, "a link to a folder is not followed")
        else:
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
        if file.is_symlink():
            return []
        lines = read_regular(file).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return []
    lines = [line for line in lines if not _is_endless(line)]
    try:
        return [GitIgnoreSpec.from_lines(lines)]
    except _UNREADABLE:
        return [GitIgnoreSpec.from_lines(_readable(lines))]
