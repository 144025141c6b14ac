"""What scripts leave in the workspace for the host to read: links, pipes, and files that are swapped meanwhile (cases 6-8)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.tools.roots import opened


def read_by_the_host(path: Path, workspace: Path) -> bytes:
    """As ctx_index and its kin read: one check, of the very file that is read."""
    with opened(path, (workspace,)) as file:
        return file.read_bytes()


@pytest.fixture
def secret(tmp_path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(b"secret of the host")
    return path


@pytest.mark.parametrize("target", ["{secret}", "/etc/passwd", "/proc/self/environ", "../../../../../../../../etc/passwd"])
def test_the_host_does_not_follow_a_link_out_of_the_workspace(inside, secret, target):
    inside.run(f"ln -sfn '{target.format(secret=secret)}' result.txt", "shell")
    assert (inside.workspace / "result.txt").read_bytes() != b""  # a plain read follows it
    with pytest.raises(UsageError, match="outside the folders that may be read"):
        read_by_the_host(inside.workspace / "result.txt", inside.workspace)


def test_the_host_does_not_follow_a_folder_that_is_a_link(inside, secret):
    inside.run(f"ln -sfn '{secret.parent}' results", "shell")
    assert (inside.workspace / "results" / "secret").read_bytes() == b"secret of the host"
    with pytest.raises(UsageError, match="outside the folders that may be read"):
        read_by_the_host(inside.workspace / "results" / "secret", inside.workspace)


MADE = {
    "a pipe": "os.mkfifo('thing')",
    "a socket": "socket.socket(socket.AF_UNIX).bind('thing')",
    "a folder": "os.mkdir('thing')",
    "a loop of links": "os.symlink('thing', 'thing')",
    "a link to a terminal": "os.symlink('/dev/tty', 'thing')",
    "a link to endless zeros": "os.symlink('/dev/zero', 'thing')",
}


@pytest.mark.parametrize("what", MADE)
def test_the_host_neither_waits_for_nor_reads_what_is_no_file(make_inside, what):
    own = make_inside()
    assert own.run(f"import os, socket\n{MADE[what]}").outcome.status == "ok"
    with pytest.raises(UsageError):
        read_by_the_host(own.workspace / "thing", own.workspace)


SWAP = """
import os
os.makedirs("real", exist_ok=True)
with open("real/secret", "wb") as file: file.write(b"own")
with open("plain", "wb") as file: file.write(b"own")
open("swapping", "w").close()
while not os.path.exists("stop"):
    for name, target in (("file", "SECRET"), ("folder", "FOLDER")):
        os.symlink(target, "next"); os.rename("next", name)
        os.symlink("real" if name == "folder" else "plain", "next"); os.rename("next", name)
"""


def test_a_file_or_folder_that_is_swapped_meanwhile_never_shows_the_hosts(make_inside, secret):
    own = make_inside()
    running = own.start(own.run_here(SWAP.replace("SECRET", str(secret)).replace("FOLDER", str(secret.parent))))
    while not (own.workspace / "swapping").exists():
        os.sched_yield()
    seen: set[Any] = set()
    followed: set[Any] = set()
    tried = 0
    while (tried < 1500 or len(followed) < 2) and not running.done():
        tried += 1
        for path in (own.workspace / "file", own.workspace / "folder" / "secret"):
            try:
                followed.add(path.read_bytes())
                seen.add(read_by_the_host(path, own.workspace))
            except (OSError, UsageError):
                continue
    (own.workspace / "stop").touch()
    assert (running.result(20).outcome.status, seen, followed) == ("ok", {b"own"}, {b"own", b"secret of the host"})
