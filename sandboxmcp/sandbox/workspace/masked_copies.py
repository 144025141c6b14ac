"""Masked copies that stand in for files of secrets inside a sandbox: made on the host, bound read-only over the files themselves.

A copy has the length, the times and the permissions of its file, so that git takes the file for unchanged; where git looks at the
content, a filter gives it what its index has (git_masks.py). Which copies a script opens is seen from outside (opened_files.py).
Not covered: a file that the host replaces while a script runs takes its cover off; then the next script gets a new sandbox.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.folders import PrivateFolder
from sandboxmcp.sandbox.bwrap import Bind
from sandboxmcp.sandbox.openat import FOLDER, reader, way_to
from sandboxmcp.sandbox.workspace.masked_paths import Secret
from sandboxmcp.sandbox.workspace.opened_files import names_file, note_on, opened_files, output_ends, watch_folder
from sandboxmcp.sandbox.workspace.secret_names import kind_of

Masker = Callable[[str, bytes], bytes]
"""From the name by which a file is read and its content to a masked content of equal length; the same if it holds no secret."""
LARGEST = 1 << 20
"""Bytes of one file that are read; a larger one is shown as zeros of its length."""
MOST_READ = 4 << 20
"""Bytes of all files that are read for one sandbox."""


def blank(name: str, data: bytes) -> bytes:
    """The masker where no policy is given: nothing is shown but the line ends."""
    return data.translate(bytes(code if code in b"\n\r" else ord("*") for code in range(256)))


@dataclass(slots=True)
class _Known:
    """A file as it was when it was read."""

    path: str
    known_as: str
    status: tuple[int, ...]
    copy: str = ""
    """Its masked copy's name; empty: it holds no secret, and scripts see the file itself."""
    opened: int = 0
    """When it was opened last, counted in `mark`s."""


@dataclass(slots=True)
class MaskedCopies:
    """The copies for one sandbox."""

    workspace: Path
    mask: Masker
    _known: list[_Known] = field(default_factory=list)
    _folder: PrivateFolder | None = None
    _watch: int = -1
    _marks: int = 1
    _read: int = 0

    @classmethod
    def make(cls, workspace: Path, secrets: Iterable[Secret], mask: Masker, places: Iterable[Path]) -> MaskedCopies:
        """A masked copy of each file that holds a secret, in a private folder in the first of `places` that scripts cannot see.

        Raises:
            UsageError: they cannot be written.
        """
        copies = cls(workspace, mask)
        try:
            copies._make(list(secrets), places)
        except OSError as error:
            copies.remove()
            why = f"the masked copies of files of secrets cannot be written: {error.strerror}"
            raise UsageError(why, "Make room in /tmp, or move these files out of the project.") from None
        except BaseException:
            copies.remove()
            raise
        return copies

    @property
    def names(self) -> tuple[str, ...]:
        """What is shown masked, relative to the workspace."""
        return tuple(one.path for one in self._known if one.copy)

    @property
    def in_worktree(self) -> tuple[str, ...]:
        """Those that git could commit."""
        return tuple(name for name in self.names if not name.startswith("/") and "/.git/" not in f"/{name}")

    @property
    def secrets(self) -> list[Secret]:
        """The files that they cover."""
        return [Secret(one.path, one.known_as) for one in self._known if one.copy and not one.path.startswith("/")]

    @property
    def known_by_folder(self) -> tuple[str, ...]:
        """Files, as whole paths, that are known by the name of their folder too (`.docker/config.json`): it must keep that."""
        found = (one for one in self._known if one.copy and one.path == one.known_as and not f"/{one.path}".count("/.git/"))
        return tuple(self._whole(one.path) for one in found if kind_of(os.path.basename(one.path)) is None)

    @property
    def binds(self) -> tuple[Bind, ...]:
        """What covers the files; root clones their folder, not each of them."""
        folder = self._copies
        return tuple(Bind(f"{folder}/{one.copy}", self._whole(one.path), stage=folder) for one in self._known if one.copy)

    def outdated(self, init: int) -> bool:
        """Whether the host has changed or replaced a file since its copy was made.

        `init`: the host's number of the sandbox's first process, through whose root the inside is looked at.
        """
        return any(self._is_uncovered(one, init) if one.copy else self._has_secrets_now(one) for one in self._known)

    def mark(self) -> int:
        """A moment, for `touched`: what is opened from now on counts as later."""
        self._drain()
        self._marks += 1
        return self._marks - 1

    def touched(self, since: int, outputs: Iterable[Path]) -> list[str]:
        """A note on the masked files that were opened since a mark, by any script, or that these outputs name; empty for none."""
        if not self.names:
            return []
        self._drain()
        if self._watch < 0:  # it cannot be seen, as where a user's inotify instances are used up: all are named, once
            for one in self._known:
                one.opened = one.opened or self._marks
        shown = output_ends(outputs)
        found = [one.path for one in self._known if one.copy and (one.opened > since or names_file(shown, one.path))]
        return [note_on(found)] if found else []

    def remove(self) -> None:
        """Remove the copies. Safe to call twice."""
        if self._watch >= 0:
            os.close(self._watch)
            self._watch = -1
        if self._folder is not None:
            self._folder.remove()

    def _whole(self, path: str) -> str:
        return os.path.join(self.workspace, path)

    @property
    def _copies(self) -> str:
        return f"{self._folder.path}/masked" if self._folder is not None else ""

    def _make(self, secrets: list[Secret], places: Iterable[Path]) -> None:
        try:
            root = os.open(self.workspace, FOLDER)
        except OSError:
            return
        try:
            for secret in secrets:
                self._add(root, secret, places)
        finally:
            os.close(root)
        if self._folder is not None:
            self._watch = watch_folder(self._copies)

    def _add(self, root: int, secret: Secret, places: Iterable[Path]) -> None:
        try:
            status = _lstat(root, secret.path)
            if not stat.S_ISREG(status.st_mode):
                return
            content = self._content(root, secret)
        except (FileNotFoundError, NotADirectoryError):
            return  # it has gone meanwhile
        known = _Known(secret.path, secret.known_as, _which(status))
        self._known.append(known)
        if content is None or content[0] != content[1]:
            known.copy = str(len(self._known))
            if self._folder is None:
                self._folder = _private_folder(self.workspace, places)
                os.mkdir(self._copies, 0o755)
            _write(f"{self._copies}/{known.copy}", content and content[1], status)

    def _content(self, root: int, secret: Secret) -> tuple[bytes, bytes] | None:
        """The file's content and the masked one; None: it cannot be read, is too large, or all together are.

        No link is followed on the way: a script may have swapped a folder for one that leads to files of the host.
        """
        try:
            with _way(root, secret.path) as (folder, leaf), reader(folder, leaf) as file:
                data = file.read(LARGEST + 1)
        except FileNotFoundError:
            raise
        except (OSError, ValueError):
            return None
        self._read += len(data)
        if len(data) > LARGEST or self._read > MOST_READ:
            return None
        shown = self.mask(secret.known_as, data)
        return data, shown if len(shown) == len(data) else blank(secret.known_as, data)

    def _is_uncovered(self, one: _Known, init: int) -> bool:
        path = self._whole(one.path)
        with contextlib.suppress(OSError):
            if _which(os.lstat(path)) != one.status:
                return True
        with contextlib.suppress(OSError):
            seen, copy = os.stat(f"/proc/{init}/root{path}", follow_symlinks=False), os.stat(f"{self._copies}/{one.copy}")
            return not os.path.samestat(seen, copy)
        return False

    def _has_secrets_now(self, one: _Known) -> bool:
        """Whether a file of settings that held none has got one since."""
        path = self._whole(one.path)
        try:
            status = _which(os.lstat(path))
            if status == one.status:
                return False
            self._read = 0
            root = os.open(self.workspace, FOLDER)
            try:
                content = self._content(root, Secret(one.path, one.known_as))
            finally:
                os.close(root)
        except OSError:
            return False
        one.status = status
        return content is None or content[0] != content[1]

    def _drain(self) -> None:
        """Take what the operating system has to tell of opened copies."""
        if self._watch < 0:
            return
        by_name = {one.copy: one for one in self._known if one.copy}
        for name in opened_files(self._watch):
            if name in by_name:
                by_name[name].opened = self._marks


def _private_folder(workspace: Path, places: Iterable[Path]) -> PrivateFolder:
    real = os.path.realpath(workspace)
    for place in places:
        where = os.path.realpath(place)
        if where != real and not where.startswith(f"{real}/") and os.access(where, os.W_OK | os.X_OK):
            return PrivateFolder(place)
    raise OSError(errno.EACCES, "no folder outside the project can be written")


def _write(path: str, content: bytes | None, status: os.stat_result) -> None:
    """A copy with a file's length, permissions (and such that the sandbox's user can read it) and times."""
    with open(path, "xb") as file:
        if content is None:
            file.truncate(status.st_size)
        else:
            file.write(content)
    os.chmod(path, status.st_mode & 0o777 | (0o444 if os.geteuid() == 0 else 0o400))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextlib.contextmanager
def _way(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The open folder and the name of a file of the workspace, or of one with a whole path."""
    if not path.startswith("/"):
        with way_to(root, path) as found:
            yield found
        return
    top = os.open("/", FOLDER)
    try:
        with way_to(top, path[1:]) as found:
            yield found
    finally:
        os.close(top)


def _lstat(root: int, path: str) -> os.stat_result:
    with _way(root, path) as (folder, leaf):
        return os.stat(leaf, dir_fd=folder, follow_symlinks=False)


def _which(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def certain(secrets: Iterable[Secret]) -> list[Secret]:
    """Those that are covered whatever is in them."""
    return [one for one in secrets if (kind := kind_of(one.known_as)) is None or kind.degree != "some"]
