"""What a repository's settings, hooks and worktrees lead to in the workspace: git runs or obeys that as it does them.

    core.hooksPath, include.path    a folder of hooks and a file of settings like git's own
    core.fsmonitor, filters, …      programs, where they are files of the workspace
    links                           `.git/hooks/pre-commit -> ../../scripts/pre-commit`, `.claude -> agents`: what they end at
    .git/worktrees/NAME             worktrees that lie elsewhere on this machine and obey `commondir` here
    HEAD beside refs and objects    the workspace is a repository without a worktree, and holds its own settings

Read here, not by git, which would run what is looked for. Not seen: what such programs run in turn, settings in subfolders.
Source: git-config(1), gitrepository-layout(5).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from sandboxmcp.sandbox.quarantine import present

_REPOSITORY = ("hooks", "config", "config.worktree", "commondir")
_COMMANDS = frozenset(
    "askpass clean cmd command difffilter driver editor fsmonitor gitproxy helper packobjectshook pager process program smudge "
    "sshcommand textconv".split()
)
"""Last parts of keys whose values git runs."""
_HEADER = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_SETTING = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?")
_LONGEST = 1 << 20
_MOST_LINKS = 40
_MOST_KNOWN = 64
_known: dict[tuple[object, ...], tuple[tuple[str, str], ...]] = {}
"""Settings by what fstat(2) says of their file."""


def leads(workspace: Path, names: Collection[str]) -> tuple[str, ...]:
    """Paths of the workspace that are to be protected as the ones in `names` are, which are relative too. They need not exist."""
    given = frozenset(names)
    found = dict.fromkeys((*_bare(workspace), *_worktrees(workspace), *_named_by_settings(workspace)))
    for name in present(os.fspath(workspace), [*names, *found]):
        for entry in (name, *_links_below(workspace, name)):
            found.update(dict.fromkeys(_way(workspace, entry)))
    return tuple(name for name in found if name not in given)


def _bare(workspace: Path) -> Iterator[str]:
    if all(os.path.lexists(workspace / name) for name in ("HEAD", "refs", "objects")):
        yield from _REPOSITORY


def _worktrees(workspace: Path) -> Iterator[str]:
    """Those that are elsewhere, and say so themselves, which no script can have written: the others are folders like any other."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(workspace / ".git/worktrees")):
            own = workspace / ".git/worktrees" / name
            back = own / (_first_line(own / "gitdir") or "gitdir")
            if _inside(workspace, os.fspath(back)) is not None:
                continue
            said = _first_line(back).removeprefix("gitdir:").strip()
            if os.path.realpath(back.parent / said) == os.fspath(own):
                yield from (f".git/worktrees/{name}/{one}" for one in ("commondir", "config.worktree", "gitdir"))


def _named_by_settings(workspace: Path) -> Iterator[str]:
    waiting, seen = [*_settings_files(workspace)], set[Path]()
    while waiting and len(seen) < _MOST_KNOWN:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for key, value in _settings(file):
            section, last = key.partition(".")[0], key.rpartition(".")[2]
            if section in ("include", "includeif") and last == "path":
                included = file.parent / os.path.expanduser(value)
                waiting.append(included)
                named: Iterable[str] = [os.fspath(included)]
            elif key == "core.hookspath":
                named = [value]
            else:
                named = _programs(workspace, value) if last in _COMMANDS or section in ("alias", "pager") else ()
            yield from filter(None, (_inside(workspace, one) for one in named))


def _programs(workspace: Path, value: str) -> Iterator[str]:
    """The words of a command that are files there; its first one also where there is none yet, if it is written as a path."""
    words = [word for word in re.split(r"""[\s"';&|()]+""", value.lstrip("!")) if word and "://" not in word]
    for number, word in enumerate(words):
        path = workspace / os.path.expanduser(word)
        if _is_file(path) or os.path.islink(path) or (number == 0 and "/" in word.rstrip("/") and not os.path.lexists(path)):
            yield word


def _settings_files(workspace: Path) -> Iterator[Path]:
    """The repository's, where `.git` leads to, and the user's."""
    repository = workspace / ".git"
    if line := _first_line(repository):
        repository = workspace / line.removeprefix("gitdir:").strip()
    common = _first_line(repository / "commondir")
    yield (repository / common if common else repository) / "config"
    yield repository / "config.worktree"
    home = Path(os.environ.get("HOME") or "/nonexistent")
    yield home / ".gitconfig"
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/config"


def _settings(file: Path) -> tuple[tuple[str, str], ...]:
    """(key in small letters, value) of each setting; what is no setting is passed over."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ()
    with open(fd, "rb") as source:
        status = os.fstat(fd)
        facts = (file, status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns)
        if not stat.S_ISREG(status.st_mode):
            return ()
        if facts not in _known:
            if len(_known) > _MOST_KNOWN:
                _known.clear()
            _known[facts] = tuple(_parsed(source.read(_LONGEST).decode(errors="surrogateescape")))
    return _known[facts]


def _parsed(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        if header := _HEADER.match(line):
            section = f"{header[1].lower()}." + (f"{header[2]}." if header[2] else "")
            line = line[header.end() :]
        if section and (setting := _SETTING.match(line)):
            yield section + setting[1].lower(), _unquoted(setting[2] or "")


def _unquoted(value: str) -> str:
    """Without quotes, escapes, and a comment behind it."""
    words = re.findall(r'"((?:[^"\\]|\\.)*)"?|((?:[^"\\#;]|\\.)+)|([#;].*)', value)
    return re.sub(r"\\(.)", r"\1", "".join(quoted or plain for quoted, plain, _ in words)).strip()


def _links_below(workspace: Path, name: str) -> Iterator[str]:
    """Links directly in a protected folder."""
    with contextlib.suppress(OSError), os.scandir(workspace / name) as entries:
        yield from (f"{name}/{entry.name}" for entry in sorted(entries, key=lambda one: one.name) if entry.is_symlink())


def _way(workspace: Path, name: str) -> Iterator[str]:
    """Where a path ends once links are followed, and the links after the first on the way, as far as they are of the workspace."""
    for _ in range(_MOST_LINKS):
        parts = name.split("/")
        heads = ("/".join(parts[: length + 1]) for length in range(len(parts)))
        link = next((head for head in heads if os.path.islink(workspace / head)), None)
        if link is None:
            return
        try:
            target = os.readlink(workspace / link)
        except OSError:
            return
        rest = name.removeprefix(link).lstrip("/")
        following = _inside(workspace, os.path.join(workspace, os.path.dirname(link), target, rest))
        if following is None:
            return
        yield (name := following)


def _inside(workspace: Path, path: str) -> str | None:
    """A path relative to the workspace; None: it is elsewhere, or the workspace itself."""
    whole = os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))
    return os.path.relpath(whole, workspace) if whole.startswith(f"{workspace}/") else None


def _first_line(path: Path) -> str:
    """Of a small regular file; empty when there is none."""
    if not _is_file(path):
        return ""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return os.fsdecode(file.read(4096)).partition("\n")[0].strip()
    except OSError:
        return ""


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
