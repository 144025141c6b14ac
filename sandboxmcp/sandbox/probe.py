"""The probe: whether this machine gives us a sandbox, found by building one, wall by wall. The first that fails names the remedy.

The outcome is decided by whether a program ran inside, never by the words of an error: bubblewrap's messages change between
versions. Words only help to choose among remedies.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandboxmcp.core.errors import SandboxmcpError
from sandboxmcp.core.settings import Settings
from sandboxmcp.sandbox.cgroup import make_control_group
from sandboxmcp.sandbox.locate import bubblewraps
from sandboxmcp.sandbox.seccomp import filter_program

if TYPE_CHECKING:
    from sandboxmcp.sandbox.process import SandboxProcess

_TIMEOUT_S = 5.0
_BASE = ("--unshare-user", "--ro-bind", "/", "/")
_STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("user namespace", ()),
    ("network namespace", ("--unshare-net",)),
    ("process namespace", ("--unshare-pid", "--proc", "/proc")),
    ("no further namespaces", ("--unshare-pid", "--proc", "/proc", "--disable-userns")),
)
"""Each adds one wall to a throw-away sandbox around `true`."""

_APPARMOR = (
    "Ubuntu's AppArmor forbids it: install the profile with `apt install apparmor-profiles && cp "
    "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && apparmor_parser -r "
    "/etc/apparmor.d/bwrap-userns-restrict`, or as a last resort `sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
)
_CONTAINER = (
    "A container's seccomp profile or a chroot forbids it: run the container with `--security-opt seccomp=unconfined`, "
    "or leave the chroot; on old Debian kernels `sysctl kernel.unprivileged_userns_clone=1`."
)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    name: str
    ok: bool
    detail: str
    """What was found: a version, a path, or what went wrong in one line."""
    fix: str = ""
    """What to do when it is not ok."""
    optional: bool = False
    """Whether all is well without it."""


def probe_sandbox(settings: Settings) -> tuple[Check, ...]:
    """Every check in order, up to the first that fails."""
    checks: list[Check] = []
    steps: Sequence[Callable[[], Check]] = (
        _platform,
        _program,
        *(_wall(name, options) for name, options in _STEPS),
        _call_filter,
        lambda: _whole(settings),
        lambda: _control_group(settings),
    )
    for step in steps:
        checks.append(step())
        if not checks[-1].ok:
            break
    return tuple(checks)


def _platform() -> Check:
    ok = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    detail = f"{platform.system()} {platform.release()} on {platform.machine()}"
    return Check("platform", ok, detail, "" if ok else "Execution needs Linux (or WSL 2) on x86_64 or aarch64.")


def _program() -> Check:
    found = bubblewraps()
    if not found:
        fix = "Install it: `apt install bubblewrap` (or dnf, pacman, apk), or `pip install 'sandboxmcp[bwrap]'`."
        return Check("bubblewrap", False, "not installed", fix)
    run = _run([found[0], "--version"])
    return Check("bubblewrap", run.code == 0, f"{found[0]}, {run.said}", "" if run.code == 0 else "Install bubblewrap anew.")


def _wall(name: str, options: tuple[str, ...]) -> Callable[[], Check]:
    def step() -> Check:
        run = _run([bubblewraps()[0], *_BASE, *options, "--", "/usr/bin/true"])
        return Check(name, run.code == 0, "works" if run.code == 0 else run.said, "" if run.code == 0 else _remedy(run.said))

    return step


def _call_filter() -> Check:
    """The walls again with the system-call filter, around a program that the filter must stop."""
    name = "system-call filter"
    filter_fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    try:
        os.write(filter_fd, filter_program(platform.machine()))
        stopped = _filtered(filter_fd, "/usr/bin/unshare", "--user", "/usr/bin/true")
        started = _filtered(filter_fd, "/usr/bin/true")
    finally:
        os.close(filter_fd)
    if started.code != 0:
        return Check(name, False, started.said, _CONTAINER)
    if stopped.code == 0:
        return Check(name, False, "a refused call went through", "Report this: no code is run meanwhile.")
    return Check(name, True, "works")


def _filtered(filter_fd: int, *command: str) -> _Run:
    os.lseek(filter_fd, 0, os.SEEK_SET)
    return _run([bubblewraps()[0], *_BASE, "--seccomp", str(filter_fd), "--", *command], (filter_fd,))


def _control_group(settings: Settings) -> Check:
    """Not a wall: without one, memory is watched instead of limited."""
    group = make_control_group(settings.limits.memory, settings.limits.processes)
    if group is None:
        return Check("control group", True, "none can be made here: memory is watched from outside instead")
    group.remove()
    return Check("control group", True, f"version 2, below {group.folder.parent}")


def _whole(settings: Settings) -> Check:
    """The real profile with the real filter, started as the server starts it, and looked at from inside."""
    from sandboxmcp.sandbox.plan import plan_sandbox
    from sandboxmcp.sandbox.process import start_sandbox

    script = "grep -q '^Seccomp:.2' /proc/self/status && test \"$(id -u)\" = 1000 && ! test -w /usr"
    name = "whole sandbox"
    try:
        plan = plan_sandbox(settings)
        profile = plan.profile
        try:
            process = start_sandbox(profile, ["/bin/sh", "-c", script])
            code = _exit_code(process)
        except subprocess.TimeoutExpired:
            return Check(name, False, f"no answer within {_TIMEOUT_S:g} s", "Try again on a less busy machine; else report this.")
        finally:
            plan.masked.remove()
    except SandboxmcpError as error:
        return Check(name, False, error.what, error.fix)
    detail = (
        f"works in {profile.workspace}"
        if code == 0
        else f"the walls inside are not what they should be (code {code}) {process.log}"
    )
    return Check(name, code == 0, detail, "" if code == 0 else "Report this: no code is run meanwhile.")


def _exit_code(process: SandboxProcess) -> int:
    """Its exit code. Raises: subprocess.TimeoutExpired, it did not end, and has been killed."""
    try:
        return process.wait(_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.end()
        raise


@dataclass(frozen=True, slots=True)
class _Run:
    code: int
    said: str


def _run(argv: list[str], fds: tuple[int, ...] = ()) -> _Run:
    env = {"PATH": "/usr/bin:/bin"}
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_TIMEOUT_S, env=env, pass_fds=fds, check=False)
    except subprocess.TimeoutExpired:
        return _Run(-1, f"no answer within {_TIMEOUT_S:g} s")
    except OSError as error:
        return _Run(-1, error.strerror or str(error))
    said = (done.stdout + done.stderr).decode(errors="replace").strip().replace("\n", "; ")
    return _Run(done.returncode, said or f"exit code {done.returncode}")


def _remedy(said: str) -> str:
    """What to do about a wall that could not be built: by the machine's own switches first, then by the words."""
    if _switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" and os.geteuid() != 0:
        return _APPARMOR
    if _switch("/proc/sys/user/max_user_namespaces") == "0" or "ENOSPC" in said or "No space left on device" in said:
        return (
            "Too few namespaces are allowed: `sysctl user.max_user_namespaces=10000`; do not nest in a sandbox that forbids them."
        )
    if _switch("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return "`sysctl kernel.unprivileged_userns_clone=1`."
    if "RTM_NEWADDR" in said or "RTM_NEWLINK" in said or "uid map: Permission denied" in said:
        return _APPARMOR
    if "mount proc" in said:
        return "/proc is masked by a container: run it with `--security-opt systempaths=unconfined`."
    if "uid map: Read-only" in said:
        return "The outer sandbox has /proc read-only: it must mount a /proc of its own."
    if "Resource temporarily unavailable" in said:
        return "The limit on processes is reached: raise `ulimit -u`."
    return _CONTAINER


def _switch(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
