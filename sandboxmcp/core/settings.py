"""One frozen value from defaults < user file < project file < environment < flags; the table is what the docs print."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.safe_open import read_regular

PROJECT_FILES = ("sandboxmcp.toml", ".sandboxmcp/sandboxmcp.toml")
"""Where a project's settings lie, the later winning."""
PREFIX = "SANDBOXMCP_"
"""Of the settings' variables."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: its dotted name, how text becomes a value, its default and what it is for."""

    name: str
    parse: Callable[[Any], Any]
    default: Any
    doc: str
    tighten: Callable[[Any, Any], bool] | None = None
    """For security settings: may a project file replace the first value by the second? None: any project may."""

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper().replace(".", "_")


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"wants a whole number from {low:,} to {high:,}")
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"wants a whole number from {low:,} to {high:,}") from None
        if not low <= number <= high:
            raise ValueError(f"wants a whole number from {low:,} to {high:,}")
        return number

    return parse


def _seconds(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError("wants seconds, more than 0 and at most 86,400") from None
    if isinstance(value, bool) or not 0 < number <= 86_400:
        raise ValueError("wants seconds, more than 0 and at most 86,400")
    return number


def _size(value: Any) -> int:
    """Bytes, as a number or with a unit: `1073741824`, `"1GiB"`, `"512m"`."""
    match = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", str(value).strip().lower())
    number = 0 if match is None or isinstance(value, bool) else int(match[1]) * _UNITS[match[2]]
    if number <= 0:
        raise ValueError('wants a size above 0, in bytes or with a unit, such as "512MiB"')
    return number


def _private(value: Any) -> tuple[str, ...]:
    """Addresses, networks and host names; what each is, the broker's rules find out when they are made from it."""
    names = _names(value)
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,253}(/\d{1,3})?", name):
            raise ValueError("wants addresses, networks or host names")
    return names


def _switch(value: Any) -> bool:
    """TOML's own true and false, or a text that means one of them."""
    found = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    meant = found.get(str(value).strip().lower())
    if meant is None:
        raise ValueError("wants true or false")
    return meant


def _folder(value: Any) -> Path | None:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("wants a path")
    return Path(os.path.abspath(os.path.expanduser(value))) if value.strip() else None


def _choice(*known: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in known:
            raise ValueError(f"wants one of {', '.join(known)}")
        return str(value)

    return parse


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("wants a list of texts")
    return tuple(value)


_MODES = ("rw", "overlay", "ro")
"""What scripts may write, the most permissive first."""


def _stricter(old: Any, new: Any) -> bool:
    return _MODES.index(new) >= _MODES.index(old)


def _smaller(old: Any, new: Any) -> bool:
    return bool(new <= old)


def _fewer(old: Any, new: Any) -> bool:
    """For a list whose emptiness means everything: a project may only leave entries out."""
    return new == old or bool(new and (not old or set(new) <= set(old)))


def _off(old: Any, new: Any) -> bool:
    return bool(old or not new)


def _on(old: Any, new: Any) -> bool:
    return bool(new or not old)


def _never(old: Any, new: Any) -> bool:
    return bool(old == new)


KEYS: tuple[Key, ...] = (
    Key("data_dir", _folder, None, "folder of the store and the captures; default: the platform's data folder", _never),
    Key("workspace", _folder, None, "project folder, writable inside the sandbox; default: the working folder", _never),
    Key(
        "workspace_mode",
        _choice(*_MODES),
        "rw",
        "what scripts may do to the project: rw; ro; overlay (changes are kept aside)",
        _stricter,
    ),
    Key(
        "git",
        _choice("ro", "rw"),
        "ro",
        "what scripts may do to the project's git repository: ro; rw (commit, fetch, stash; never its settings and hooks)",
        _stricter,
    ),
    Key("ingest_roots", _names, (), "more folders that ctx_index may read; relative ones resolve against the project", _never),
    Key("policy_packs", _names, ("default",), "packs by name or path; the strictest verdict of all wins", _never),
    Key("claude_permissions", _switch, True, "what Claude Code's settings deny or want asked holds in kernels too", _on),
    Key("kernelspecs", _names, (), "installed Jupyter kernelspecs that may run too, in the sandbox, by name", _never),
    Key("tool_folders", _names, (), "installations outside /usr, such as a Rust toolchain: inside read-only, last on PATH", _never),
    Key("preload", _names, (), "Python modules that kernels have imported before they start, such as numpy"),
    Key("kernel_start_s", _seconds, 30.0, "seconds in which a kernel must answer after its start"),
    Key("kernel_idle_s", _seconds, 3_600.0, "seconds after which a named kernel that nobody uses is ended"),
    Key("budget_tokens", _integer(50, 1_000_000), 2_000, "tokens of a rendered answer"),
    Key(
        "structured_content",
        _choice("auto", "always", "never"),
        "auto",
        "facts as JSON beside an answer's text; auto: not for clients that would show the model nothing else",
    ),
    Key("timeout_s", _seconds, 120.0, "wall time of one item"),
    Key("concurrency", _integer(0, 8), 0, "items of a batch that run at once; 0: as many as cores"),
    Key("limits.output", _size, 1 << 30, "bytes kept of one captured stream; the rest is counted", _smaller),
    Key("limits.memory", _size, 2 << 30, "bytes of memory of one sandbox", _smaller),
    Key("limits.processes", _integer(16, 32_768), 256, "processes and threads of one sandbox", _smaller),
    Key("limits.descriptors", _integer(64, 1_048_576), 1_024, "open files of one process", _smaller),
    Key("limits.tmpfs", _size, 1 << 30, "bytes of /tmp; home and /dev/shm get a quarter each", _smaller),
    Key("limits.workspace", _size, 4 << 30, "bytes that the workspace may grow by while scripts run", _smaller),
    Key("limits.files", _integer(100, 100_000_000), 200_000, "new files in the workspace, and files in /tmp", _smaller),
    Key("limits.cpu", _integer(1, 10_000_000), 3_600, "seconds of processor time of one process", _smaller),
    Key("limits.file", _size, 4 << 30, "bytes of one file that a script writes", _smaller),
    Key("network.allow_private", _private, (), "private addresses, networks or names that brokered programs may reach", _never),
    Key("network.domains", _names, (), "the only domains, with all below them, that may be reached; unset: any public one", _fewer),
    Key("network.authorities", _folder, None, "file of certificates that are trusted beside the machine's own, PEM", _never),
    Key("network.requests", _integer(0, 1_000_000), 1_000, "brokered requests of one session; 0: none", _smaller),
    Key("network.bytes", _size, 4 << 30, "bytes that brokered programs of one session may send and receive", _smaller),
    Key("network.size", _size, 1 << 30, "bytes of one brokered answer", _smaller),
    Key("network.time_s", _seconds, 300.0, "seconds of one brokered request", _smaller),
    Key("capture.raw", _switch, False, "also keep what was captured before credentials in it were masked, mode 0600", _off),
    Key("index.head", _size, 32 << 20, "bytes from the start of a capture that are indexed"),
    Key("index.tail", _size, 32 << 20, "bytes from the end of a capture that are indexed"),
    Key("search.semantic", _switch, False, "order the best passages by meaning too; needs the extra [semantic]"),
    Key("retention.captures", _integer(0, 36_500), 14, "days that captured outputs are kept; 0: until they are deleted"),
    Key("retention.pages", _integer(0, 36_500), 14, "days that fetched pages are kept; 0: until they are deleted"),
)
_BY_NAME = {key.name: key for key in KEYS}


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force. `settings["limits.memory"]` reads one; unknown names are a programming error."""

    values: Mapping[str, Any] = field(default_factory=lambda: {key.name: key.default for key in KEYS})

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def data_dir(self) -> Path:
        """Folder of the store; every path of ours on disk is derived from it."""
        chosen: Path | None = self["data_dir"]
        if chosen is not None:
            return chosen
        from platformdirs import user_data_path

        return user_data_path("sandboxmcp", appauthor=False)

    @property
    def workspace(self) -> Path:
        chosen: Path | None = self["workspace"]
        return chosen if chosen is not None else _working_folder()


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
    return Settings(values)


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
                if key.tighten is _never
                else "loosens {!r}, which a project may only tighten"
            )
            raise UsageError(f"{file} {what.format(name)}", "Set it in your own settings file instead.")
        values[name] = parsed


_DEMANDED = (_stricter, _smaller)
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
    values = dict(settings.values)
    for name, value in demands:
        tighten = _BY_NAME[name].tighten
        if tighten is not None and tighten(values[name], value):
            values[name] = value
    return Settings(values)


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
