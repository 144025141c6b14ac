"""Reading and writing what is the host's: secrets, settings of the kernel, the system, our own code (cases 1-8, 20, 21)."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.settings import load_settings

ROOT = os.getuid() == 0
CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
REPOSITORY = Path(__file__).parents[2]

OPEN_ALL_OF_PROC_SYS = """
import os
opened = []
for folder, _, files in os.walk("/proc/sys"):
    for name in files:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
        except OSError:
            continue
        opened.append(os.path.join(folder, name))
print(*opened)
"""


NAMESPACED = re.compile(r"/proc/sys/(fs/mqueue/\w+|kernel/(auto_msgmni|msgm\w\w|ns_last_pid|pid_max|sem|shm\w+))")
"""Settings of the ipc and pid namespaces, which are the sandbox's own."""


def test_no_setting_of_the_kernel_can_be_written_but_the_namespaces_own(attempt, cannot_show):
    both = attempt(OPEN_ALL_OF_PROC_SYS)
    if not ROOT:
        cannot_show("/proc/sys", "an ordinary user cannot write there outside either")
    elif CORE_PATTERN.name not in both.outside.stdout:
        cannot_show("/proc/sys", "it is mounted read-only on this machine")
    assert [path for path in both.inside.text.split() if not NAMESPACED.fullmatch(path)] == []


def test_a_namespaces_own_settings_are_not_the_hosts(inside):
    watched = [Path("/proc/sys/fs/mqueue/msg_default"), Path("/proc/sys/kernel/msgmnb"), Path("/proc/sys/kernel/sem")]
    before = [path.read_text() for path in watched]
    inside.run(
        "echo 7 > /proc/sys/fs/mqueue/msg_default; echo 4096 > /proc/sys/kernel/msgmnb; echo 1 2 3 4 > /proc/sys/kernel/sem",
        "shell",
    )
    assert [path.read_text() for path in watched] == before


def test_the_program_for_core_dumps_cannot_be_set(attempt, cannot_show):
    before = CORE_PATTERN.read_bytes()
    both = attempt(f"echo 'same value' >/dev/null; printf %s '{before.decode().strip()}' > {CORE_PATTERN} && echo written", "shell")
    if both.outside.stdout != "written\n":
        cannot_show("core_pattern", "only root may write it outside")
    assert (both.inside.stdout, CORE_PATTERN.read_bytes()) == (b"", before)


@pytest.fixture
def with_secret(make_inside, monkeypatch):
    """A sandbox whose server has a secret in its environment, and what to look for."""
    monkeypatch.setenv("PLANTED_TOKEN", "planted-5eC4e7")
    return make_inside(), "planted-5eC4e7"


SEARCH_PROC = """
import glob
hits = set()
for kind in ("environ", "cmdline"):
    for path in glob.glob(f"/proc/[0-9]*/{kind}") + glob.glob(f"/proc/[0-9]*/task/*/{kind}"):
        try:
            if b"NEEDLE" in open(path, "rb").read(): hits.add(kind)
        except OSError:
            pass
print(sorted(hits))
"""


def test_the_servers_environment_is_in_no_process_inside(with_secret):
    own, secret = with_secret
    code = SEARCH_PROC.replace("NEEDLE", secret[:4] + '" b"' + secret[4:])  # not in one piece, else it finds its own command line
    outside = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (outside.stdout, own.run(code).text) == ("['environ']\n", "[]\n")


def test_the_environment_inside_is_made_of_a_few_words(with_secret):
    own, _ = with_secret
    names = set(re.findall(r"^(\w+)=", own.run("env", "shell").text, re.M)) - {"_", "PWD", "SHLVL", "OLDPWD"}
    assert names == {
        "GIT_CONFIG_SYSTEM", "HOME", "JPY_PARENT_PID", "LANG", "LOGNAME", "NO_COLOR", "OPENBLAS_NUM_THREADS", "PATH",
        "PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE", "SHELL", "TERM", "TMPDIR", "USER",
    }  # fmt: skip


def test_no_command_line_inside_names_a_folder_of_the_host(inside):
    shown = inside.run("for one in /proc/[0-9]*; do tr '\\0' ' ' < $one/cmdline && echo; done 2>/dev/null", "shell").text
    python = re.escape(sys.executable)
    assert re.search(rf"^{python} -I /opt/sandboxmcp/guest/launcher\.py \d+ \{{.*\}} $", shown, re.M)
    assert str(inside.workspace) not in shown


def test_a_file_outside_the_workspace_is_not_there(attempt, tmp_path):
    planted = tmp_path / "secret.txt"
    planted.write_text("secret of the host")
    both = attempt(f"cat '{planted}'", "shell")
    assert (both.outside.stdout, both.inside.stdout) == ("secret of the host", b"")
    assert b"No such file" in both.inside.stderr


def test_another_sessions_workspace_is_not_there(attempt, make_inside):
    other = make_inside()
    (other.workspace / "theirs.txt").write_text("theirs")
    both = attempt(f"cat '{other.workspace}/theirs.txt'", "shell")
    assert (both.outside.stdout, both.inside.stdout) == ("theirs", b"")


@pytest.mark.parametrize("path", ["/etc/shadow", "/root/.bashrc", "~/.ssh", "~/.bashrc", "/var/log", "/boot", "/sys", "/mnt"])
def test_secrets_of_the_system_and_of_users_are_not_there(attempt, cannot_show, path):
    real = os.path.expanduser(path)
    both = attempt(f"ls -d '{real}' && cat '{real}' 2>/dev/null | head -c 1", "shell")
    if both.outside.stdout == "":
        cannot_show(path, "it does not exist here, or this user may not read it")
    assert both.inside.stdout == b""


WRITE_EVERYWHERE = """
import errno, os, tempfile
for folder in ("/", "/usr", "/usr/local/bin", "/etc", "/run", "/dev", "/opt", "/opt/sandboxmcp/guest", "/var", "/var/lib/dpkg"):
    name = os.path.join(folder, "sandboxmcp-escape")
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(name)
        print(folder, "written")
    except OSError as error:
        print(folder, errno.errorcode[error.errno])
"""


def test_nothing_of_the_system_can_be_written(attempt, cannot_show):
    both = attempt(WRITE_EVERYWHERE)
    if not ROOT:
        cannot_show("system folders", "an ordinary user cannot write there outside either")
    else:
        assert {"/ written", "/usr written", "/etc written", "/run written", "/dev written"} <= set(
            both.outside.stdout.splitlines()
        )
    inside = dict(line.split() for line in both.inside.text.splitlines())
    assert set(inside.values()) <= {"EROFS", "EACCES"}


def test_what_looks_writable_is_memory_and_never_reaches_the_host(inside, tmp_path):
    inside.run("touch /tmp/escaped-4711 /home/escaped-4711 /dev/shm/escaped-4711 ~/escaped-4711", "shell")
    assert [path for path in ("/tmp", "/home", "/dev/shm") if Path(path, "escaped-4711").exists()] == []


@pytest.mark.parametrize("language", ["python", "shell"])
def test_open_descriptors_are_pipes_memory_and_sockets_of_its_own(inside, language):
    """Only what an item needs: no file, folder or device of the host but /dev/null."""
    code = (
        "import contextlib, os\nfor fd in os.listdir('/proc/self/fd'):\n"
        "    with contextlib.suppress(OSError): print(os.readlink(f'/proc/self/fd/{fd}'))"
    )
    shell = "for fd in /proc/$$/fd/*; do readlink $fd; done"
    kinds = {
        re.sub(r"\d+", "N", line) for line in inside.run(code if language == "python" else shell, language).text.split("\n")[:-1]
    }
    own = {
        "/dev/null",
        "pipe:[N]",
        "socket:[N]",
        "anon_inode:[eventfd]",
        "anon_inode:[eventpoll]",
        "/memfd:script (deleted)",
        "/proc/N/fd",
    }
    assert kinds - own == set()


def plant_setuid(folder: Path) -> Path:
    """A program that tells its user id, with its owner's rights."""
    program = folder / "rootid"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    program.chmod(0o4755)
    return program


def test_a_setuid_program_gains_nothing(inside, cannot_show):
    planted = plant_setuid(inside.workspace)
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o711)  # noqa: S103 - another user must reach the program
        outside: list[Any] = [plant_setuid(Path(open_to_all)), "-u"]
        if not ROOT or subprocess.run(["runuser", "-u", "nobody", "--", *outside], capture_output=True).stdout != b"0\n":
            cannot_show("setuid", "it takes root's program, run by another user, on a file system without nosuid")
    assert inside.run("./rootid -u", "shell").stdout == b"1000\n"
    planted.unlink()


def test_no_setuid_program_is_left_on_the_hosts_disk(attempt, inside):
    both = attempt("cp /usr/bin/id planted; chmod 4755 planted; stat -c %a planted; rm planted", "shell")
    assert both.outside.stdout == "4755\n"
    inside.run("cp /usr/bin/id planted; chmod 4755 planted", "shell")
    assert stat.S_IMODE((inside.workspace / "planted").stat().st_mode) & (stat.S_ISUID | stat.S_ISGID) == 0


def test_no_device_node_is_made(attempt, inside, cannot_show):
    both = attempt("mknod disk b 254 0 && rm disk && echo made", "shell")
    if both.outside.stdout != "made\n":
        cannot_show("mknod", "only root may make device nodes outside")
    assert (both.inside.stdout, (inside.workspace / "disk").exists()) == (b"", False)


OWN_CODE = """
import errno, os
for path in ("sandboxmcp/__init__.py", "kernels/guest/launcher.py", "policies/default.toml", "PYTHON"):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))  # nothing is written even if it opens
        print(path, "open")
    except OSError as error:
        print(path, errno.errorcode[error.errno])
for path in ("sandboxmcp", "kernels", "kernels/guest", "policies"):
    try:
        os.rename(path, path + ".moved")
        os.rename(path + ".moved", path)
        print(path, "moved")
    except OSError as error:
        print(path, errno.errorcode[error.errno])
"""


def test_our_own_code_cannot_be_rewritten_from_a_workspace_that_holds_it(inside, tmp_path):
    """In our own checkout a script must not change what the next start of the server runs."""
    code = OWN_CODE.replace("PYTHON", str(Path(sys.prefix, "pyvenv.cfg")))
    outside = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert (outside.stdout.count("open\n"), outside.stdout.count("moved\n")) == (4, 4)
    own = type(inside)(
        load_settings(flags={"workspace": str(REPOSITORY)}, environ={"HOME": str(tmp_path)}, project=tmp_path), tmp_path
    )
    try:
        ran = own.run(code)
    finally:
        own.close()
    assert {line.split()[-1] for line in ran.text.splitlines()} <= {"EROFS", "EBUSY"}
    assert len(ran.text.splitlines()) == 8


def test_a_link_in_the_workspace_leads_nowhere_inside(attempt, tmp_path):
    (tmp_path / "secret").write_text("secret of the host")
    both = attempt(f"ln -sf '{tmp_path}/secret' link; cat link", "shell")
    assert (both.outside.stdout, both.inside.stdout) == ("secret of the host", b"")


def test_the_root_of_every_process_is_the_sandboxs_own(attempt, cannot_show, tmp_path):
    (tmp_path / "secret").write_text("secret of the host")
    both = attempt(
        f"for p in /proc/[0-9]*; do cat $p/root'{tmp_path}/secret' $p/cwd/../../../../../..'{tmp_path}/secret'; done 2>/dev/null",
        "shell",
    )
    assert ("secret" in both.outside.stdout, both.inside.stdout) == (True, b"")


def test_our_store_in_the_workspace_is_not_read(make_inside, tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    (workspace / "data").mkdir()
    (workspace / "data/capture").write_text("of another script")
    own = make_inside(workspace=str(workspace), data_dir=str(workspace / "data"))
    ran = own.run("ls -A data; touch data/planted; mv data moved; echo end", "shell")
    assert ran.stdout == b"end\n"
    assert [file.name for file in (workspace / "data").iterdir()] == ["capture"]
