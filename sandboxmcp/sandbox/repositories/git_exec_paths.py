"""What a repository's settings, hooks and links lead to in the workspace: git runs or obeys that as it does them.

    core.hooksPath, include.path    a folder of hooks and a file of settings like git's own
    core.fsmonitor, filters, …      programs, where they are files of the workspace
    links                           `.git/hooks/pre-commit -> ../../scripts/pre-commit`, `.claude -> agents`: what they end at
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
from dataclasses import dataclass
from pathlib import Path

from sandboxmcp.sandbox.workspace.quarantine import present

BARE_PARTS = ("branches", "commondir", "config", "config.worktree", "hooks", "info", "modules", "remotes", "worktrees")
"""What git obeys in a folder that is itself a repository."""
BARE_CONTENT = ("HEAD", "index", "logs", "objects", "packed-refs", "refs", "shallow")
"""What else it writes there."""
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


@dataclass(frozen=True, slots=True)
class Leads:
    """What was found, and where it was looked for."""

    paths: tuple[str, ...]
    """Relative paths of the workspace. They need not exist."""
    read: tuple[str, ...]
    """Whole paths of the files and folders that say so: while none of them changes, nor does the answer."""


def leads(workspace: Path, names: Collection[str]) -> Leads:
    """Paths of the workspace that are to be protected as the ones in `names` are, which are relative too."""
    given = frozenset(names)
    settings: dict[Path, None] = {}
    found = dict.fromkeys((*_bare(workspace), *_named_by_settings(workspace, settings)))
    folders = [*names, *found, *_folders_of_hooks(workspace)]
    for name in present(os.fspath(workspace), folders):
        for entry in (name, *_links_below(workspace, name)):
            found.update(dict.fromkeys(_way(workspace, entry)))
    read = (*map(os.fspath, settings), *(f"{workspace}/{name}" for name in folders if os.path.isdir(workspace / name)))
    return Leads(tuple(name for name in found if name not in given), read)


def is_bare(workspace: Path) -> bool:
    """Whether the folder itself is a repository."""
    return all(os.path.lexists(workspace / name) for name in ("HEAD", "refs", "objects"))


def _bare(workspace: Path) -> Iterator[str]:
    if is_bare(workspace):
        yield from BARE_PARTS


def _folders_of_hooks(workspace: Path) -> Iterator[str]:
    """Those of the checkout and of its submodules: a hook may be a link."""
    yield ".git/hooks"
    for place, folders, _ in os.walk(workspace / ".git/modules"):
        if "hooks" in folders:
            yield os.path.relpath(os.path.join(place, "hooks"), workspace)
        folders[:] = [name for name in folders if name not in ("objects", "refs", "logs", "hooks")]


def _named_by_settings(workspace: Path, seen: dict[Path, None]) -> Iterator[str]:
    """What the settings name; each file that was read, or would be if it were there, is noted in `seen`."""
    waiting = [*_settings_files(workspace)]
    while waiting and len(seen) < _MOST_KNOWN:
        file = waiting.pop()
        if file in seen:
            continue
        seen[file] = None
        found = settings_in(file)
        # What a submodule's settings name is relative to its own worktree.
        base = next((file.parent / value for key, value in found if key == "core.worktree"), workspace)
        for key, value in found:
            section, last = key.partition(".")[0], key.rpartition(".")[2]
            if section in ("include", "includeif") and last == "path":
                included = file.parent / os.path.expanduser(value)
                waiting.append(included)
                named: Iterable[str] = [os.fspath(included)]
            elif key == "core.hookspath":
                named = [value]
            else:
                named = _programs(base, value) if last in _COMMANDS or section in ("alias", "pager") else ()
            yield from filter(None, (_inside(workspace, os.path.join(base, os.path.expanduser(one))) for one in named))


def _programs(base: Path, value: str) -> Iterator[str]:
    """The words of a command that are files there; its first one also where there is none yet, if it is written as a path."""
    words = [word for word in re.split(r"""[\s"';&|()]+""", value.lstrip("!")) if word and "://" not in word]
    for number, word in enumerate(words):
        path = base / os.path.expanduser(word)
        if _is_file(path) or os.path.islink(path) or (number == 0 and "/" in word.rstrip("/") and not os.path.lexists(path)):
            yield word


def _settings_files(workspace: Path) -> Iterator[Path]:
    """The repository's, where `.git` leads to, those of its submodules, and the user's."""
    repository = workspace / ".git"
    if line := first_line(repository):
        repository = workspace / line.removeprefix("gitdir:").strip()
    common = first_line(repository / "commondir")
    yield (repository / common if common else repository) / "config"
    yield repository / "config.worktree"
    for place, folders, files in os.walk(repository / "modules"):
        if "config" in files:
            yield Path(place) / "config"
        folders[:] = [name for name in folders if name not in ("objects", "refs", "logs", "hooks")]
    yield from user_settings()


def user_settings() -> tuple[Path, Path]:
    """The files of the user's own git settings, the later winning."""
    home = Path(os.environ.get("HOME") or "/nonexistent")
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/config", home / ".gitconfig"


def settings_in(file: Path) -> tuple[tuple[str, str], ...]:
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


def first_line(path: Path) -> str:
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
