"""Packs of a project may only tighten what its user says."""

from pathlib import Path

import pytest

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.policy.engine import load_engine

LOOSENING = {
    "allow": ('verdict = "deny"', 'verdict = "allow"', "rule 'no-make' allows"),
    "program": ("[[rule]]", '[[program]]\nnames = ["git"]\nvalues = ["-c"]\n[[rule]]', "describes a program"),
    "function": ("[[rule]]", '[[function]]\nlanguage = "python"\nnames = ["x"]\nruns = "code"\n[[rule]]', "describes a function"),
    "capability": ("[[rule]]", '[[capability]]\nname = "x"\nlanguage = "shell"\ncommand = "x"\n[[rule]]', "describes a capability"),
    "broker": (
        "[[rule]]",
        '[[broker]]\nprogram = "nc"\nverdict = "allow"\nrun = ["nc"]\n[[broker.shape]]\nname = "all"\n[[rule]]',
        "lets 'nc' out",
    ),
}


def test_every_pack_of_a_project_counts(no_make: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(no_make)
    engine = load_engine(project=tmp_path)
    assert [engine.judge(code, "shell").rule for code in ("make x", "curl u", "ls")] == ["no-make", "curl-to-stdout", None]


def test_a_project_without_packs_changes_nothing(tmp_path: Path) -> None:
    assert [pack.name for pack in load_engine(project=tmp_path / "none").packs] == ["programs", "default"]


@pytest.mark.parametrize(("old", "new", "what"), LOOSENING.values(), ids=LOOSENING)
def test_a_project_pack_that_tries_to_loosen_is_refused_with_its_line(
    old: str, new: str, what: str, no_make: str, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(no_make.replace(old, new))
    with pytest.raises(BrokenPack, match=what) as refused:
        load_engine(project=tmp_path)
    assert (refused.value.file, refused.value.line > 1) == (tmp_path / "a.toml", True)


@pytest.mark.parametrize(("extends", "what"), [("research", "lets 'gh' out"), ("{folder}/more/broker.toml", "lets 'nc' out")])
def test_a_project_pack_loosens_no_more_by_what_it_extends(extends: str, what: str, no_make: str, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/broker.toml").write_text(no_make.replace(*LOOSENING["broker"][:2]))
    text = no_make.replace('name = "own"', f'name = "own"\nextends = ["{extends.format(folder=tmp_path)}"]')
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(BrokenPack, match=f"which loosens: the project {what}") as refused:
        load_engine(project=tmp_path)
    assert (refused.value.file, refused.value.line) == (tmp_path / "a.toml", 3)


@pytest.mark.parametrize(("users", "extends", "goes_out"), [("research", "strict", []), ("research", "research", ["curl", "gh"])])
def test_a_project_pack_may_extend_what_tightens_or_is_in_force(
    users: str, extends: str, goes_out: list[str], no_make: str, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text(no_make.replace('name = "own"', f'name = "own"\nextends = ["{extends}"]'))
    brokers = load_engine([users], project=tmp_path).brokers()
    assert [name for name in ("curl", "gh") if name in brokers] == goes_out


def test_a_project_pack_of_a_shipped_name_does_not_take_its_place(no_make: str, tmp_path: Path) -> None:
    (tmp_path / "default.toml").write_text(no_make.replace('name = "own"', 'name = "default"'))
    engine = load_engine(project=tmp_path)
    assert [engine.judge(code, "shell").rule for code in ("make x", "curl u")] == ["no-make", "curl-to-stdout"]


def test_a_link_in_a_circle_is_a_broken_pack(tmp_path: Path) -> None:
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    with pytest.raises(BrokenPack, match="cannot be read"):
        load_engine(project=tmp_path)


def test_rules_that_contradict_each_other_give_the_stricter_verdict(no_make: str, tmp_path: Path) -> None:
    allows = no_make.replace('verdict = "deny"', 'verdict = "allow"').replace('"own"', '"mine"').replace("no-make", "make")
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs/mine.toml").write_text(allows)
    (tmp_path / "a.toml").write_text(no_make)
    engine = load_engine(["default", "mine"], [tmp_path / "packs"], project=tmp_path)
    assert engine.judge("make x", "shell").action == "deny"
