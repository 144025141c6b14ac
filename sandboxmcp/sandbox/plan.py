"""From the settings and this machine to the plan of a sandbox: which folders, in which order, which of them read-only."""

from __future__ import annotations

import marshal
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.settings import Settings
from sandboxmcp.sandbox.bwrap import (
    GIT_SETTINGS,
    GITCONFIG,
    GUEST,
    SHIM_CODE,
    SHIM_INTERPRETER,
    SHIMS,
    Bind,
    SandboxProfile,
    mountpoints_between,
)
from sandboxmcp.sandbox.installations import Interpreter, outermost, path_of, running_interpreter, tool_folders
from sandboxmcp.sandbox.overlay.layer import layer_of, prepare
from sandboxmcp.sandbox.protection import Protection, look_at
from sandboxmcp.sandbox.repositories.git_exec_paths import settings_in, user_settings
from sandboxmcp.sandbox.repositories.git_folder import outside_folders
from sandboxmcp.sandbox.repositories.watch import Repositories
from sandboxmcp.sandbox.workspace.git_masks import FILTER_SETTINGS, filter_files
from sandboxmcp.sandbox.workspace.location import checked_workspace
from sandboxmcp.sandbox.workspace.masked_copies import MaskedCopies, Masker, blank, certain
from sandboxmcp.sandbox.workspace.masked_paths import Covered, Secret, covered, sockets_of_host
from sandboxmcp.sandbox.workspace.pinned import moved, pin
from sandboxmcp.sandbox.workspace.protected_paths import PROTECTED

_PACKAGE = Path(__file__).resolve().parent.parent
_MOST_BINDS = 2_500
"""Bubblewrap takes 9,000 arguments, three for each."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One sandbox before it starts."""

    profile: SandboxProfile
    interpreter: Interpreter
    protection: Protection
    masked: MaskedCopies
    """What stands in for files of secrets; whoever has the plan removes them at the end."""
    written: Path
    """Where on the host that lands which scripts write in the workspace."""
    layer: Path | None = None
    """Of the overlay, where there is one."""
    sockets: frozenset[str] = frozenset()
    """On which programs of the host listened in the workspace when this was made; those that can be found are covered."""


def plan_sandbox(
    settings: Settings, brokered: Collection[str] = (), environment: Mapping[str, str] | None = None, mask: Masker = blank
) -> Plan:
    """The plan for the workspace in force.

    `brokered`: programs whose names lead to the shim inside; `environment`: variables that scripts have beside ours; `mask`: what
    of a file of secrets is shown.

    Raises:
        UsageError: the workspace may not be one.
    """
    workspace = checked_workspace(settings.workspace)
    interpreter = running_interpreter(workspace)
    mode: str = settings.workspace_mode
    git_writable = mode == "overlay" or (mode == "rw" and settings.git == "rw")
    protection = look_at(workspace, (*PROTECTED, *_obeyed(settings, str(workspace))), git_writable=git_writable)
    sockets, hide = sockets_of_host(workspace), covered(workspace)
    tools = tool_folders(settings.tool_folders)
    hidden = _hidden(str(workspace), settings.data_dir)
    if mode == "rw":
        protection = replace(protection, repositories=Repositories(workspace))
    layer = prepare(layer_of(settings.data_dir, workspace), workspace) if mode == "overlay" else None
    view = Bind(str(workspace), str(workspace), writable=mode != "ro", layer=str(layer or ""))
    hidden += hide.unseen
    outside = outside_folders(workspace)
    secrets = (*hide.secrets, *moved(workspace, hide), *_settings_outside(outside))
    _require_few(len(certain(secrets)) + len(hidden), hide, protection)
    masked = MaskedCopies.make(workspace, secrets, mask, _places(settings.data_dir))
    pin(workspace, masked.secrets)
    covers = (*(Bind("/dev/null", f"{workspace}/{name}") for name in hide.sockets), *masked.binds)
    installed = outermost((*interpreter.folders, *tools, *outside))
    binds = _binds(view, installed, protection, covers, (*hidden, *masked.known_by_folder))
    try:
        _require_few(len(binds) + len(hidden), hide, protection)
    except UsageError:
        masked.remove()
        raise
    profile = SandboxProfile(
        workspace=str(workspace),
        binds=binds,
        links={**interpreter.links, **_shims(interpreter, brokered)},
        files={
            **({SHIM_CODE: _shim_code()} if brokered else {}),
            GITCONFIG: git_settings(with_filter=bool(masked.in_worktree), with_user=git_writable),
            **filter_files(str(workspace), masked.in_worktree),
        },
        system_folders=system_folders(),
        hidden=hidden,
        path=":".join([*([SHIMS] if brokered else []), _path(interpreter), *map(path_of, tools)]),
        environment=environment or {},
        tmpfs_bytes=settings.limits.tmpfs,
    )
    written = workspace if layer is None else layer / "upper"
    return Plan(profile, interpreter, protection, masked, written, layer, sockets)


def _binds(
    view: Bind, installed: Collection[str], protection: Protection, covers: Collection[Bind], kept: tuple[str, ...] = ()
) -> tuple[Bind, ...]:
    """Installation folders outside the workspace, the workspace over them, and over that what inside it stays read-only.

    `kept`: paths whose folders must keep their places. Where nothing is written to the workspace itself, no folder of it need be a
    mountpoint: nothing of the host's can be moved.
    """
    workspace = view.target
    outside = [folder for folder in installed if not _within(folder, workspace)]
    inside = {folder for folder in (*installed, *_our_own_code()) if _within(folder, workspace)}
    unusual = protection.repositories.protected if protection.repositories is not None else ()
    read_only = sorted(inside | {f"{workspace}/{name}" for name in (*protection.existing, *unusual)})
    movable = {f"{workspace}/{name}" for name in protection.mountpoints}
    movable |= {folder for path in (*read_only, *kept) for folder in mountpoints_between(workspace, path)}
    binds = [Bind(folder, folder) for folder in outside]
    binds.append(view)
    binds += [Bind(folder, folder, writable=True) for folder in sorted(movable) if view.writable and not view.layer]
    binds += [Bind(path, path) for path in read_only]
    binds += covers
    binds.append(Bind(str(data_folder("kernels") / "guest"), GUEST))
    return tuple(binds)


def _require_few(count: int, hide: Covered, protection: Protection) -> None:
    """Raises: UsageError, bubblewrap takes no such number of mounts."""
    if count > _MOST_BINDS:
        such = ", ".join((*(one.path for one in hide.secrets), *hide.sockets, *hide.unseen, *protection.existing)[:3])
        raise UsageError(
            f"{count:,} paths of the workspace are to be covered or protected, such as {such}; {_MOST_BINDS:,} can be",
            "Remove files that only look like secrets, or choose a smaller folder.",
        )


def _places(data: Path) -> list[Path]:
    """Where masked copies may lie, the best first: in memory, else on the disk."""
    return [Path(place) for place in (os.environ.get("XDG_RUNTIME_DIR"), "/tmp", "/dev/shm") if place] + [data]


def _obeyed(settings: Settings, workspace: str) -> list[str]:
    """Files of the workspace that the user's settings name and the next start obeys: packs, and certificates that are trusted."""
    named = [os.path.realpath(os.path.expanduser(one)) for one in (*settings.policy_packs, settings.network.authorities or "")]
    return [os.path.relpath(path, workspace) for path in named if _within(path, workspace) and os.path.isfile(path)]


def _hidden(workspace: str, data: Path) -> tuple[str, ...]:
    """Our store, where it lies in the workspace: scripts are not to read other captures, or write their own past."""
    data_dir = os.path.realpath(data)
    if _within(workspace, data_dir):
        raise UsageError(f"the workspace {workspace} lies in the data folder {data_dir}", "Choose another one for either.")
    return (data_dir,) if _within(data_dir, workspace) and os.path.isdir(data_dir) else ()


def git_settings(*, with_filter: bool, with_user: bool) -> bytes:
    """git's settings for the machine inside: what keeps masks out of commits, and the user's name and address to commit under."""
    text = GIT_SETTINGS + (FILTER_SETTINGS if with_filter else "")
    if with_user:
        found = {key: value for file in user_settings() for key, value in settings_in(file) if key in ("user.name", "user.email")}
        lines = [f"\t{key.removeprefix('user.')} = {_quoted(value)}\n" for key, value in found.items()]
        text += "".join(["[user]\n", *lines] if lines else [])
    return text.encode(errors="surrogateescape")


def _settings_outside(folders: Collection[str]) -> list[Secret]:
    """Files of git's settings in repositories outside the workspace, which may hold tokens; whole paths."""
    found = list[str]()
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = [name for name in below if name not in ("objects", "refs", "logs", "hooks")]
            found += [os.path.join(place, name) for name in names if name in ("config", "config.worktree")]
    return [Secret(path, ".git/config") for path in found]


def _quoted(value: str) -> str:
    """As git-config(1) has it."""
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'


def _shims(interpreter: Interpreter, brokered: Collection[str]) -> dict[str, str]:
    links = {f"{SHIMS}/{name}": f"{GUEST}/shims/start.py" for name in brokered}
    return {**links, SHIM_INTERPRETER: interpreter.executable} if links else {}


@cache
def _shim_code() -> bytes:
    """The shim compiled, for the interpreter that runs us, which is also the one inside."""
    return marshal.dumps(compile((data_folder("kernels") / "guest/shims/shim.py").read_bytes(), "shim.py", "exec"))


def _our_own_code() -> list[str]:
    """What the next start of the server would run, or obey: a sandbox in our own checkout must not rewrite its warden."""
    return [str(_PACKAGE), str(data_folder("kernels")), str(data_folder("policies"))]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def system_folders() -> dict[str, str | None]:
    """The top-level folders beside /usr: links into it on a merged-/usr system, folders of their own elsewhere."""
    found: dict[str, str | None] = {}
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = f"/{name}"
        if os.path.islink(path):
            found[path] = os.readlink(path)
        elif os.path.isdir(path):
            found[path] = None
    return found


def _path(interpreter: Interpreter) -> str:
    """Our interpreter's commands come last: a script that says `python3` means the machine's, where there is one."""
    return f"/usr/local/bin:/usr/bin:/bin:{interpreter.scripts}"
