"""Reading in one open folder of a workspace, with a record of how each thing stood: what the judges of repositories stand on.

Files are reached from the open folder and never through a link, since a script may still run.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from sandboxmcp.sandbox.openat import FOLDER

MAX_BYTES = 1 << 20
Stamp = tuple[int, ...]


class Unusual(Exception):
    """Something in a repository for which a tool may run a program; the message ends the sentence "… because"."""


@dataclass
class Reading:
    """Reads in one open folder, and keeps how each thing that it read stood: as long as all stand so, the verdict holds."""

    folder: int
    stamps: dict[str, Stamp | None] = field(default_factory=dict)

    def names(self, path: str) -> list[str]:
        """What is in a folder below; nothing when there is none. `.` is the folder itself.

        Raises:
            Unusual: there is something else of that name.
        """
        fd = self._opened(path)
        if fd is None:
            return []
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def text(self, path: str) -> bytes | None:
        """What a file holds. None: there is none.

        Raises:
            Unusual: it is no regular file, or too large to be understood.
        """
        above, _, name = path.rpartition("/")
        parent = self._opened(above or ".")
        if parent is None:
            return None
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        except FileNotFoundError:
            self.stamps[path] = None
            return None
        except OSError as error:
            raise Unusual(f"{path} cannot be read ({error.strerror})") from None
        finally:
            os.close(parent)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            self.stamps[path] = stamp(found)
            if not stat.S_ISREG(found.st_mode):
                raise Unusual(f"{path} is no regular file")
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise Unusual(f"{path} is too large to be understood")
        return data

    def line(self, path: str) -> str | None:
        """The only line of a small file, without its end."""
        data = self.text(path)
        return None if data is None else os.fsdecode(data).rstrip("\r\n")

    def _opened(self, path: str) -> int | None:
        fd = os.dup(self.folder)
        so_far = ""
        for part in path.split("/"):
            so_far = part if so_far in ("", ".") else f"{so_far}/{part}"
            try:
                following = os.open(part, FOLDER, dir_fd=fd)
            except FileNotFoundError:
                self.stamps[so_far] = None
                return None
            except OSError as error:
                raise Unusual(f"{so_far} cannot be read as a folder ({error.strerror})") from None
            finally:
                os.close(fd)
            fd = following
            self.stamps[so_far] = stamp(os.fstat(fd))
        return fd


def stamp(found: os.stat_result) -> Stamp:
    """How a thing stands. Its change time cannot be set by a script."""
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns
