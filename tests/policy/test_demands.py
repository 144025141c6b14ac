"""Packs may carry settings: they tighten what is in force, by whomever they come, and never loosen it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.core.settings import KEYS, Settings, load_settings, tightened
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.session import Session


def pack(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.toml").write_text(f'[pack]\nname = "mine"\n[settings]\n{text}\n')
    return folder


def in_force(names: tuple[str, ...], folder: Path | None = None, project: Path | None = None, **flags: str) -> Settings:
    engine = load_engine(names, [folder] if folder else [], project=project)
    return tightened(load_settings(flags, environ={"HOME": "/nowhere"}, project=Path("/nowhere")), engine.demands())


@pytest.mark.parametrize(("flag", "mode"), [("rw", "ro"), ("overlay", "ro"), ("ro", "ro")])
def test_under_strict_the_workspace_is_read_only_whatever_else_is_set(flag: str, mode: str) -> None:
    assert in_force(("strict",), workspace_mode=flag)["workspace_mode"] == mode


def test_under_other_packs_the_settings_are_what_they_were() -> None:
    before = load_settings(environ={"HOME": "/nowhere"}, project=Path("/nowhere"))
    assert [in_force((name,)) for name in ("default", "ci", "research", "offline")] == [before] * 4


def test_a_project_pack_tightens(tmp_path: Path) -> None:
    project = pack(tmp_path, 'workspace_mode = "overlay"\n"limits.memory" = "1GiB"\nnetwork = { requests = 5 }')
    found = in_force(("default",), project=project)
    assert [found[name] for name in ("workspace_mode", "limits.memory", "network.requests")] == ["overlay", 1 << 30, 5]


def test_a_project_pack_that_says_less_than_what_is_in_force_changes_nothing(tmp_path: Path) -> None:
    project = pack(tmp_path, 'workspace_mode = "rw"\n"limits.memory" = "64GiB"')
    assert in_force(("strict",), project=project) == in_force(("strict",))


WRONG = {
    "unknown": ('colour = "red"', "'colour' is no setting that a pack may tighten"),
    "not the packs' matter": ('policy_packs = ["x"]', "'policy_packs' is no setting that a pack may tighten"),
    "a list": ('network = { domains = ["example.org"] }', "is no setting that a pack may tighten"),
    "no value": ('workspace_mode = "none"', "'workspace_mode' wants one of rw, overlay, ro, not 'none'"),
}


@pytest.mark.parametrize(("text", "what"), WRONG.values(), ids=WRONG)
def test_a_pack_with_a_wrong_setting_is_broken_and_its_line_is_named(text: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(BrokenPack, match=what) as broken:
        load_engine(["mine"], [pack(tmp_path, f"\n{text}")])
    assert broken.value.line == 5


def test_what_a_pack_may_demand_has_a_stricter_one_of_any_two_values() -> None:
    from sandboxmcp.core.settings import demand

    allowed = []
    for key in KEYS:
        try:
            demand(key.name, key.default)
        except ValueError:
            continue
        assert key.tighten is not None and key.tighten(key.default, key.default)
        allowed.append(key.name.split(".")[0])
    assert set(allowed) == {"workspace_mode", "git", "limits", "network"}


def test_the_services_start_sandboxes_and_the_network_with_what_is_enforced(tmp_path: Path) -> None:
    flags = {"policy_packs": ["strict"], "workspace": str(tmp_path), "data_dir": str(tmp_path / "data")}
    session = Session(load_settings(flags, environ={"HOME": str(tmp_path)}, project=tmp_path))
    assert (session.settings.workspace_mode, session.enforced.workspace_mode) == ("rw", "ro")
