"""ctx_index on a real store: texts, files, folders, and everything that must be refused."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import load_settings
from sandboxmcp.session import Session
from sandboxmcp.tools.indexing import index
from sandboxmcp.tools.knowledge import search


def put(session: Session, **files: str | bytes) -> Path:
    project = Path(session.project)
    for name, content in files.items():
        path = project / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return project


def facts(session: Session, **arguments: Any) -> dict[str, Any]:
    return dict(index(session, budget_tokens=2_000, **arguments).structured)


def test_a_text_is_stored_under_its_label(session: Session) -> None:
    handle = facts(session, content="# One\n\ntwo\n", source="notes")["handle"]
    assert session.store.get(handle).label == "notes"


def test_an_unchanged_file_is_free_and_a_changed_one_replaces_it(session: Session) -> None:
    project = put(session, a_md="# Alpha\n\nzebra\n")
    first = facts(session, path="a.md")
    again = facts(session, path="a.md")
    (project / "a.md").write_text("# Alpha\n\ngiraffe\n")
    changed = facts(session, path="a.md")
    assert (first["indexed"], again["unchanged"], again["handle"], changed["indexed"]) == (1, 1, first["handle"], 1)


def test_a_folder_honours_gitignore_and_counts_what_it_skips(session: Session) -> None:
    put(session, _gitignore="*.log\n", a_md="alpha\n", b_log="beta\n", c_bin=b"\0\1", sub__d_py="delta = 1\n")
    found = facts(session, path=".")
    assert (found["indexed"], found["binary"], found["refused"], found["beyond_max_files"]) == (3, 1, 0, False)


def test_the_first_binary_files_of_a_folder_are_named(session: Session) -> None:
    put(session, a_md="alpha\n", **{f"n{number}_bin": b"\0" for number in range(7)})
    answer = index(session, path=".", budget_tokens=500)
    named = "binary: n0.bin, n1.bin, n2.bin, n3.bin, n4.bin and 2 more"
    assert (answer.structured["binary"], named in answer.text.split("\n")) == (7, True)


def test_more_files_than_max_files_are_said_not_swallowed(session: Session) -> None:
    put(session, a_md="a\n", b_md="b\n", c_md="c\n")
    answer = index(session, path=".", max_files=2, budget_tokens=500)
    assert answer.structured["beyond_max_files"] and "max_files=2 were left out" in answer.text


def test_a_caller_s_label_is_kept_for_a_file_and_leads_for_a_folder(session: Session) -> None:
    put(session, a_md="a\n", sub__b_md="b\n")
    one = facts(session, path="a.md", source="mine")["handle"]
    text = index(session, path=".", source="all", budget_tokens=500).text
    assert (session.store.get(one).label, "all/sub/b.md" in text) == ("mine", True)


def test_the_project_is_the_limit_and_ingest_roots_widen_it(session: Session, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("x\n")
    with pytest.raises(UsageError, match=r"outside the folders.*ingest_roots"):
        facts(session, path=str(outside / "x.md"))
    flags = {"data_dir": str(tmp_path / "data2"), "workspace": session.project, "ingest_roots": str(outside)}
    wider = Session(load_settings(flags, environ={"HOME": str(tmp_path)}))
    assert facts(wider, path=str(outside / "x.md"))["indexed"] == 1


def test_a_link_that_leads_outside_is_refused_in_a_folder_and_by_name(session: Session, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    project = put(session, a_md="a\n")
    (project / "link").symlink_to(tmp_path / "secret")
    assert facts(session, path=".")["refused"] == 1
    with pytest.raises(UsageError, match="outside the folders"):
        facts(session, path="link")


def test_a_pipe_does_not_block_and_is_refused(session: Session) -> None:
    project = put(session, a_md="a\n")
    os.mkfifo(project / "pipe")
    with pytest.raises(UsageError, match="a pipe, socket or device"):
        facts(session, path="pipe")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing is given to index"),
        ({"content": "a", "path": "b"}, "both `content` and `path` are given"),
        ({"content": " \n"}, "content is empty"),
        ({"path": "*.nope"}, r"no file matches '\*\.nope'"),
        ({"path": "a\0b"}, "NUL byte"),
        ({"path": "missing.md"}, "No such file"),
        ({"path": "bytes.bin"}, "binary"),
        ({"path": ""}, "empty"),
        ({"path": "~nosuchuser/x"}, "no home folder for '~nosuchuser/x'.*Write the path out"),
        ({"path": "x" * 5_000}, "a path of 5,000 characters"),
        ({"path": "x" * 300}, "File name too long"),
        ({"path": "../../**"}, "outside the folders"),
        ({"path": ".", "max_files": 10**30}, "max_files is 1000.*from 1 to 100,000"),
        ({"path": ".", "max_files": -1}, "max_files is -1"),
        ({"path": ".", "include": ["!"]}, "include holds '!'"),
        ({"path": ".", "exclude": [""]}, "exclude holds ''"),
        ({"path": ".", "include": ["a\0"]}, "no pattern"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_indexed_is_an_error_that_says_why(session: Session, arguments: dict[str, Any], message: str) -> None:
    put(session, bytes_bin=b"\0\1\2")
    with pytest.raises(UsageError, match=message):
        facts(session, **arguments)


def test_in_a_folder_what_cannot_be_read_is_told_and_the_rest_is_indexed(session: Session) -> None:
    project = put(session, a_md="zebra\n", sub__b_md="zebra\n")
    os.mkfifo(project / "pipe")
    (project / "self").symlink_to("self")
    (project / "loop").symlink_to(".")
    (project / os.fsdecode(b"caf\xe9.md")).write_text("a giraffe\n")
    answer = index(session, path=".", budget_tokens=1_000)
    assert (answer.structured["indexed"], answer.structured["refused"]) == (3, 3)
    for reason in ("pipe is a pipe, socket or device", "self cannot be read: Too many levels", "loop a link to a folder"):
        assert reason in answer.text
    file = project / os.fsdecode(b"caf\xe9.md")
    file.write_text("an okapi\n")
    assert "| an okapi" in search(session, ["okapi"], budget_tokens=300).text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_text_in_utf_16_is_indexed_and_shown_as_its_text(session: Session, encoding: str) -> None:
    mark = b"" if encoding == "utf-16" else codecs.BOM_UTF16_BE
    put(session, a_txt=mark + "the zébra runs ☃\r\nand sleeps\r\n".encode(encoding))
    handle = facts(session, path="a.txt")["handle"]
    assert session.store.read_lines(handle, 1, 2) == ["the zébra runs ☃", "and sleeps"]
    assert facts(session, path="a.txt")["unchanged"] == 1
    put(session, b_bin=b"\xff\xfe\x00\xd8\x00\x00binary")
    with pytest.raises(UsageError, match="binary"):
        facts(session, path="b.bin")


def test_a_file_beyond_what_a_call_may_read_is_named_and_the_others_are_indexed(session: Session, tmp_path: Path) -> None:
    put(session, a_md="zebra\n", b_md="x" * 5_000 + "\n")
    flags = {"data_dir": str(tmp_path / "data2"), "workspace": session.project, "limits.output": "4096"}
    small = Session(load_settings(flags, environ={"HOME": str(tmp_path)}))
    answer = index(small, path=".", budget_tokens=500)
    assert (answer.structured["indexed"], answer.structured["refused"]) == (1, 1)
    assert "b.md has 5,001 bytes, 4,090 are left of what one call may read (limits.output)" in answer.text
    small.store.close()


def test_of_a_large_file_it_is_said_which_part_is_indexed(session: Session, tmp_path: Path) -> None:
    put(session, a_md="".join(f"line {n} of many\n" for n in range(1_000)))
    flags = {"data_dir": str(tmp_path / "data2"), "workspace": session.project, "index.head": "1000", "index.tail": "1000"}
    small = Session(load_settings(flags, environ={"HOME": str(tmp_path)}))
    assert re.search(r"a\.md: \d+ B 1000 lines, indexed \d+ B of head and tail", index(small, path="a.md", budget_tokens=500).text)
    small.store.close()


def test_of_a_folder_of_very_many_files_the_rest_is_counted(session: Session) -> None:
    project = put(session, a_md="zebra\n")
    for number in range(3_000):
        (project / f"empty{number}").touch()
    assert "2991 more files than max_files=10 were left out" in index(session, path=".", max_files=10, budget_tokens=500).text


def test_a_file_of_secrets_is_not_stored_in_a_folder_or_by_name(session: Session) -> None:
    project = put(session, a_md="alpha\n")
    (project / ".env").write_text("TOKEN=hush\n")
    found = facts(session, path=".")
    assert (found["indexed"], found["refused"]) == (1, 1)
    with pytest.raises(UsageError, match="looks like a file of secrets"):
        index(session, path=".env", budget_tokens=2_000)


def test_of_several_paths_those_that_cannot_be_read_are_told(session: Session) -> None:
    put(session, a_md="alpha\n", b_md="beta\n")
    answer = index(session, path="a.md", more=("b.md", "c.md"), budget_tokens=2_000)
    assert answer.text.split("\n")[0] == "2 indexed, 1 refused: 11 B" and "c.md cannot be read" in answer.text
    assert index(session, path="c.md", more=("d.md",), budget_tokens=2_000).is_error


def test_a_glob_without_a_file_says_so_beside_a_link_that_is_not_followed(session: Session) -> None:
    project = put(session, a_md="alpha\n")
    (project / "loop").symlink_to(project)
    with pytest.raises(UsageError, match=r"no file matches .*a link to a folder"):
        index(session, path="*.zzz", budget_tokens=2_000)


def test_a_folder_of_which_nothing_is_left_says_why(session: Session) -> None:
    put(session, a_md="zebra\n")
    text = index(session, path=".", include=["*.nope"], budget_tokens=200).text
    assert text == "nothing indexed: 0 B\nno file there is left by include, exclude and .gitignore"
