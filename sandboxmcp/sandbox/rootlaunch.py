"""Run by root between the server and bubblewrap: give root away for good, and keep the files reachable.

    python -I -S rootlaunch.py FD
    FD: marshalled {"uid", "stage", "mounts": [{"source", "name", "owner", "must_map"}], "program", "argv"}

Started by root, bubblewrap's namespaces alone leave the sandbox with the kernel's uid 0: /proc/sys is then writable from inside
(measured; uid 0 in the kernel's eyes owns those files, whatever the namespace calls it). So before bubblewrap starts:

1. a private mount namespace, where an empty tmpfs covers `stage`;
2. each source is cloned there under its `name`, so that folders above it (a 0700 home) need not be passable, and id-mapped:
   files of its `owner` [uid, gid] appear as the throw-away user's, and what it writes lands on disk as the owner's. Where the
   file system knows no id-mapped mounts, `must_map` says whether that is the end (a workspace) or not (an interpreter);
3. every id becomes the throw-away uid, the capability bounding set is emptied, and bubblewrap is executed.

Standard library only, the quickest parts of it (no json, no typing), and run with -I -S: every sandbox of root's waits for it.
Calls: open_tree(2), mount_setattr(2), move_mount(2).
"""

from __future__ import annotations

import ctypes
import marshal
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""The same numbers on every architecture."""
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE, _MS_NOSUID, _MS_NODEV = 0x4000, 0x40000, 2, 4
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_IDMAP = 1, 4, 0x00100000
_PR_CAPBSET_DROP = 24

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Read the order from the descriptor in argv[1], carry it out, become bubblewrap. Any failure ends with exit code 125."""
    with os.fdopen(int(sys.argv[1]), "rb") as order_file:
        order = marshal.load(order_file)  # noqa: S302 - the server's own, over a descriptor that nobody else has
    try:
        _launch(order)
    except OSError as error:
        print(f"rootlaunch: {error.strerror}: {error.filename or ''}", file=sys.stderr)
        raise SystemExit(125) from None


def _launch(order: dict[str, Any]) -> None:
    _check(_libc.unshare(_CLONE_NEWNS), "unshare a mount namespace")
    _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make / private")
    # All clones are taken before the stage is covered: a source may lie below it.
    clones = [(mount, _clone(mount, order["uid"])) for mount in order["mounts"]]
    stage = order["stage"]
    _check(_libc.mount(b"tmpfs", os.fsencode(stage), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=1m,mode=0755"), f"cover {stage}")
    for mount, (tree, is_folder) in clones:
        place = os.path.join(stage, mount["name"])
        if is_folder:
            os.mkdir(place, 0o755)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        moved = _libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(place), _MOVE_MOUNT_F_EMPTY_PATH)
        _check(moved, f"place {mount['source']}")
        os.close(tree)
    _give_root_away(order["uid"])
    os.execve(order["program"], order["argv"], {"PATH": "/usr/local/bin:/usr/bin:/bin"})


def _clone(mount: dict[str, Any], uid: int) -> tuple[int, bool]:
    """A detached, id-mapped clone of the mount at `source`, and whether it is a folder.

    What is mounted below comes along where it can be mapped too; else the clone is of the one mount alone.
    """
    source = mount["source"]
    is_folder = stat.S_ISDIR(os.stat(source).st_mode)
    users = _user_namespace(mount["owner"], uid)
    try:
        for depth in (_AT_RECURSIVE, 0):
            tree = _check(_open_tree(source, depth), f"clone {source}")
            if _map_ids(tree, users, depth) == 0:
                return tree, is_folder
            reason = os.strerror(ctypes.get_errno())
            os.close(tree)
    finally:
        os.close(users)
    if mount["must_map"]:
        raise OSError(
            1, f"{source} lies on a file system without id-mapped mounts ({reason}); start sandboxmcp as an ordinary user", ""
        )
    return _check(_open_tree(source, _AT_RECURSIVE), f"clone {source}"), is_folder


def _open_tree(source: str, depth: int) -> int:
    return int(_libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(source), _OPEN_TREE_CLONE | os.O_CLOEXEC | depth))


def _map_ids(tree: int, users: int, depth: int) -> int:
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_IDMAP, 0, 0, users)
    return int(_libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | depth, attributes, len(attributes)))


def _user_namespace(owner: list[int], uid: int) -> int:
    """A user namespace in which the owner's ids on disk are the throw-away ids; used only as the map of a mount."""
    ready_r, ready_w = os.pipe()
    done_r, done_w = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done_w)
        code = _libc.unshare(_CLONE_NEWUSER)
        os.write(ready_w, b"y" if code == 0 else b"n")
        os.read(done_r, 1)
        os._exit(0)
    os.close(ready_w)
    os.close(done_r)
    try:
        if os.read(ready_r, 1) != b"y":
            raise OSError(1, "cannot unshare a user namespace", "the map of the workspace")
        for kind, on_disk in zip(("uid", "gid"), owner, strict=True):
            with open(f"/proc/{child}/{kind}_map", "w") as file:
                file.write(f"{on_disk} {uid} 1\n")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(done_w)
        os.close(ready_r)
        os.waitpid(child, 0)


def _give_root_away(uid: int) -> None:
    last = int(open("/proc/sys/kernel/cap_last_cap").read())  # noqa: SIM115 - the process is replaced in a moment
    for capability in range(last + 1):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (uid, uid, uid):
        raise OSError(1, "root could not be given away", "")


def _check(result: int, doing: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {doing}: {os.strerror(number)}", "")
    return result


if __name__ == "__main__":
    main()
