"""One frozen value from defaults < user file < project file < environment < flags; the table is what the docs print."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.safe_open import read_regular
from sandboxmcp.core.setting_values import (
    MODES,
    choice,
    fewer,
    folder,
    names,
    never,
    only_off,
    only_on,
    private_names,
    seconds,
    size,
    smaller,
    stricter,
    switch,
    whole_number,
)

_Value = TypeVar("_Value")

PROJECT_FILES = ("sandboxmcp.toml", ".sandboxmcp/sandboxmcp.toml")
"""Where a project's settings lie, the later winning."""
PREFIX = "SANDBOXMCP_"
"""Of the settings' variables."""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its dotted name, how text becomes a value, its default and what it is for."""

    name: str
    parse: Callable[[Any], Any]
    default: Any
    doc: str
    tighten: Callable[[Any, Any], bool] | None = None
    """For security settings: may a project file replace the first value by the second? None: any project may."""
    path: tuple[str, ...] = ()
    """The fields that lead to it in Settings."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper().replace(".", "_")

    def value_in(self, settings: Settings) -> object:
        """Its value in some settings."""
        found: object = settings
        for name in self.path:
            found = getattr(found, name)
        return found


def setting(
    parse: Callable[[Any], _Value], default: _Value, doc: str, tighten: Callable[[Any, Any], bool] | None = None, name: str = ""
) -> _Value:
    """A field that is a setting; see Key. `name`: its name where that is not the field's."""
    said = {"parse": parse, "doc": doc, "tighten": tighten, "name": name}
    found: _Value = field(default=default, metadata=said)
    return found


@dataclass(frozen=True, slots=True)
class Limits:
    """What scripts may use."""

    output: int = setting(size, 1 << 30, "bytes kept of one captured stream; the rest is counted", smaller)
    memory: int = setting(size, 2 << 30, "bytes of memory of one sandbox", smaller)
    processes: int = setting(whole_number(16, 32_768), 256, "processes and threads of one sandbox", smaller)
    descriptors: int = setting(whole_number(64, 1_048_576), 1_024, "open files of one process", smaller)
    tmpfs: int = setting(size, 1 << 30, "bytes of /tmp; home and /dev/shm get a quarter each", smaller)
    workspace: int = setting(size, 4 << 30, "bytes that the workspace may grow by while scripts run", smaller)
    files: int = setting(whole_number(100, 100_000_000), 200_000, "new files in the workspace, and files in /tmp", smaller)
    cpu: int = setting(whole_number(1, 10_000_000), 3_600, "seconds of processor time of one process", smaller)
    file: int = setting(size, 4 << 30, "bytes of one file that a script writes", smaller)


@dataclass(frozen=True, slots=True)
class Network:
    """What brokered programs may reach and use."""

    allow_private: tuple[str, ...] = setting(
        private_names, (), "private addresses, networks or names that brokered programs may reach", never
    )
    domains: tuple[str, ...] = setting(
        names, (), "the only domains, with all below them, that may be reached; unset: any public one", fewer
    )
    authorities: Path | None = setting(folder, None, "file of certificates that are trusted beside the machine's own, PEM", never)
    requests: int = setting(whole_number(0, 1_000_000), 1_000, "brokered requests of one session; 0: none", smaller)
    bytes: int = setting(size, 4 << 30, "bytes that brokered programs of one session may send and receive", smaller)
    size: int = setting(size, 1 << 30, "bytes of one brokered answer", smaller)
    time_s: float = setting(seconds, 300.0, "seconds of one brokered request", smaller)


@dataclass(frozen=True, slots=True)
class Capture:
    """How captured output is kept."""

    raw: bool = setting(switch, False, "also keep what was captured before credentials in it were masked, mode 0600", only_off)


@dataclass(frozen=True, slots=True)
class Index:
    """How much of a capture is indexed."""

    head: int = setting(size, 32 << 20, "bytes from the start of a capture that are indexed")
    tail: int = setting(size, 32 << 20, "bytes from the end of a capture that are indexed")


@dataclass(frozen=True, slots=True)
class Search:
    """How passages are ordered."""

    semantic: bool = setting(switch, False, "order the best passages by meaning too; needs the extra [semantic]")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long is kept what was stored."""

    captures: int = setting(whole_number(0, 36_500), 14, "days that captured outputs are kept; 0: until they are deleted")
    pages: int = setting(whole_number(0, 36_500), 14, "days that fetched pages are kept; 0: until they are deleted")
    journal: int = setting(whole_number(0, 36_500), 90, "days that the journal keeps what was run; 0: until it is deleted")


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force. Each field is one setting, or a group of them: the field is the one place where a setting is written."""

    chosen_data_dir: Path | None = setting(
        folder, None, "folder of the store and the captures; default: the platform's data folder", never, name="data_dir"
    )
    chosen_workspace: Path | None = setting(
        folder, None, "project folder, writable inside the sandbox; default: the working folder", never, name="workspace"
    )
    workspace_mode: str = setting(
        choice(*MODES), "rw", "what scripts may do to the project: rw; ro; overlay (changes are kept aside)", stricter
    )
    git: str = setting(
        choice("ro", "rw"),
        "ro",
        "what scripts may do to the project's git repository: ro; rw (commit, fetch, stash; never its settings and hooks)",
        stricter,
    )
    ingest_roots: tuple[str, ...] = setting(
        names, (), "more folders that ctx_index may read; relative ones resolve against the project", never
    )
    policy_packs: tuple[str, ...] = setting(names, ("default",), "packs by name or path; the strictest verdict of all wins", never)
    claude_permissions: bool = setting(switch, True, "what Claude Code's settings deny or want asked holds in kernels too", only_on)
    kernelspecs: tuple[str, ...] = setting(
        names, (), "installed Jupyter kernelspecs that may run too, in the sandbox, by name", never
    )
    tool_folders: tuple[str, ...] = setting(
        names, (), "installations outside /usr, such as a Rust toolchain: inside read-only, last on PATH", never
    )
    preload: tuple[str, ...] = setting(names, (), "Python modules that kernels have imported before they start, such as numpy")
    kernel_start_s: float = setting(seconds, 30.0, "seconds in which a kernel must answer after its start")
    kernel_idle_s: float = setting(seconds, 3_600.0, "seconds after which a named kernel that nobody uses is ended")
    budget_tokens: int = setting(whole_number(50, 1_000_000), 2_000, "tokens of a rendered answer")
    structured_content: str = setting(
        choice("auto", "always", "never"),
        "auto",
        "facts as JSON beside an answer's text; auto: not for clients that would show the model nothing else",
    )
    timeout_s: float = setting(seconds, 120.0, "wall time of one item")
    journal: bool = setting(switch, True, "keep what was run, with its code, for `sandboxmcp log`", only_off)
    concurrency: int = setting(whole_number(0, 8), 0, "items of a batch that run at once; 0: as many as cores")
    limits: Limits = Limits()
    network: Network = Network()
    capture: Capture = Capture()
    index: Index = Index()
    search: Search = Search()
    retention: Retention = Retention()

    def __getitem__(self, name: str) -> object:
        """The value of a setting whose dotted name is known at run time only."""
        return _BY_NAME[name].value_in(self)

    @property
    def data_dir(self) -> Path:
        """Folder of the store; every path of ours on disk is derived from it."""
        if self.chosen_data_dir is not None:
            return self.chosen_data_dir
        from platformdirs import user_data_path

        return user_data_path("sandboxmcp", appauthor=False)

    @property
    def workspace(self) -> Path:
        """The project folder."""
        return self.chosen_workspace if self.chosen_workspace is not None else _working_folder()


def _keys_of(group: type[Any], path: tuple[str, ...] = ()) -> Iterator[Key]:
    for one in fields(group):
        if is_dataclass(one.default):
            yield from _keys_of(type(one.default), (*path, one.name))
        else:
            said = one.metadata
            yield Key(
                ".".join((*path, said["name"] or one.name)),
                said["parse"],
                one.default,
                said["doc"],
                said["tighten"],
                (*path, one.name),
            )


KEYS: tuple[Key, ...] = tuple(_keys_of(Settings))
"""All settings, in the order in which the docs print them."""
_BY_NAME = {key.name: key for key in KEYS}


def _settings_of(values: Mapping[str, Any]) -> Settings:
    """From parsed values by dotted name."""
    flat: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        *groups, last = _BY_NAME[name].path
        (grouped.setdefault(groups[0], {}) if groups else flat)[last] = value
    return Settings(**flat, **{name: replace(getattr(_DEFAULTS, name), **one) for name, one in grouped.items()})


_DEFAULTS = Settings()


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    project: Path | None = None,
) -> Settings:
    """The settings in force for a project (default: the working folder).

    `flags` maps dotted names to values and wins; None values are skipped. A blank variable counts as unset.

    Raises:
        UsageError: a file does not parse, a key is unknown, a value is bad, or a project file loosens a security setting.
    """
    environ = os.environ if environ is None else environ
    project = _working_folder() if project is None else project
    values: dict[str, Any] = {key.name: key.default for key in KEYS}
    _merge_file(values, _user_file(environ), trusted=True)
    for name in PROJECT_FILES:
        _merge_file(values, project / name, trusted=False)
    for key in KEYS:
        text = environ.get(key.variable, "")
        if text.strip():
            values[key.name] = _parsed(key, text, f"variable {key.variable}")
    for name, value in (flags or {}).items():
        if value is not None:
            values[name] = _parsed(_BY_NAME[name], value, f"flag --{name.replace('_', '-').replace('.', '-')}")
    return _settings_of(values)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working folder is gone", "Change into one that exists.") from None


def config_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's own settings and packs lie."""
    base = environ.get("XDG_CONFIG_HOME", "").strip() or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return Path(base) / "sandboxmcp"


def _user_file(environ: Mapping[str, str]) -> Path:
    return config_folder(environ) / "sandboxmcp.toml"


def _merge_file(values: dict[str, Any], file: Path, *, trusted: bool) -> None:
    try:
        raw = read_regular(file)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "Make it a readable file or remove it.") from None
    try:
        table = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}", "Mend the file.") from None
    for name, value in flatten(table):
        key = _BY_NAME.get(name)
        if key is None:
            from sandboxmcp.core.did_you_mean import nearest

            near = nearest(name, _BY_NAME)
            hint = f"Did you mean {near!r}? " if near else ""
            raise UsageError(f"{file} sets an unknown key {name!r}", f"{hint}Known keys: {', '.join(_BY_NAME)}.")
        parsed = _parsed(key, value, f"key {name!r} in {file}")
        if not trusted and key.tighten is not None and not key.tighten(values[name], parsed):
            what = (
                "sets {!r}, which a project may not set"
                if key.tighten is never
                else "loosens {!r}, which a project may only tighten"
            )
            raise UsageError(f"{file} {what.format(name)}", "Set it in your own settings file instead.")
        values[name] = parsed


_DEMANDED = (stricter, smaller)
"""Of these settings two values always have a stricter one, whatever was said first."""


def demand(name: str, value: Any) -> Any:
    """The value that a policy pack demands of a setting.

    Raises:
        ValueError: no pack may say anything of the setting, or the value is none.
    """
    key = _BY_NAME.get(name)
    if key is None or key.tighten not in _DEMANDED:
        known = ", ".join(key.name for key in KEYS if key.tighten in _DEMANDED)
        raise ValueError(f"is no setting that a pack may tighten, which are {known}")
    try:
        return key.parse(value)
    except ValueError as error:
        raise ValueError(f"{error}, not {value!r}") from None


def tightened(settings: Settings, demands: Iterable[tuple[str, Any]]) -> Settings:
    """The settings with what policy packs demand, the stricter value of each; nothing of it can loosen them."""
    values = {key.name: settings[key.name] for key in KEYS}
    for name, value in demands:
        tighten = _BY_NAME[name].tighten
        if tighten is not None and tighten(values[name], value):
            values[name] = value
    return _settings_of(values)


def flatten(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Dotted names and values of nested tables."""
    flat: list[tuple[str, Any]] = []
    for name, value in table.items():
        flat += flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return flat


def _parsed(key: Key, value: Any, where: str) -> Any:
    try:
        return key.parse(value)
    except ValueError as error:
        raise UsageError(f"{where} {error}, not {value!r}") from None


_NO_SETTINGS = frozenset({"SANDBOXMCP_GOLDEN", "SANDBOXMCP_SANDBOX", "SANDBOXMCP_SOAK"})
"""Variables of our own tests."""


def misspelt_variables(environ: Mapping[str, str]) -> list[str]:
    """A sentence for each variable that is called like a setting of ours and is none; blank ones count as unset."""
    known = {key.variable for key in KEYS} | _NO_SETTINGS
    unknown = sorted(name for name, value in environ.items() if name.startswith(PREFIX) and name not in known and value.strip())
    return [f"the variable {name[:80]} is no setting and changes nothing{_nearest(name)}" for name in unknown]


def _nearest(name: str) -> str:
    from sandboxmcp.core.did_you_mean import nearest

    near = nearest(name.removeprefix(PREFIX), (key.variable.removeprefix(PREFIX) for key in KEYS))
    return f"; did you mean {PREFIX}{near}?" if near else "; sandboxmcp help settings lists those there are"
