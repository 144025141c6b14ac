"""The arguments of bubblewrap: every wall is named, and later mounts cover earlier ones in the right order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sandboxmcp.sandbox.bwrap import GUEST, Bind, PassedFds, SandboxProfile, bwrap_argv, mountpoints_between, small_files

SMALL = SandboxProfile(
    workspace="/p",
    binds=(Bind("/venv", "/venv"), Bind("/p", "/p", writable=True), Bind("/guest", GUEST)),
    links={"/venv/bin/python": "/x"},
    system_folders={"/bin": "usr/bin", "/lib32": None},
    tmpfs_bytes=64 << 20,
)
FDS = PassedFds(status=9, files={"/etc/passwd": 7}, seccomp=8)
GOLDEN = """
--unshare-all --unshare-user --die-with-parent --new-session --disable-userns
--uid 1000 --gid 1000 --cap-drop ALL --hostname sandbox
--clearenv --setenv PATH /usr/local/bin:/usr/bin:/bin --setenv HOME /home/sandbox --setenv USER sandbox --setenv LOGNAME sandbox
--setenv SHELL /bin/bash --setenv LANG C.UTF-8 --setenv TERM dumb --setenv NO_COLOR 1 --setenv TMPDIR /tmp
--setenv PYTHONDONTWRITEBYTECODE 1 --setenv GIT_CONFIG_SYSTEM /etc/gitconfig
--setenv PYTHONNOUSERSITE 1 --setenv JPY_PARENT_PID 1 --setenv OPENBLAS_NUM_THREADS 1
--ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /lib32 /lib32
ETC
--ro-bind-try /var/lib/dpkg /var/lib/dpkg --ro-bind-data 7 /etc/passwd --proc /proc --dev /dev
--size 4096 --perms 0555 --tmpfs /proc/1 --remount-ro /proc/1
--size 16777216 --perms 1777 --tmpfs /dev/shm --size 67108864 --perms 1777 --tmpfs /tmp
--size 16777216 --perms 0755 --tmpfs /home --perms 0700 --dir /home/sandbox --dir /run --dir /var/tmp
--symlink /x /venv/bin/python --ro-bind /venv /venv --bind /p /p --ro-bind /guest /opt/sandboxmcp/guest
--remount-ro /dev --remount-ro / --chdir /p --json-status-fd 9 --seccomp 8
"""
ETC = (
    "alternatives debian_version dpkg fonts host.conf ld.so.cache ld.so.conf ld.so.conf.d locale.alias localtime magic mime.types "
    "os-release protocols services ssl/certs terminfo timezone R dotnet erlang mono perl php"
).split()


def test_a_small_profile_gives_exactly_these_arguments():
    etc = " ".join(f"--ro-bind-try /etc/{name} /etc/{name}" for name in ETC)
    assert bwrap_argv(SMALL, FDS) == GOLDEN.replace("ETC", etc).split()


def test_the_files_that_we_write_ourselves_name_no_user_of_the_host():
    files = small_files(replace(SMALL, files={"/opt/x": b"ours"}))
    assert sorted(files) == ["/etc/gitconfig", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/passwd", "/opt/x"]
    names = {line.split(b":")[0] for line in files["/etc/passwd"].splitlines()}
    assert names == {b"root", b"sandbox", b"nobody"}


def test_without_nested_user_namespaces_and_filter_the_other_walls_stay():
    profile = SandboxProfile(workspace="/p", binds=(), disable_userns=False)
    argv = bwrap_argv(profile, PassedFds(status=9, files={}))
    assert {"--disable-userns", "--seccomp"} & set(argv) == set()
    assert {"--unshare-all", "--unshare-user", "--cap-drop", "--clearenv", "--new-session", "--die-with-parent"} <= set(argv)


def test_even_a_tiny_memory_folder_has_a_size():
    argv = bwrap_argv(SandboxProfile(workspace="/p", binds=(), tmpfs_bytes=1), PassedFds(9, {}))
    tmpfs = [argv[at - 4 : at + 2] for at, word in enumerate(argv) if word == "--tmpfs"]
    assert [(words[0], int(words[1]) > 0) for words in tmpfs] == [("--size", True)] * 4


@pytest.mark.parametrize(
    ("outer", "inner", "between"),
    [
        ("/p", "/p/.venv", []),
        ("/p", "/p/a/b/c", ["/p/a", "/p/a/b"]),
        ("/p", "/p", []),
        ("/p", "/pq/a/b", []),
        ("/p/a", "/p/a/b c/d", ["/p/a/b c"]),
    ],
)
def test_the_folders_between_are_those_that_could_be_renamed(outer, inner, between):
    assert mountpoints_between(outer, inner) == between
