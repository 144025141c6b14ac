"""Moving aside what scripts put in the place of protected paths. Nothing is followed on the way, and no folder stays shut.

An item that still runs may swap any component for a link to the host's files, so each is opened from the one above it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LISTED = 1_000
_MOST_COUNTED = 100
_LONGEST_LEAF = 200


def prefixes(name: str) -> list[str]:
    """`a`, `a/b`, `a/b/c`."""
    parts = PurePosixPath(name).parts
    return [str(PurePosixPath(*parts[: length + 1])) for length in range(len(parts))]


def present(root: int | str, names: Iterable[str]) -> Iterator[str]:
    """Those of which something is there below a folder: one listing tells that of the first parts, most of which are not there."""
    there: dict[str, bool] = {}
    listed = _listed(root)
    for name in names:
        top = name.partition("/")[0]
        if top not in there:
            there[top] = (listed is None and _exists(root, top)) or (listed is not None and top.lower() in listed)
        if there[top]:
            yield name


def _listed(root: int | str) -> set[str] | None:
    """Names in a folder in small letters, since some file systems ignore capitals. None: there are many, or it cannot be read."""
    try:
        fd = os.open(".", _LIST, dir_fd=root) if isinstance(root, int) else os.open(root, _LIST)
    except OSError:
        return None
    try:
        with os.scandir(fd) as entries:
            names = [entry.name.lower() for entry in itertools.islice(entries, _MOST_LISTED)]
        return set(names) if len(names) < _MOST_LISTED else None
    finally:
        os.close(fd)


def _exists(root: int | str, name: str) -> bool:
    try:
        os.stat(name, dir_fd=root, follow_symlinks=False) if isinstance(root, int) else os.lstat(f"{root}/{name}")
    except OSError:
        return False
    return True


@contextlib.contextmanager
def planted(root: int, name: str, links: dict[str, str]) -> Iterator[tuple[int, str, str] | None]:
    """(descriptor of the parent, last component, whole path) of what stands where `name` or a folder above it would redirect to it.

    A link or a file in the place of a folder (`.git` may be a file that points elsewhere) is as good as the thing itself.
    """
    opened = [os.dup(root)]
    try:
        found = None
        for path in prefixes(name):
            leaf = PurePosixPath(path).name
            try:
                status = os.stat(leaf, dir_fd=opened[-1], follow_symlinks=False)
            except FileNotFoundError:
                break
            if stat.S_ISLNK(status.st_mode) and links.get(path) == os.readlink(leaf, dir_fd=opened[-1]):
                break  # as the host made it
            if path == name or not stat.S_ISDIR(status.st_mode):
                found = (opened[-1], leaf, path)
                break
            opened.append(os.open(leaf, FOLDER, dir_fd=opened[-1]))
        yield found
    finally:
        for fd in opened:
            os.close(fd)


def reached(root: int, name: str, act: Callable[[], list[str]]) -> list[str]:
    """What `act` says of `name`, the folders above it made passable first where a script took that away."""
    try:
        try:
            return act()
        except PermissionError:
            _make_passable(root, name)
            return act()
    except OSError as error:
        return [f"{name} is protected, and what stands there could not be moved aside: {error.strerror or error}"]


def _make_passable(root: int, name: str) -> None:
    """Give the owner back all rights to each folder above `name`."""
    opened = [os.dup(root)]
    try:
        for part in PurePosixPath(name).parts:
            mode = os.fstat(opened[-1]).st_mode
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(f"/proc/self/fd/{opened[-1]}", stat.S_IMODE(mode) | stat.S_IRWXU)
            opened.append(os.open(part, FOLDER, dir_fd=opened[-1]))
    except (FileNotFoundError, NotADirectoryError):
        pass
    finally:
        for fd in opened:
            os.close(fd)


def move_aside(parent: int, leaf: str, to: int | None = None) -> str:
    """Rename to a free name that nothing obeys: a counted one, or where a script has taken those, one that it cannot know.

    `to`: the open folder that it is moved to; by default it stays in `parent`.
    """
    to = parent if to is None else to
    counted = (str(number) for number in range(1, _MOST_COUNTED + 1))
    for end in (*counted, secrets.token_hex(8)):
        aside = f"{leaf[:_LONGEST_LEAF]}.quarantined-{end}"
        try:
            os.stat(aside, dir_fd=to, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(leaf, aside, src_dir_fd=parent, dst_dir_fd=to)
            return aside
    raise FileExistsError(f"{aside} is there already")
