"""A pack that is wrong anywhere does not load, and the error names the file, the line and what is wrong."""

from pathlib import Path

import pytest

from sandboxmcp.core.errors import BrokenPack
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.packs.pack import load_pack

GOOD = """[pack]
name = "own"
[[rule]]
id = "no-dd"
language = ["shell"]
command = ["dd"]
when.argument = "^of=/dev/"
verdict = "deny"
because = "It overwrites a device."
instead = "Write to a file."
[[rule.example]]
code = "dd of=/dev/sda"
verdict = "deny"
[[rule.example]]
code = "dd of=image"
verdict = "allow"
[[program]]
names = ["ddrescue"]
flags = ["--help"]
"""

BROKEN = {
    "not-toml": ("[[rule]]", "[[rule]", 3, "not TOML"),
    "cut-short": ('flags = ["--help"]', 'flags = ["--help"', 20, "not TOML"),
    "unknown-table": ("[[program]]", "[[programme]]", 17, "unknown key 'programme'"),
    "unknown-key": ("because =", "becuase =", 9, "unknown key 'becuase'"),
    "unknown-key-of-the-pack": ('name = "own"', 'name = "own"\nnmae = 1', 3, "unknown key 'nmae'"),
    "unknown-condition": ("when.argument", "when.argumnet", 7, "unknown key 'argumnet'"),
    "unknown-key-of-an-example": ('code = "dd of=image"', 'cod = "dd of=image"', 15, "unknown key 'cod'"),
    "no-pack": ('[pack]\nname = "own"\n', "", 1, "lacks 'pack'"),
    "no-name": ('name = "own"\n', "", 1, "lacks 'name'"),
    "no-verdict": ('verdict = "deny"\nbecause', "because", 3, "rule 'no-dd' lacks 'verdict'"),
    "no-because": ('because = "It overwrites a device."\n', "", 3, "rule 'no-dd' lacks 'because'"),
    "no-instead": ('instead = "Write to a file."\n', "", 3, "rule 'no-dd' lacks 'instead'"),
    "no-subject": ('command = ["dd"]\n', "", 3, "says nothing that it is about"),
    "no-example": (GOOD[GOOD.index("[[rule.example]]") : GOOD.index("[[program]]")], "", 3, "rule 'no-dd' lacks 'example'"),
    "bad-verdict": ('verdict = "allow"', 'verdict = "permit"', 16, "'verdict' is 'permit'"),
    "bad-id": ('id = "no-dd"', 'id = "No DD"', 4, "no id"),
    "bad-type": ('because = "It overwrites a device."', "because = 7", 9, "'because' wants a text"),
    "bad-list": ('language = ["shell"]', "language = [1]", 5, "wants a text or a list"),
    "bad-pattern": ('"^of=/dev/"', '"^of=("', 7, "is not a regular expression"),
    "exploding-pattern": ('"^of=/dev/"', '"^(a+)+$"', 7, "may take very long"),
    "bad-condition": ('when.argument = "^of=/dev/"', "when.quiet = 1", 7, "wants true or false"),
    "bad-setting": ('verdict = "deny"\nbecause', 'verdict = "deny"\nsetting = "cloud"\nbecause', 9, "'setting' is 'cloud'"),
    "not-a-table": ("[[program]]", "[program]", 17, "written [[program]]"),
    "bad-option": ('flags = ["--help"]', 'flags = ["help"]', 19, "no option"),
    "unknown-option": ('flags = ["--help"]', 'flags = ["--help"]\nquiet = ["-q"]', 20, "neither among flags nor values"),
    "unknown-parent": ('name = "own"', 'name = "own"\nextends = ["nowhere"]', 3, "'nowhere', which it extends"),
    "disagreeing-example": ('code = "dd of=image"', 'code = "dd of=/dev/sdb"', 14, "is deny by no-dd, not allow"),
    "described-twice": ('names = ["ddrescue"]', 'names = ["curl"]', 17, "described by 'programs' already"),
}


@pytest.mark.parametrize(("old", "new", "line", "what"), BROKEN.values(), ids=BROKEN)
def test_a_broken_pack_is_refused_with_its_line(old: str, new: str, line: int, what: str, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(GOOD.replace(old, new, 1))
    assert file.read_text() != GOOD
    with pytest.raises(BrokenPack) as refused:
        load_engine(["own"], [tmp_path])
    assert (refused.value.file, refused.value.line, refused.value.exit_code) == (file, line, 6)
    assert what in str(refused.value)


def test_the_pack_that_the_broken_ones_come_from_loads(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(GOOD)
    engine = load_engine(["own"], [tmp_path])
    assert [engine.judge(code, "shell").rule for code in ("dd of=/dev/sda", "dd of=x")] == ["no-dd", None]


def test_two_rules_of_one_id_are_refused(tmp_path: Path) -> None:
    rule = GOOD[GOOD.index("[[rule]]") : GOOD.index("[[program]]")]
    (tmp_path / "own.toml").write_text(GOOD + rule)
    with pytest.raises(BrokenPack, match=r"own.toml:21: two rules have the id 'no-dd'"):
        load_engine(["own"], [tmp_path])


def test_an_example_that_another_rule_denies_does_not_speak_for_its_rule(tmp_path: Path) -> None:
    rule = GOOD[GOOD.index("[[rule]]") : GOOD.index("[[program]]")].replace("no-dd", "other").replace("^of=/dev/", "^never$")
    (tmp_path / "own.toml").write_text(GOOD + rule)
    with pytest.raises(BrokenPack, match=r"own.toml:28: .* by no-dd, but not by this rule"):
        load_engine(["own"], [tmp_path])


def test_a_pack_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"[pack]\nname = '\xff'\n")
    with pytest.raises(BrokenPack, match=r"own.toml:2: the pack is not UTF-8"):
        load_pack(tmp_path / "own.toml")


def test_a_pack_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").mkdir()
    with pytest.raises(BrokenPack, match="cannot be read: Is a directory"):
        load_engine(["own"], [tmp_path])


def test_a_pack_that_is_nowhere_is_refused_with_the_places(tmp_path: Path) -> None:
    with pytest.raises(BrokenPack, match=f"no policy pack 'mine' in {tmp_path}"):
        load_engine(["mine"], [tmp_path])


def test_a_pack_that_is_nowhere_is_refused_with_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[pack]\nname = 'own'\n")
    with pytest.raises(BrokenPack, match=r"There are: ci, default, .*own, .*strict\. Correct policy_packs"):
        load_engine(["nosuch"], [tmp_path])


def test_a_pack_may_be_named_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(GOOD)
    assert [pack.name for pack in load_engine([str(tmp_path / "own.toml")]).packs] == ["programs", "own"]
