"""A sandbox as a value, and the bubblewrap arguments that build it. Pure: nothing here touches the machine.

What the arguments promise: no network, own user, pid, ipc, uts and cgroup namespaces, no capability, no new privilege,
a system that is read-only, /tmp, /home and /dev/shm in memory under a cap, the workspace at its own path, an empty environment.
What they do not promise: bugs of the operating system's kernel, side channels, and harm done inside the workspace itself.
Source: bwrap(1); the traps named in comments were measured with bubblewrap 0.8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

SANDBOX_ID = 1000
"""User and group id that the inside sees; never the kernel's own id when root starts us (see rootlaunch)."""
HOME = "/home/sandbox"
GUEST = "/opt/sandboxmcp/guest"
"""Where the launcher's code lies inside."""
SHIMS = "/opt/sandboxmcp/shims"
"""First on PATH inside, when there is a broker: the names of the programs that it runs."""
SHIM_INTERPRETER = "/opt/sandboxmcp/python"
"""A link to the interpreter, so that the shims' first line can name one."""
SHIM_CODE = "/opt/sandboxmcp/shim"
"""What they run, compiled."""

REFUSED_LIMITS: Mapping[str, int] = {
    "CORE": 1,
    "RTPRIO": 0,
    "NICE": 0,
    "SIGPENDING": 4096,
    "MSGQUEUE": 256 << 10,
    "MEMLOCK": 8 << 20,
}
"""As setrlimit(2) names them. With a limit of 0 bytes a crash still starts the host's handler, as root, where core_pattern has one;
1 is the value at which the kernel starts none (fs/coredump.c). Real-time priority, which users have for audio, stops a machine.
The last three are counted per user: queued signals and timers, bytes in POSIX message queues, locked memory."""

_ETC = (
    "alternatives", "debian_version", "dpkg", "fonts", "host.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "locale.alias", "localtime", "magic", "mime.types", "os-release", "protocols", "services", "ssl/certs", "terminfo", "timezone",
    "R", "dotnet", "erlang", "mono", "perl", "php",  # without their settings these runtimes do not start, or not as installed
)  # fmt: skip
_SYSTEM_DATA = ("/var/lib/dpkg",)
"""World-readable package data: what is installed is a usual question, and holds no secret."""
GITCONFIG = "/etc/gitconfig"
GIT_SETTINGS = """[core]
\tcheckStat = minimal
\ttrustctime = false
[safe]
\tdirectory = *
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
"""The index was written outside: inside, owners and times of change differ, and git would take every file for a changed one."""
_SMALL_FILES: Mapping[str, str] = {
    GITCONFIG: GIT_SETTINGS,
    "/etc/passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:{SANDBOX_ID}:{SANDBOX_ID}::{HOME}:/bin/bash\n"
    "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": f"root:x:0:\nsandbox:x:{SANDBOX_ID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


@dataclass(frozen=True, slots=True)
class Bind:
    """One host path made visible inside. `source` may be a staged copy of the mount when root starts us."""

    source: str
    target: str
    writable: bool = False
    layer: str = ""
    """A folder with `upper` and `work` that takes what is written, instead of the source (sandbox/overlay/layer.py)."""
    stage: str = ""
    """The folder that is staged instead of the source alone, which lies in it: one mount for many files."""


@dataclass(frozen=True, slots=True)
class SandboxProfile:
    """Everything about one sandbox that is decided before it starts."""

    workspace: str
    """Absolute path, the same inside as outside."""
    binds: tuple[Bind, ...]
    """In mounting order: a later one covers an earlier one."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Symbolic links to make inside: path → what it points at."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Read-only files beside those of /etc: path inside → content."""
    system_folders: Mapping[str, str | None] = field(default_factory=dict)
    """Top-level folders such as /bin: path → link target, or None for a real folder."""
    path: str = "/usr/local/bin:/usr/bin:/bin"
    hidden: tuple[str, ...] = ()
    """Folders inside the workspace that are not to be seen: each is covered by an empty, read-only one."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside our own ones."""
    tmpfs_bytes: int = 1 << 30
    disable_userns: bool = True


@dataclass(frozen=True, slots=True)
class PassedFds:
    """Numbers of the descriptors that bubblewrap itself reads; it closes them before the launcher starts."""

    status: int
    """Written: JSON documents `{"child-pid": …}` and `{"exit-code": …}`."""
    files: Mapping[str, int]
    """Target path inside → readable descriptor with its content, for each of `small_files(profile)`."""
    seccomp: int | None = None


def small_files(profile: SandboxProfile) -> Mapping[str, bytes]:
    """The files that we write ourselves, those of /etc and the profile's own: path inside → content."""
    return {**{path: text.encode() for path, text in _SMALL_FILES.items()}, **profile.files}


def bwrap_argv(profile: SandboxProfile, fds: PassedFds) -> list[str]:
    """Bubblewrap's options (neither the program nor the command), in the order in which it mounts."""
    argv = ["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    if profile.disable_userns:
        argv.append("--disable-userns")
    argv += ["--uid", str(SANDBOX_ID), "--gid", str(SANDBOX_ID), "--cap-drop", "ALL", "--hostname", "sandbox"]
    argv += _environment(profile)
    argv += _system(profile, fds)
    argv += _memory(profile.tmpfs_bytes)
    for path, target in profile.links.items():
        argv += ["--symlink", target, path]
    for bind in profile.binds:
        argv += _mounted(bind)
    for folder in profile.hidden:
        argv += _covered(folder)
    # Without these two, / and /dev are writable memory without a cap.
    argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", profile.workspace]
    argv += ["--json-status-fd", str(fds.status)]
    if fds.seccomp is not None:
        argv += ["--seccomp", str(fds.seccomp)]
    return argv


def _mounted(bind: Bind) -> list[str]:
    if bind.layer:
        return ["--overlay-src", bind.source, "--overlay", f"{bind.layer}/upper", f"{bind.layer}/work", bind.target]
    return ["--bind" if bind.writable else "--ro-bind", bind.source, bind.target]


def _environment(profile: SandboxProfile) -> list[str]:
    values = {
        "PATH": profile.path,
        "HOME": HOME,
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "TMPDIR": "/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_SYSTEM": GITCONFIG,  # a git that is installed elsewhere looks for another file
        # The home is shared by the items of a session: none may leave code there for the next one's interpreter.
        "PYTHONNOUSERSITE": "1",
        # 1 means "the parent is init": any other value starts a poller that ends the kernel inside a pid namespace.
        "JPY_PARENT_PID": "1",
        # One thread a kernel: forking a process that has started OpenBLAS's threads is undefined.
        "OPENBLAS_NUM_THREADS": "1",
        **profile.environment,
    }
    return ["--clearenv", *(word for name, value in values.items() for word in ("--setenv", name, value))]


def _system(profile: SandboxProfile, fds: PassedFds) -> list[str]:
    argv = ["--ro-bind", "/usr", "/usr"]
    for folder, target in profile.system_folders.items():
        argv += ["--ro-bind", folder, folder] if target is None else ["--symlink", target, folder]
    for name in _ETC:
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for folder in _SYSTEM_DATA:
        argv += ["--ro-bind-try", folder, folder]
    for path, fd in fds.files.items():
        argv += ["--ro-bind-data", str(fd), path]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    # Process 1 is bubblewrap's own, and of the scripts' user: who may write its memory makes it outlive its parent.
    return [*argv, *_covered("/proc/1")]


def _covered(folder: str) -> list[str]:
    """An empty, read-only folder in the place of one."""
    return ["--size", "4096", "--perms", "0555", "--tmpfs", folder, "--remount-ro", folder]


def _memory(total: int) -> list[str]:
    """tmpfs under a cap each: bubblewrap's default is half of the machine's memory, for every one."""
    quarter = str(max(total // 4, 1 << 20))
    argv = ["--size", quarter, "--perms", "1777", "--tmpfs", "/dev/shm"]
    argv += ["--size", str(total), "--perms", "1777", "--tmpfs", "/tmp"]
    argv += ["--size", quarter, "--perms", "0755", "--tmpfs", "/home", "--perms", "0700", "--dir", HOME]
    return [*argv, "--dir", "/run", "--dir", "/var/tmp"]


def mountpoints_between(outer: str, inner: str) -> list[str]:
    """Folders strictly between `outer` and `inner`, outermost first.

    A mountpoint cannot be renamed, its parent can: `mv a b; mkdir a` would put a writable folder where a read-only one was.
    So each folder on the way to a protected path becomes a mountpoint of its own.
    """
    folders = [str(parent) for parent in PurePosixPath(inner).parents]
    between = [folder for folder in folders if folder != outer and PurePosixPath(folder).is_relative_to(outer)]
    return between[::-1]
