"""Where a setting's value comes from, and what is refused on the way."""

import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import KEYS, Settings, load_settings

_UNITS = {"": 1, "k": 2**10, "KiB": 2**10, "m": 2**20, "MiB": 2**20, "MB": 2**20, "g": 2**30, "GiB": 2**30}


class Place:
    """A project folder and a user's configuration folder, both empty at first."""

    def __init__(self, folder: Path) -> None:
        self.project, self.config = folder / "project", folder / "config"
        self.project.mkdir()
        (self.config / "sandboxmcp").mkdir(parents=True)

    def user(self, toml: str) -> None:
        (self.config / "sandboxmcp" / "sandboxmcp.toml").write_text(toml)

    def own(self, toml: str, name: str = "sandboxmcp.toml") -> None:
        (self.project / name).parent.mkdir(exist_ok=True)
        (self.project / name).write_text(toml)

    def load(self, flags: dict[str, Any] | None = None, **variables: str) -> Settings:
        return load_settings(flags, {"XDG_CONFIG_HOME": str(self.config), **variables}, self.project)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_set_means_the_defaults_of_the_table(place: Place) -> None:
    assert place.load() == Settings()
    assert {key.name: Settings()[key.name] for key in KEYS} == {key.name: key.default for key in KEYS}


def test_each_layer_wins_over_the_one_before(place: Place) -> None:
    seen = [place.load()["budget_tokens"]]
    place.user("budget_tokens = 1001")
    seen.append(place.load()["budget_tokens"])
    place.own("budget_tokens = 1002")
    seen.append(place.load()["budget_tokens"])
    place.own("budget_tokens = 1003", ".sandboxmcp/sandboxmcp.toml")
    seen.append(place.load()["budget_tokens"])
    seen.append(place.load(SANDBOXMCP_BUDGET_TOKENS="1004")["budget_tokens"])
    seen.append(place.load({"budget_tokens": 1005}, SANDBOXMCP_BUDGET_TOKENS="1004")["budget_tokens"])

    assert seen == [2000, 1001, 1002, 1003, 1004, 1005]


def test_a_blank_variable_and_an_absent_flag_count_as_unset(place: Place) -> None:
    assert place.load({"timeout_s": None}, SANDBOXMCP_TIMEOUT_S="  ")["timeout_s"] == 120.0


def test_an_unknown_key_is_named_with_its_file(place: Place) -> None:
    place.own("[limits]\nmemmory = '1GiB'")

    with pytest.raises(
        UsageError, match=r"project/sandboxmcp\.toml sets an unknown key 'limits\.memmory'\. Did you mean 'limits\.memory'"
    ):
        place.load()


def test_a_file_that_is_not_toml_is_named(place: Place) -> None:
    place.user("budget_tokens 12")

    with pytest.raises(UsageError, match=r"sandboxmcp\.toml is not TOML"):
        place.load()


def test_a_file_that_is_not_utf8_is_named(place: Place) -> None:
    (place.project / "sandboxmcp.toml").write_bytes(b"data_dir = '\xff'")

    with pytest.raises(UsageError, match=r"sandboxmcp\.toml is not TOML"):
        place.load()


BAD_VALUES = {
    "SANDBOXMCP_BUDGET_TOKENS": ["0", "-1", "49", "many", "2.5", "1_000_001"],
    "SANDBOXMCP_TIMEOUT_S": ["0", "-3", "nan", "inf", "soon", "86401"],
    "SANDBOXMCP_CONCURRENCY": ["-1", "9"],
    "SANDBOXMCP_LIMITS_MEMORY": ["0", "-1", "1TiB", "lots", "1.5g"],
    "SANDBOXMCP_DATA_DIR": ["a\0b"],
}


@pytest.mark.parametrize(("variable", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values])
def test_a_bad_value_names_the_variable_and_what_it_wants(place: Place, variable: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"variable {variable} wants "):
        place.load(None, **{variable: value})


@pytest.mark.parametrize(
    "toml", ["budget_tokens = true", "timeout_s = true", "[limits]\nmemory = true", "policy_packs = [1]", "data_dir = 5"]
)
def test_a_value_of_the_wrong_type_is_refused(place: Place, toml: str) -> None:
    place.user(toml)

    with pytest.raises(UsageError, match="wants "):
        place.load()


LOOSER = {
    "data_dir": "data_dir = '/elsewhere'",
    "workspace": "workspace = '/elsewhere'",
    "workspace_mode": "workspace_mode = 'overlay'",
    "git": "git = 'rw'",
    "ingest_roots": "ingest_roots = ['/home']",
    "policy_packs": "policy_packs = []",
    "kernelspecs": "kernelspecs = ['ir']",
    "tool_folders": "tool_folders = ['/opt/evil']",
    "claude_permissions": "claude_permissions = false",
    "capture.raw": "[capture]\nraw = true",
    "journal": "journal = true",
    "limits.output": "[limits]\noutput = '2GiB'",
    "limits.memory": "[limits]\nmemory = '64GiB'",
    "limits.processes": "[limits]\nprocesses = 4096",
    "limits.descriptors": "[limits]\ndescriptors = 4096",
    "limits.tmpfs": "[limits]\ntmpfs = '8GiB'",
    "limits.workspace": "[limits]\nworkspace = '8GiB'",
    "limits.files": "[limits]\nfiles = 1_000_000",
    "limits.cpu": "[limits]\ncpu = 86_400",
    "limits.file": "[limits]\nfile = '8GiB'",
    "network.allow_private": "[network]\nallow_private = ['10.0.0.0/8']",
    "network.domains": "[network]\ndomains = []",
    "network.authorities": "[network]\nauthorities = 'mine.pem'",
    "network.requests": "[network]\nrequests = 5000",
    "network.bytes": "[network]\nbytes = '8GiB'",
    "network.size": "[network]\nsize = '2GiB'",
    "network.time_s": "[network]\ntime_s = 600",
}


@pytest.mark.parametrize("name", LOOSER)
def test_a_project_cannot_loosen_what_protects_its_user(place: Place, name: str) -> None:
    place.user("workspace_mode = 'ro'\njournal = false\n[network]\ndomains = ['example.org']")
    place.own(LOOSER[name])

    with pytest.raises(UsageError, match=f"(loosens|sets) '{name}', which a project may (only tighten|not set)"):
        place.load()


def test_what_a_project_may_not_set_at_all_is_said_so(place: Place) -> None:
    place.own("workspace = '/'")

    with pytest.raises(UsageError, match=r"sets 'workspace', which a project may not set\. Set it in your own settings file"):
        place.load()


def test_every_key_that_protects_has_a_row_above() -> None:
    assert {key.name for key in KEYS if key.tighten} == set(LOOSER)


def test_a_project_may_tighten_a_limit(place: Place) -> None:
    place.user("[limits]\nmemory = '4GiB'")
    place.own("[limits]\nmemory = '3GiB'")

    assert place.load()["limits.memory"] == 3 << 30


def test_a_project_may_leave_domains_out_and_add_none(place: Place) -> None:
    place.own("[network]\ndomains = ['example.org']")
    assert place.load()["network.domains"] == ("example.org",)
    place.user("[network]\ndomains = ['example.com', 'example.org']")
    assert place.load()["network.domains"] == ("example.org",)
    place.user("[network]\ndomains = ['example.com']")
    with pytest.raises(UsageError, match=r"loosens 'network\.domains'"):
        place.load()


def test_a_list_comes_from_toml_or_from_commas(place: Place) -> None:
    place.user("policy_packs = ['default', 'strict']")

    assert place.load()["policy_packs"] == ("default", "strict")
    assert place.load(SANDBOXMCP_POLICY_PACKS="default, ./team.toml,")["policy_packs"] == ("default", "./team.toml")


def test_a_folder_is_absolute_and_its_tilde_is_expanded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.chdir(place.project)

    assert place.load(SANDBOXMCP_DATA_DIR="~/store").data_dir == Path("/home/ada/store")
    assert place.load(SANDBOXMCP_DATA_DIR="store").data_dir == place.project / "store"


def test_without_a_workspace_the_working_folder_is_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.project)

    assert place.load().workspace == place.project


@given(st.integers(1, 10**6), st.sampled_from(sorted(_UNITS)), st.sampled_from(["", " "]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str, gap: str) -> None:
    environ = {"SANDBOXMCP_INDEX_HEAD": f"{number}{gap}{unit}", "XDG_CONFIG_HOME": "/nonexistent"}

    assert load_settings(environ=environ, project=Path("/nonexistent")).index.head == number * _UNITS[unit]


@given(st.text(st.characters(blacklist_categories=["Nd"]), min_size=1).filter(str.strip))
def test_a_size_without_a_digit_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        load_settings(environ={"SANDBOXMCP_INDEX_HEAD": text, "XDG_CONFIG_HOME": "/nonexistent"}, project=Path("/nonexistent"))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_settings_file_that_is_no_file_is_a_clear_error_and_no_hang(tmp_path, kind):
    file = tmp_path / "sandboxmcp.toml"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.mkdir()
    with pytest.raises(UsageError, match="cannot be read: "):
        load_settings(environ={"HOME": str(tmp_path)}, project=tmp_path)


def test_the_default_of_every_setting_has_the_type_of_its_field() -> None:
    groups = {"": Settings(), **{one.name: one.default for one in fields(Settings) if is_dataclass(one.default)}}
    hints = {
        f"{name}.{field}".strip("."): hint for name, group in groups.items() for field, hint in get_type_hints(type(group)).items()
    }
    wrong = {key.name: hints[".".join(key.path)] for key in KEYS if not _is(key.default, hints[".".join(key.path)])}
    assert wrong == {}


def _is(value: object, hint: Any) -> bool:
    """Whether a value has the type of a hint, as far as settings use them: plain types, tuples of them, unions."""
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(isinstance(item, get_args(hint)[0]) for item in value)
    return type(value) is hint or any(type(value) is one for one in get_args(hint))
