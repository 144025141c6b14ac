"""Repositories in a workspace: what appears while a script runs stays if it is ordinary, and is moved aside if it is not.

git and tools like it run what a repository's content names as soon as somebody looks at it: a prompt, an editor, `git status`
of the project through an entry of its index. Whoever made it and whatever names it, each is judged by its content
(git_content.py, other_content.py) before a call is answered. Settings of package managers that name programs are treated
likewise, and rules that agents obey are told when they change.

`learn` takes what is there as the host's: call it when no script runs. What is unusual then is to be bound read-only
(`unusual`). What is ordinary stays writable. `look` judges after a script. A repository that stands as it did is not judged
again. Not looked at: the project's own `.git` that was there at the start (protect.py), what lies beyond the bounds of the walk
(told), and what a still running script does after the look.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from sandboxmcp.sandbox.repositories.folder_walk import (
    MOST_FOLDERS,
    YOUNG_NS,
    FolderWalk,
    Found,
    Walked,
    Wanted,
    folded,
    make_passable,
    open_below,
)
from sandboxmcp.sandbox.repositories.git_config import NotUnderstood, named_paths, parse_config
from sandboxmcp.sandbox.repositories.git_content import Place, judge_git
from sandboxmcp.sandbox.repositories.judged_folder import Reading, Stamp, Unusual, stamp
from sandboxmcp.sandbox.repositories.other_content import FILES, FOLDERS
from sandboxmcp.sandbox.workspace.protected_paths import RULES
from sandboxmcp.sandbox.workspace.quarantine import FOLDER, move_aside

GIT = ".git"
OBEYED = frozenset({GIT, *FOLDERS, *FILES})
"""Names, in small letters, of what is judged in any folder."""
_MOST_TOLD = 20
_MOST_ROUNDS = 4
_LONGEST_SHOWN = 300
_MOST_WALKS = 16
_GITFILE = "gitdir: "
_KEEP = "if you trust it, move it back while no script runs"
_walks: dict[tuple[str, int], tuple[threading.Lock, FolderWalk]] = {}
"""What sandboxes of one workspace share: folders that were read need not be read again by the next."""


@dataclass(frozen=True)
class _Item:
    """A repository, or a file that is treated as one."""

    path: str
    judge: Callable[[_Judging, Reading], None]
    base: str
    """The folder that its judge reads in."""
    moved: str
    """What is moved aside: it, or of a folder of bare shape the entry `HEAD`."""
    lasting: bool = True
    """Whether the verdict holds as long as what was read stands as it did."""


@dataclass(frozen=True)
class _Known:
    """A verdict, and how things stood for it."""

    reason: str | None
    """Why it is unusual."""
    which: Stamp | None
    stamps: dict[str, Stamp | None]
    base: str
    lasting: bool
    named: tuple[str, ...] = ()
    """Paths that it names as programs, hooks or further settings."""


@dataclass
class _Judging:
    """One look: what the judges must know of what surrounds a repository."""

    workspace: str
    root: int
    git_folders: frozenset[str]
    opens: Callable[[int], None] | None = None
    """Makes folders passable that a script has shut; None: the host has shut them."""
    verdicts: dict[str, str | None] = field(default_factory=dict)

    def place(self, path: str) -> Place:
        return Place(path, self.workspace, lambda other: other in self.git_folders, self.leads_back)

    def leads_back(self, folder: str, repository: str) -> bool:
        with suppress(OSError, Unusual), _opened(self.root, folder, self.opens) as fd:
            return self._target(Reading(fd), folder, GIT) == repository
        return False

    def named_by(self, path: str) -> Iterator[str]:
        """Paths of the workspace that the configuration of a git folder names as programs, hooks or further settings."""
        with suppress(OSError, Unusual, NotUnderstood), _opened(self.root, path, self.opens) as fd:
            project = os.path.dirname(path) if folded(os.path.basename(path)) == GIT else path
            for name in ("config", "config.worktree"):
                for named in named_paths(parse_config(Reading(fd).text(name) or b"")):
                    inside = self.place(path if named.in_file else project).inside(os.path.expanduser(named.path))
                    which = _lstat(self.root, inside) if inside is not None else None
                    is_folder = which is not None and stat.S_ISDIR(which[2])
                    if inside and (named.may_be_folder if is_folder else which or named.may_be_missing):
                        yield inside

    def judge_gitfile(self, reading: Reading, folder: str, name: str) -> None:
        """Raises: Unusual, it leads to a repository that is not ordinary or not known."""
        target = self._target(reading, folder, name)
        if target is None:
            raise Unusual("it leads out of the workspace, or cannot be understood")
        if target == GIT or target.startswith(f"{GIT}/"):
            self._judge_in_project(target)
        elif target not in self.git_folders:
            raise Unusual(f"it leads to {target}, which is no repository")
        elif reason := self.verdicts.get(target, "it is not judged"):
            raise Unusual(f"it leads to {target}: {reason}")

    def _judge_in_project(self, target: str) -> None:
        """What a file `.git` leads to in the project's own `.git`, which the walk leaves out."""
        places = [target, GIT] if "/worktrees/" in target else [target]
        for path in places:
            with _opened(self.root, path, self.opens) as fd:
                judge_git(Reading(fd), Place(path, self.workspace, lambda other: other == GIT, self.leads_back))

    def _target(self, reading: Reading, folder: str, name: str) -> str | None:
        line = reading.line(name) or ""
        if not line.startswith(_GITFILE) or not line.isprintable():
            return None
        return Place(folder, self.workspace, lambda _: False, lambda *_: False).inside(line.removeprefix(_GITFILE))


class Repositories:
    """What of one workspace was there, and what has appeared since. Safe for threads."""

    def __init__(self, workspace: Path, most_folders: int = MOST_FOLDERS) -> None:
        """What is there now is the host's.

        Raises:
            OSError: the workspace cannot be opened.
        """
        self._workspace = os.path.realpath(workspace)
        self._lock, self._walk = _walk_of(self._workspace, most_folders)
        self._skip = frozenset({GIT}) if os.path.lexists(f"{self._workspace}/{GIT}") else frozenset()
        self._known: dict[str, _Known] = {}
        self._named: dict[str, Stamp | None] = {}
        """What the host's unusual repositories name as programs, hooks or settings in the workspace; None: it is not there."""
        self._rules: dict[str, Stamp] = {}
        self._host_made_git = False
        self.learn()
        files = (path for path, one in self._known.items() if folded(path.rpartition("/")[2]) == GIT and _is_file(one.which))
        self._bound = self._unusual() | {path: which for path in files if (which := self._known[path].which)}

    @property
    def protected(self) -> tuple[str, ...]:
        """Relative paths to be bound read-only: what was unusual at the start, and files `.git`, which nobody needs to write."""
        return tuple(self._bound)

    @property
    def unusual(self) -> tuple[str, ...]:
        """Paths that were unusual when the host's state was learned last, and what they name, as relative paths without links."""
        return tuple(self._unusual())

    def _unusual(self) -> dict[str, Stamp]:
        repositories = {path: one.which for path, one in self._known.items() if one.reason}
        return {path: which for path, which in (self._named | repositories).items() if which and not stat.S_ISLNK(which[2])}

    @property
    def outdated(self) -> bool:
        """Whether the host has made a repository of the project since the start, or made or replaced what is to be bound."""
        files = {path: one.which for path in self._bound if (one := self._known.get(path)) is not None}
        now = files | self._unusual()
        return self._host_made_git or any(_identity(self._bound.get(path)) != _identity(which) for path, which in now.items())

    def learn(self, unless: Callable[[], bool] = lambda: False) -> None:
        """Take what is there as the host's. No script may run, and none may have run since the last `look`.

        `unless`: asked afterwards, whether a script has run meanwhile after all: then nothing is learned.
        """
        with self._lock, self._opened() as root:
            if root is None:
                return
            walked = self._walk.walk(root, self._skip)
            judging = self._judging(root, walked)
            known = {item.path: known for item, known in self._judged(judging, walked)}
            named = {path: _lstat(root, path) for one in known.values() for path in one.named}
            rules = self._rules_now(root, walked)
            if not unless():
                self._host_made_git |= self._made_by_the_host(known)
                self._known, self._named, self._rules = known, named, rules

    def _made_by_the_host(self, known: dict[str, _Known]) -> bool:
        """Whether the project got a `.git` that no look after a script has seen."""
        new, old = known.get(GIT), self._known.get(GIT)
        return new is not None and (old is None or _identity(old.which) != _identity(new.which))

    def look(self) -> list[str]:
        """Move aside what became unusual while scripts ran. Returns a sentence for each, and for each change of rules."""
        with self._lock, self._opened() as root:
            if root is None:
                return []
            said = list[str]()
            for _ in range(_MOST_ROUNDS):
                walked = self._walk.walk(root, self._skip, make_passable)
                moved = self._moved(self._judging(root, walked, make_passable), walked)
                said += moved
                if not moved:
                    break
            said += self._named_and_made(root)
            said += self._replaced_by_the_host()
            return [*_shortened(said, "more were moved aside"), *self._changed_rules(root, walked), *self._left_out(walked)]

    def _moved(self, judging: _Judging, walked: Walked) -> list[str]:
        """What is moved aside in one round: what lay in it may have to be judged again under its new name."""
        known, moving = dict[str, _Known](), list[tuple[_Item, str]]()
        for item, verdict in self._judged(judging, walked):
            known[item.path] = verdict
            if verdict.reason and item.path not in self._bound and not self._is_the_hosts(item, verdict):
                moving.append((item, verdict.reason))
        inner_first = sorted(moving, key=lambda one: one[0].path.count("/"), reverse=True)
        said = [_moved_aside(judging.root, item, reason) for item, reason in inner_first]
        self._known = {path: one for path, one in known.items() if path not in {item.path for item, _ in moving}}
        return said

    def _named_and_made(self, root: int) -> list[str]:
        """What the host's repositories name as a program was not there, and a script has made it."""
        made = [path for path, which in self._named.items() if which is None and _lstat(root, path) is not None]
        reason = "the configuration of a repository names it"
        return [_moved_aside(root, _Item(path, _not_understood, path, path), reason) for path in made]

    def _replaced_by_the_host(self) -> list[str]:
        """A read-only mount goes with what it was on: then a script could write what came instead."""
        now = self._unusual()
        return [
            f"{_shown(path)} was replaced on the host while a script ran, which could then write it: look at it"
            for path, bound in self._bound.items()
            if path in now and _identity(bound) != _identity(now[path])
        ]

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        try:
            root = os.open(self._workspace, FOLDER)
        except OSError:
            yield None  # the workspace itself is gone; whoever asks for it next is told
            return
        try:
            yield root
        finally:
            os.close(root)

    def _judging(self, root: int, walked: Walked, opens: Callable[[int], None] | None = None) -> _Judging:
        named = (found.path for found in walked.found if found.name == GIT and found.kind == "folder")
        return _Judging(self._workspace, root, frozenset((*named, *walked.bare)), opens)

    def _judged(self, judging: _Judging, walked: Walked) -> Iterator[tuple[_Item, _Known]]:
        """Folders first: files `.git` lead to them."""
        items = [*_items(walked, self._skip)]
        for item in sorted(items, key=lambda one: (not one.lasting and one.base != one.path, one.path)):
            which = _lstat(judging.root, item.path)
            if which is None:
                continue
            known = self._known.get(item.path)
            odd = item.path in walked.odd
            if known and not odd and known.lasting and known.which and self._stands(judging.root, known, which):
                verdict = known
            else:
                verdict = _verdict(judging, item, which, odd)
            judging.verdicts[item.path] = verdict.reason
            yield item, verdict

    def _stands(self, root: int, known: _Known, which: Stamp) -> bool:
        base = f"{known.base}/" if known.base else ""
        return _identity(known.which) == _identity(which) and all(
            _lstat(root, base + name) == then for name, then in known.stamps.items()
        )

    def _is_the_hosts(self, item: _Item, verdict: _Known) -> bool:
        """Whether it was unusual before, and stands so: a link, which cannot be bound."""
        known = self._known.get(item.path)
        return bool(known and known.reason and known.which == verdict.which and stat.S_ISLNK((verdict.which or (0, 0, 0))[2]))

    def _rules_now(self, root: int, walked: Walked) -> dict[str, Stamp]:
        paths = (found.path for found in walked.found if found.name not in OBEYED)
        return {path: now for path in paths if (now := _lstat(root, path)) is not None}

    def _changed_rules(self, root: int, walked: Walked) -> list[str]:
        before, self._rules = self._rules, self._rules_now(root, walked)
        changed = [
            f"{'changed' if path in before else 'made'} {_shown(path)}, which agents obey: look at it"
            for path, now in self._rules.items()
            if before.get(path) != now
        ]
        return _shortened(changed, "more files that agents obey were changed")

    def _left_out(self, walked: Walked) -> list[str]:
        """Told after every script: where nothing was looked at, anything may have been planted."""
        if not walked.left_out:
            return []
        return [
            f"the workspace has too many or too deep folders: at least {walked.left_out:,} were not looked at for repositories "
            "that run programs"
        ]


def _walk_of(workspace: str, most_folders: int) -> tuple[threading.Lock, FolderWalk]:
    if (workspace, most_folders) not in _walks and len(_walks) >= _MOST_WALKS:
        _walks.clear()
    wanted = Wanted(OBEYED | RULES.names, RULES.endings, RULES.folders)
    return _walks.setdefault((workspace, most_folders), (threading.Lock(), FolderWalk(wanted, most_folders)))


def _items(walked: Walked, skip: frozenset[str]) -> Iterator[_Item]:
    for found in walked.found:
        if found.path not in skip and (item := _item(found)) is not None:
            yield item
    for path, head in walked.bare.items():
        moved = f"{path}/{head}" if path else head
        nested = any(f"/{name}/" in f"/{path}" for name in ("modules", "worktrees"))
        yield _Item(path, _git_judge(path), path, moved, lasting=not nested)


def _item(found: Found) -> _Item | None:
    folder, leaf = os.path.split(found.path)
    if found.name == GIT and found.kind == "file":
        return _Item(
            found.path, lambda judging, reading: judging.judge_gitfile(reading, folder, leaf), folder, found.path, lasting=False
        )
    if found.name in (GIT, *FOLDERS):
        if found.kind != "folder":
            return _Item(found.path, _not_understood, folder, found.path)
        if found.name == GIT:
            return _Item(found.path, _git_judge(found.path), found.path, found.path)
        of_folder = FOLDERS[found.name]
        return _Item(found.path, lambda _, reading: of_folder(reading), found.path, found.path)
    if found.name in FILES and found.kind != "folder":
        of_file = FILES[found.name]
        return _Item(found.path, lambda _, reading: of_file(reading, leaf), folder, found.path)
    return None


def _git_judge(path: str) -> Callable[[_Judging, Reading], None]:
    return lambda judging, reading: judge_git(reading, judging.place(path))


def _not_understood(judging: _Judging, reading: Reading) -> None:
    raise Unusual("it is neither a folder nor a file")


def _verdict(judging: _Judging, item: _Item, which: Stamp, odd: bool) -> _Known:
    stamps: dict[str, Stamp | None] = {}
    young = time.time_ns() - YOUNG_NS
    reason = "there is a link or a special file in it" if odd else None
    try:
        with _opened(judging.root, item.base, judging.opens) as fd:
            reading = Reading(fd, stamps)
            item.judge(judging, reading)
    except Unusual as why:
        reason = reason or str(why)
    except OSError as error:
        reason = reason or f"it cannot be read ({error.strerror or error})"
    lasting = item.lasting and not odd and all(one is None or one[-1] < young for one in (which, *stamps.values()))
    named = tuple(judging.named_by(item.base)) if reason and item.base in judging.git_folders else ()
    return _Known(reason, which, stamps, item.base, lasting, named)


@contextmanager
def _opened(root: int, path: str, opens: Callable[[int], None] | None = make_passable) -> Iterator[int]:
    fd = open_below(root, path, opens)
    try:
        yield fd
    finally:
        os.close(fd)


def _is_file(which: Stamp | None) -> bool:
    return which is not None and stat.S_ISREG(which[2])


def _lstat(root: int, path: str) -> Stamp | None:
    try:
        return stamp(os.stat(path or ".", dir_fd=root, follow_symlinks=False))
    except OSError:
        return None


def _identity(which: Stamp | None) -> Stamp | None:
    """Device and inode; of what is no folder also how it stood, since an inode's number may be given again."""
    return which[:2] if which is not None and stat.S_ISDIR(which[2]) else which


def _moved_aside(root: int, item: _Item, reason: str) -> str:
    """Move it, and tell. Of a git folder its `HEAD` first: under its new name it has still the shape of a repository."""
    shown = _shown(item.moved)
    folder, leaf = os.path.split(item.moved)
    try:
        with _opened(root, folder) as parent:
            try:
                inner, aside = _beheaded(parent, leaf), move_aside(parent, leaf)
            except PermissionError:
                make_passable(parent)
                inner, aside = _beheaded(parent, leaf), move_aside(parent, leaf)
    except OSError as error:
        return f"{shown} would run programs on the host, since {reason}, and could not be moved aside: {error.strerror or error}"
    also = f", and in it HEAD to {inner}" if inner else ""
    to = _shown(str(PurePosixPath(folder) / aside))
    return f"moved {shown} to {to}{also}: it could run programs on the host, since {reason}; {_KEEP}"


def _beheaded(parent: int, leaf: str) -> str:
    """The new name of a git folder's `HEAD`; empty where there is none."""
    try:
        fd = os.open(leaf, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return ""
    try:
        aside = ""
        for name in os.listdir(fd) if folded(leaf) == GIT else ():
            if folded(name) == "head":
                make_passable(fd)
                aside = move_aside(fd, name)
        return aside
    finally:
        os.close(fd)


def _shortened(sentences: list[str], rest: str) -> list[str]:
    more = len(sentences) - _MOST_TOLD
    return sentences if more <= 0 else [*sentences[:_MOST_TOLD], f"{more:,} {rest}"]


def _shown(path: str) -> str:
    """A path as it may stand in an answer."""
    shown = path if path.isprintable() else ascii(path)
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[: _LONGEST_SHOWN // 2]}…{shown[-_LONGEST_SHOWN // 2 :]}"
