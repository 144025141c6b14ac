"""Which files of the host may be read for indexing: those under the project or an ingest root, symlinks resolved.

The threat: code in the sandbox may write in the project folder, so any file there can turn into a symlink, a pipe or a
device between a look and an open. So the file is opened first, without waiting and without a controlling terminal, and
then asked where it really lies. Not covered: a hard link that the user made into the project.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import Settings
from sandboxmcp.core.surface import argument, quoted
from sandboxmcp.policy.secrets.credential_files import masked_copy
from sandboxmcp.sandbox.workspace.masked_copies import LARGEST
from sandboxmcp.sandbox.workspace.masked_paths import is_secret
from sandboxmcp.sandbox.workspace.secret_names import kind_of

_LONGEST_PATH = 4_095
"""Bytes, without the NUL at its end (limits.h: PATH_MAX)."""


def allowed_roots(settings: Settings) -> tuple[Path, ...]:
    """The project folder and the ingest roots, all resolved."""
    project = settings.workspace
    return tuple(Path(os.path.realpath(project / Path(root).expanduser())) for root in ("", *settings.ingest_roots))


def meant(path: str, project: Path) -> Path:
    """What a caller's path names: absolute, in a home (`~`, `~user`) or relative to the project. Looks at no file.

    Raises:
        UsageError: no file can have such a name.
    """
    if not path or "\0" in path:
        raise UsageError(f"a path is {'empty' if not path else 'broken by a NUL byte'}", "Give a file, a folder or a glob.")
    if len(os.fsencode(path.encode("utf-8", "replace"))) > _LONGEST_PATH:
        raise UsageError(
            f"a path of {len(path):,} characters names no file",
            f"Give a file, a folder or a glob; a text goes in {quoted('content')}.",
        )
    try:
        os.fsencode(path)
        return project / Path(path).expanduser()
    except UnicodeEncodeError:
        raise UsageError("a path holds half of a character", "Write it in UTF-8.") from None
    except RuntimeError:
        raise UsageError(f"there is no home folder for {path[:80]!r}", "Write the path out.") from None


def is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Does the path, symlinks resolved, lie in one of the folders?"""
    real = Path(os.path.realpath(path))
    return any(real == root or root in real.parents for root in roots)


def require_inside(path: Path, roots: Sequence[Path]) -> None:
    """Raises: UsageError naming the roots and the setting."""
    if not is_inside(path, roots):
        raise UsageError(
            f"{str(path)[:200]} lies outside the folders that may be read ({', '.join(map(str, roots))})",
            f"The user may add its folder to {argument('ingest_roots')}.",
        )


def refuse_secret(file: Path, real: Path, readable: Path) -> None:
    """What scripts may not read is not stored for a model to read either. `real`: where the opened file lies.

    Raises:
        UsageError: it looks like a file of secrets, or is one of settings that holds a credential.
    """
    kind = kind_of(str(real))
    if is_secret(str(real)) and (kind is None or kind.degree != "some" or _holds_credential(real, readable)):
        raise UsageError(f"{file} looks like a file of secrets", "Copy what may be seen into a file of another name.")


def _holds_credential(real: Path, readable: Path) -> bool:
    with readable.open("rb") as file:
        data = file.read(LARGEST + 1)
    return len(data) > LARGEST or masked_copy(str(real), data) != data


@contextmanager
def opened(path: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """A path under which the very file that was checked can be read while the block lasts.

    Raises:
        UsageError: it is missing, unreadable, a folder, a pipe or a device, or lies outside the roots.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        fix = "Check the path; a relative one starts at the project's folder." if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"{str(path)[:200]} cannot be read: {error.strerror}", fix) from None
    try:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "a pipe, socket or device"
            raise UsageError(f"{path} is {what}, not a file")
        require_inside(_real_path(handle, path), roots)
        yield Path(f"/dev/fd/{handle}")
    finally:
        os.close(handle)


def _real_path(handle: int, path: Path) -> Path:
    try:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))
    except OSError:
        return Path(os.path.realpath(path))
