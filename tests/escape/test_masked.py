"""Files of secrets inside: what is shown of them, that git is not deceived by it, and that the rest cannot be reached."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.errors import SandboxUnavailable
from sandboxmcp.render.reasons import said
from sandboxmcp.sandbox.locate import overlaying_bubblewrap

ENV = '# of the shop\nTOKEN=hunter2-secret\nexport MORE="two\nlines-secret"\n'
NPMRC = "registry=https://npm.example.org/\n//npm.example.org/:_authToken=abcdef-secret\n"
SECRETS = {
    ".env": ENV,
    "conf/.env.local": ENV,
    ".npmrc": NPMRC,
    "id_rsa": "-----BEGIN RSA PRIVATE KEY-----\nMIIsecret\n-----END RSA PRIVATE KEY-----\n",
}
HIDDEN = "shown masked in the sandbox"


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def planted(make_inside: Callable[..., Any]) -> Any:
    """A sandbox over a repository whose files of secrets are tracked, `.env` and what is in `conf` excepted."""
    own = make_inside(git="rw")
    plant(own.workspace)
    return own


def plant(workspace: Path) -> None:
    for name, text in {**SECRETS, ".env.example": "TOKEN=yours\n", "a.txt": "a\n"}.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    git(workspace, "init", "-q")
    for name, value in (("user.name", "a"), ("user.email", "a@example.org"), ("commit.gpgsign", "false")):
        git(workspace, "config", name, value)
    git(workspace, "add", ".npmrc", ".env.example", "a.txt")
    git(workspace, "commit", "-qm", "first")


def unchanged(workspace: Path) -> bool:
    return {name: (workspace / name).read_text() for name in SECRETS} == SECRETS


def test_keys_are_shown_values_are_not_and_the_answer_says_so(planted: Any) -> None:
    ran = planted.run("cat .env conf/.env.local .npmrc id_rsa; stat -c '%n %s %Y' .env .npmrc", "shell")
    assert ("secret" in ran.text, "hunter2" in ran.text, "MII" in ran.text) == (False, False, False)
    assert all(
        word in ran.text for word in ("# of the shop", "TOKEN=", "export MORE=", "registry=https", "_authToken=", "BEGIN RSA")
    )
    status = [os.stat(planted.workspace / name) for name in (".env", ".npmrc")]
    assert [f"{one.st_size} {int(one.st_mtime)}" in ran.text for one in status] == [True, True]
    assert said(ran.outcome.reasons).count(HIDDEN) == 1 and ".env" in said(ran.outcome.reasons)
    assert said(planted.run("echo hello", "shell").outcome.reasons) == ""
    assert HIDDEN in said(planted.run("ls -a", "shell").outcome.reasons)
    assert HIDDEN in said(planted.run("print(open('.npmrc').read())").outcome.reasons)


def test_templates_are_read_and_written(planted: Any) -> None:
    ran = planted.run("cat .env.example; echo MORE=1 >> .env.example", "shell")
    assert (ran.text, ran.outcome.status, said(ran.outcome.reasons)) == ("TOKEN=yours\n", "ok", "")
    assert (planted.workspace / ".env.example").read_text() == "TOKEN=yours\nMORE=1\n"


def test_a_named_kernel_is_told_too(planted: Any) -> None:
    from sandboxmcp.core.model import Script

    async def run() -> str:
        async with planted.runner.session() as session:
            return said((await session.run_in("k", Script("t", "python", "print(len(open('.env').read()))", 20.0))).reasons)

    assert HIDDEN in planted.wait(run())


COMMITS = {
    "status": "git status --porcelain --untracked-files=no",
    "diff": "git diff; git diff HEAD",
    "commit": "echo b >> a.txt; git commit -qam second",
    "add": "echo b >> a.txt; git add -u; git add .npmrc; git commit -qm second",
    "stash": "echo b >> a.txt; git stash -q; git stash pop -q; git commit -qam second",
    "touched index": "rm .git/index; git reset -q; git add -u; echo b >> a.txt; git commit -qam second",
}


@pytest.mark.parametrize("code", COMMITS.values(), ids=COMMITS)
def test_git_takes_a_masked_file_for_unchanged_and_commits_what_it_was(planted: Any, code: str) -> None:
    ran = planted.run(code, "shell")
    assert (ran.outcome.status, ran.text, ran.stderr) == ("ok", "", b"")
    assert git(planted.workspace, "show", "HEAD:.npmrc") == NPMRC
    assert git(planted.workspace, "log", "--format=%s", "--", ".npmrc") == "first\n"
    assert unchanged(planted.workspace)


def test_a_commit_in_an_overlay_has_what_the_file_was(make_inside: Callable[..., Any]) -> None:
    try:
        overlaying_bubblewrap()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    own = make_inside(workspace_mode="overlay")
    plant(own.workspace)
    ran = own.run(
        "echo b >> a.txt; git commit -qam second; git show HEAD:.npmrc; git stash -q; git status --short -uno; cat .env", "shell"
    )
    assert (ran.outcome.status, ran.text.startswith(NPMRC), "hunter2" in ran.text) == ("ok", True, False)
    assert (git(own.workspace, "log", "--format=%s"), unchanged(own.workspace)) == ("first\n", True)


def test_a_masked_file_that_git_does_not_know_cannot_be_added(planted: Any) -> None:
    ran = planted.run("git add -f .env; git commit -qm second > /dev/null; git ls-files .env", "shell")
    assert (ran.text, b"add it outside" in ran.stderr) == ("", True)
    assert "second" not in git(planted.workspace, "log", "--format=%s")


def test_a_repository_of_a_scripts_own_takes_such_files_as_they_are(planted: Any) -> None:
    ran = planted.run("mkdir /tmp/r; cd /tmp/r; git init -q; echo A=1 > .env; git add .env; git show :.env", "shell")
    assert (ran.text, ran.outcome.status) == ("A=1\n", "ok")


ATTEMPTS = {
    "removed and written": "rm -f .env; echo x > .env; cat .env",
    "a hard link": "ln .env copy && cat copy",
    "moved with its folder": "mv conf c2; cat c2/.env.local; mv c2 conf",
    "moved away": "mv .env elsewhere; cat elsewhere .env",
    "replaced by a move": "echo x > new; mv -f new .env; cat .env",
    "unmounted": "umount .env; umount -l .env; fusermount -u .env; cat .env",
    "mounted anew": "mount --bind . /mnt; mount -t tmpfs none conf; unshare -rm umount .env; cat .env",
    "by the table of mounts": "awk '{print $4; print $5; print $10}' /proc/self/mountinfo | while read p; do cat $p/.env $p; done",
    "through processes": "for p in /proc/[0-9]*; do cat $p/root$PWD/.env $p/cwd/.env; done",
    "truncated": ": > .env; truncate -s 0 .env; dd if=/dev/null of=.env; cat .env",
    "times": "touch -d @1 .env; chmod 777 .env; stat -c %Y .env",
    "attributes": "setfattr -n user.x -v y .env; cat .env",
    "by its folder": "cd conf; cat ./.env.local ../conf/.env.local",
    "a link to it": "ln -s .env visible; cat visible; rm visible",
    "tar": "tar cf - .env conf | tar xOf -",
    "cp reflink": "cp --reflink=always .env c; cp .env c; cat c; rm -f c",
}


@pytest.mark.parametrize("code", ATTEMPTS.values(), ids=ATTEMPTS)
def test_what_is_hidden_cannot_be_reached(planted: Any, code: str) -> None:
    outside = subprocess.run(["cat", ".env", "conf/.env.local"], cwd=planted.workspace, capture_output=True, text=True, check=True)
    assert outside.stdout == ENV * 2
    ran = planted.run(f"exec 2>/dev/null; {code}", "shell")
    assert ("hunter2" in ran.text, "lines-secret" in ran.text, unchanged(planted.workspace)) == (False, False, True)


BY_DESCRIPTOR = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(".env", os.O_PATH)
for path in (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}"):
    for flags in (os.O_RDONLY, os.O_RDWR):
        try:
            print(os.read(os.open(path, flags), 999))
        except OSError as error:
            print(error.strerror)
handle = (ctypes.c_char * 136)()
ctypes.cast(handle, ctypes.POINTER(ctypes.c_uint))[0] = 128
mount = ctypes.c_int()
if libc.name_to_handle_at(-100, b".env", handle, ctypes.byref(mount), 0) == 0:
    for folder in (".", "/"):
        found = libc.open_by_handle_at(os.open(folder, os.O_RDONLY), handle, os.O_RDONLY)
        if found >= 0:
            print(os.read(found, 999))
for entry in os.scandir("."):  # inodes of a folder's entries, read without the mounts over them
    print(entry.name, entry.inode())
tree = libc.syscall(428, -100, b".", 1 | 0x8000)
if tree >= 0:
    print(os.read(os.open(".env", os.O_RDONLY, dir_fd=tree), 999))
"""


def test_no_descriptor_or_handle_leads_below_the_cover(attempt: Callable[..., Any], inside: Any) -> None:
    (inside.workspace / ".env").write_text(ENV)
    both = attempt(BY_DESCRIPTOR)
    assert ("hunter2" in both.outside.stdout, "hunter2" in both.inside.text) == (True, False)
    assert "TOKEN=" in both.inside.text
    assert (inside.workspace / ".env").read_text() == ENV


def test_the_copies_cannot_be_written_by_any_path(planted: Any) -> None:
    code = """
import os
wrote = []
for folder, _, files in os.walk("/"):
    if folder.startswith(("/proc", "/sys", "/usr", "/dev")): continue
    for name in files:
        path = os.path.join(folder, name)
        try:
            if b"TOKEN=*" in open(path, "rb").read(4096):
                open(path, "ab").close(); wrote.append(path)
        except OSError: pass
print(wrote)
"""
    ran = planted.run(code)
    assert ran.text == "[]\n"


def test_a_change_on_the_host_is_seen_by_the_next_script(planted: Any) -> None:
    env = planted.workspace / ".env"
    planted.run("cat .env", "shell")
    env.write_text("CHANGED=other-secret-1\n")
    in_place = planted.run("cat .env", "shell").text
    (planted.workspace / "new").write_text("RENAMED=other-secret-2\n")
    (planted.workspace / "new").rename(env)
    replaced = planted.run("cat .env; cp /dev/null .env", "shell").text
    assert (in_place, replaced, env.read_text()) == (
        "CHANGED=**************\n",
        "RENAMED=**************\n",
        "RENAMED=other-secret-2\n",
    )


DEEPER = """
import os
at = top = os.open(".", 0)
for _ in range(30):
    os.mkdir("d" * 200, dir_fd=at)
    at = os.open("d" * 200, 0, dir_fd=at)
os.rename("conf", "conf", src_dir_fd=top, dst_dir_fd=at)
"""
SEARCH = """
import os
for folder, folders, files, here in os.fwalk("."):
    for name in folders:
        try:
            os.chmod(name, 0o755, dir_fd=here)
        except OSError:
            pass
    for name in files:
        try:
            print(open(os.open(name, os.O_RDONLY, dir_fd=here), errors="replace").read())
        except OSError:
            pass
"""
MOVES = {
    "a folder that says what its file is": "mv .docker d2; mv secrets s2",
    "into dull folders": "mkdir -p a/__pycache__ .git/objects/ab; mv .docker a/__pycache__; mv secrets .git/objects/ab",
    "a link removed": "rm -f .env.link",
    "a folder closed": "chmod 0 conf",
    "a path that is too long to be named": f"python3 - <<'EOF'\n{DEEPER}\nEOF",
}


@pytest.mark.parametrize("code", MOVES.values(), ids=MOVES)
def test_what_a_script_moved_is_covered_in_the_next_sandbox_too(planted: Any, code: str) -> None:
    places = {".docker/config.json": '{"auths": {"h": {"auth": "hunter2-secret"}}}', "secrets/pw": "hunter2", "plain/settings": ENV}
    for name, text in places.items():
        (planted.workspace / name).parent.mkdir()
        (planted.workspace / name).write_text(text)
    (planted.workspace / ".env.link").symlink_to("plain/settings")
    planted.run(code, "shell")
    planted.wait(planted.runner.close())
    shown = planted.run(SEARCH).text
    assert ("hunter2" in shown, "lines-secret" in shown, "a" in shown) == (False, False, True)


def test_links_and_hard_links_that_the_project_has_show_no_more(make_inside: Callable[..., Any]) -> None:
    own = make_inside()
    (own.workspace / "deploy").mkdir()
    (own.workspace / "deploy/production").write_text(ENV)
    (own.workspace / ".env").symlink_to("deploy/production")
    (own.workspace / "other-name").hardlink_to(own.workspace / "deploy/production")
    ran = own.run("cat .env deploy/production other-name", "shell")
    assert ("secret" in ran.text, ran.text.count("TOKEN=")) == (False, 3)


def test_hundreds_of_files_are_masked(make_inside: Callable[..., Any]) -> None:
    own = make_inside()
    for number in range(300):
        (own.workspace / f".env.{number}").write_text(f"A=secret-{number}\n")
    ran = own.run("cat .env.*", "shell")
    assert (ran.text.count("A=***"), "secret" in ran.text) == (300, False)
    assert "and 297 more are shown masked" in said(ran.outcome.reasons)
