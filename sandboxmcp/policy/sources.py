"""Where the packs in force come from: the settings, the user's folder, the project, and Claude Code's own settings files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from sandboxmcp.core.resources import data_folder
from sandboxmcp.core.settings import PROJECT_FILES, Settings, config_folder
from sandboxmcp.policy.claude_permissions import claude_files, claude_packs
from sandboxmcp.policy.engine import load_engine, project_packs
from sandboxmcp.policy.judge import Engine
from sandboxmcp.policy.packs.pack import load_pack
from sandboxmcp.policy.paths import Places
from sandboxmcp.policy.programs.addresses import address_rules
from sandboxmcp.policy.secrets.credential_files import masked_copy
from sandboxmcp.policy.secrets.redactor import Redactor

PROJECT_FOLDER = ".sandboxmcp/policies"
"""Of a project; all packs in it count, and may only tighten."""
_SECRETS = "secrets"


def user_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where a pack of the user's is looked for by name, before the shipped ones."""
    return config_folder(os.environ if environ is None else environ) / "policies"


def engine_of(settings: Settings, environ: Mapping[str, str] | None = None) -> Engine:
    """The engine that is in force for the settings' workspace.

    Raises:
        BrokenPack: a pack, or a settings file of Claude Code, cannot be used; names file and line.
    """
    environ = os.environ if environ is None else environ
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    workspace = settings.workspace
    imported = claude_packs(claude_files(home, workspace)) if settings.claude_permissions else ()
    return load_engine(
        settings.policy_packs,
        [user_folder(environ)],
        project=workspace / PROJECT_FOLDER,
        imported=imported,
        places=Places(os.path.abspath(workspace), os.path.abspath(home), _usable(settings.network.allow_private)),
    )


def _usable(allow_private: tuple[str, ...]) -> tuple[str, ...]:
    """The entries that are addresses, networks or names; what is wrong with the others the broker says when it starts."""
    try:
        address_rules(allow_private)
    except ValueError:
        return ()
    return allow_private


def files_of(engine: Engine, settings: Settings, project: Path, environ: Mapping[str, str] | None = None) -> list[str]:
    """Every file and folder that an engine of these settings depends on, whether it is there or not.

    `project`: the folder whose settings files were read.
    """
    environ = os.environ if environ is None else environ
    home, workspace = Path(environ.get("HOME") or os.path.expanduser("~")), settings.workspace
    settings_files = [config_folder(environ) / "sandboxmcp.toml", *(project / name for name in PROJECT_FILES)]
    folders = [user_folder(environ), workspace / PROJECT_FOLDER, data_folder("policies"), Path(__file__).parent]
    packs = [pack.file for pack in engine.packs]
    return [str(file) for file in (*settings_files, *folders, *claude_files(home, workspace), *packs)]


def redactor_of(settings: Settings, environ: Mapping[str, str] | None = None) -> Redactor:
    """What masks credentials: the shipped shapes, and those in the packs of the settings and of the project.

    Raises:
        BrokenPack: one of these packs cannot be read; then nothing is kept rather than kept unmasked.
    """
    folders = (user_folder(environ), data_folder("policies"))
    named = [folder / f"{name}.toml" for name in settings.policy_packs for folder in folders]
    files = [folders[1] / f"{_SECRETS}.toml", *(file for file in named if file.exists())]
    files += [Path(name) for name in settings.policy_packs if "/" in name or name.endswith(".toml")]
    files += project_packs(settings.workspace / PROJECT_FOLDER)
    return Redactor([shape for file in dict.fromkeys(files) if _may_hold_shapes(file) for shape in load_pack(file).secrets])


def masker_of(settings: Settings, redactor: Callable[[], Redactor] | None = None) -> Callable[[str, bytes], bytes]:
    """What of a file of secrets scripts are shown: its name and content to a masked copy of equal length.

    The `redactor` (by default that of the settings) is first built when there is such a file; BrokenPack is raised then.
    """
    shapes = cache(redactor or partial(redactor_of, settings))
    return lambda name, data: masked_copy(name, data, shapes())


def shipped_redactor() -> Redactor:
    """What masks the credentials of the shipped shapes alone."""
    return Redactor(load_pack(data_folder("policies") / f"{_SECRETS}.toml").secrets)


def _may_hold_shapes(file: Path) -> bool:
    """Whether a pack speaks of secrets at all: reading the rules of a large one takes a while."""
    try:
        return b"[[secret]]" in file.read_bytes()
    except OSError:
        return True
