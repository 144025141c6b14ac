"""The judge of a git folder's content: whether git would run something that stands in it.

A repository is *ordinary* if nothing in it names a program. Everything else is *unusual*, and so is what cannot be read or
understood. Ordinary means: only allow-listed keys (git_config.py), only entries that git writes, no hooks but samples, no
`commondir` but a worktree's, no alternates outside the workspace, and no state of a rebase that executes a line. Links are
found by the walk. Sources: gitrepository-layout(5), git-rebase(1), git's sequencer.c and builtin/am.c.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from sandboxmcp.sandbox.repositories.git_config import NotUnderstood, parse_config, shown_key, unusual_key
from sandboxmcp.sandbox.repositories.judged_folder import Reading, Unusual

_ENTRIES = frozenset(
    """
    HEAD config config.worktree description hooks info objects refs logs index packed-refs branches remotes modules worktrees
    shallow reftable rebase-merge rebase-apply sequencer lfs gc.log gc.pid rebased-patches commondir gitdir locked
    config.lock index.lock HEAD.lock packed-refs.lock packed-refs.new shallow.lock opencode gk .DS_Store
    """.split()
)
_ENTRIES_LOWERED = frozenset(name.lower() for name in _ENTRIES)
_ENTRY = re.compile(
    r"[A-Z][A-Z_]*~?|sharedindex\.[0-9a-f]+|t[A-Za-z0-9]{6}|t[a-z]*_[A-Za-z0-9_]+|\.tmp-[\w-]+|next-index-\d+(\.lock)?"
)
"""Further entries: `FETCH_HEAD`, `COMMIT_EDITMSG` and their like, and temporary files."""
_STATES = ("rebase-merge", "rebase-apply", "sequencer")
_HARMLESS = frozenset(
    b"pick p reword r edit e squash s fixup f drop d label l reset t merge m break b noop update-ref u revert".split()
)
"""Commands of a todo list by which git runs no command of the shell's; `exec` and `x` do."""
_STRATEGIES = frozenset("ort recursive resolve octopus ours subtree".split())
"""git's own merge strategies: for another name it runs a program `git-merge-NAME`."""
_AUTHOR = re.compile(rb"(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)=(?:'[^']*'(?:\\['!])?)+\n?)*")
"""Older versions of git have the shell read this file, so it may hold quoted texts only."""
_SIGNING = re.compile(rb"(?:-S[\w.@+ <>-]*)?\s*")
_WORD = re.compile(r"[\w.=+-]*")


@dataclass(frozen=True)
class Place:
    """Where in the workspace a git folder lies, and what the judge must know of what surrounds it. Paths are relative, with `/`."""

    path: str
    workspace: str
    is_git_folder: Callable[[str], bool]
    """Whether a path is a repository that is judged as well."""
    leads_back: Callable[[str, str], bool]
    """Whether the folder (first) has a file `.git` that leads to the repository (second)."""

    def inside(self, *parts: str) -> str | None:
        """A path of the workspace, from one that is written in the git folder, or whole. None: it leads out."""
        whole = os.path.normpath(os.path.join(self.workspace, self.path, *parts))
        return os.path.relpath(whole, self.workspace) if whole.startswith(f"{self.workspace}/") else None


def judge_git(reading: Reading, place: Place) -> None:
    """A git folder: what is `.git` in a project, or the whole of a repository without a worktree.

    Raises:
        Unusual: why it is not ordinary. OSError: it cannot be read.
    """
    names = reading.names(".")
    for name in names:
        if name not in _ENTRIES and (name.lower() in _ENTRIES_LOWERED or not _ENTRY.fullmatch(name)):
            raise Unusual("it has an entry that git does not write")
    if "MERGE_RR" in names:
        raise Unusual("MERGE_RR names files that git would copy")
    if "commondir" in names:
        _judge_worktree(reading, place)
    for name in ("config", "config.worktree"):
        if name in names and (data := reading.text(name)) is not None:
            _judge_config(name, data, place)
    _judge_hooks(reading, names)
    for name in ("branches", "remotes"):
        if name in names and reading.names(name):
            raise Unusual(f"{name} names repositories")
    _judge_alternates(reading, place)
    for state in _STATES:
        if state in names:
            _judge_state(reading, state)
    if "BISECT_RUN" in names or ("BISECT_NAMES" in names and (reading.text("BISECT_NAMES") or b"").strip()):
        raise Unusual("it is in the middle of a bisection that names commands or files")


def _judge_config(name: str, data: bytes, place: Place) -> None:
    try:
        settings = parse_config(data)
    except NotUnderstood as why:
        raise Unusual(f"{name} cannot be understood: {why}") from None
    worktrees = [value or "" for key, value in settings if key == "core.worktree"]
    if worktrees and not (_of_a_submodule(place) and all(_is_its_worktree(place, value) for value in worktrees)):
        raise Unusual(f"{name} sets core.worktree")
    if key := unusual_key(settings, frozenset({"core.worktree"})):
        raise Unusual(f"{name} sets {shown_key(key)}")


def _of_a_submodule(place: Place) -> bool:
    return "/modules/" in place.path


def _is_its_worktree(place: Place, value: str) -> bool:
    folder = place.inside(value)
    return folder is not None and place.leads_back(folder, place.path)


def _judge_hooks(reading: Reading, names: list[str]) -> None:
    hooks = [name for name in reading.names("hooks") if not name.endswith(".sample")] if "hooks" in names else []
    if hooks:
        raise Unusual("it has hooks")


def _judge_worktree(reading: Reading, place: Place) -> None:
    """`commondir` says where configuration and hooks lie: of a worktree that is two folders up, where they are judged."""
    above, _, _ = place.path.rpartition("/")
    owner, _, middle = above.rpartition("/")
    if middle != "worktrees" or reading.line("commondir") != "../.." or not place.is_git_folder(owner):
        raise Unusual("commondir leads to another folder")
    back = reading.line("gitdir")
    if back is None or place.inside(back) is None:
        raise Unusual("it is a worktree that lies outside the workspace")


def _judge_alternates(reading: Reading, place: Place) -> None:
    for name in ("alternates", "http-alternates"):
        for line in os.fsdecode(reading.text(f"objects/info/{name}") or b"").splitlines():
            if line.startswith('"') or place.inside("objects", line) is None or name != "alternates":
                raise Unusual(f"objects/info/{name} leads to objects outside the workspace")


def _judge_state(reading: Reading, state: str) -> None:
    """What `--continue` goes on with."""
    for name in reading.names(state):
        if says_what_runs(name) and not runs_nothing(name, reading.text(f"{state}/{name}") or b""):
            raise Unusual(f"{state}/{name} has a line that may run a program")


def says_what_runs(name: str) -> bool:
    """Whether a file of a rebase, a cherry-pick or `git am` says what is run when it goes on."""
    return name in _CHECKS


def runs_nothing(name: str, data: bytes) -> bool:
    """Whether nothing but git itself is run for what stands in such a file; what is not understood counts as if it were."""
    return _CHECKS[name](data)


def _todo(data: bytes) -> bool:
    """git cuts at line ends, then at the first blank or tab."""
    for line in data.split(b"\n"):
        word = re.split(rb"[ \t]", line.removesuffix(b"\r").lstrip(b" \t"), maxsplit=1)[0]
        if word and not word.startswith(b"#") and word not in _HARMLESS:
            return False
    return True


def _options(data: bytes) -> bool:
    try:
        settings = parse_config(data)
    except NotUnderstood:
        return False
    for key, value in settings:
        harmless = value in _STRATEGIES if key == "options.strategy" else bool(_WORD.fullmatch(value or ""))
        if not key.startswith("options.") or not harmless:
            return False
    return True


_CHECKS: dict[str, Callable[[bytes], bool]] = {
    **dict.fromkeys(("git-rebase-todo", "git-rebase-todo.backup", "done", "todo"), _todo),
    "apply-opt": lambda data: not data.strip(),
    "author-script": lambda data: bool(_AUTHOR.fullmatch(data)),
    "gpg_sign_opt": lambda data: bool(_SIGNING.fullmatch(data)),
    "opts": _options,
    "strategy": lambda data: os.fsdecode(data).strip() in _STRATEGIES,
}
