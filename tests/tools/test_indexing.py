"""ctx_index on a real store: texts, files, folders, and everything that must be refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.settings import load_settings
from sandboxmcp.services import Services
from sandboxmcp.tools.indexing import index


def put(services: Services, **files: str | bytes) -> Path:
    project = Path(services.project)
    for name, content in files.items():
        path = project / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return project


def facts(services: Services, **arguments: Any) -> dict[str, Any]:
    return dict(index(services, budget_tokens=2_000, **arguments).structured)


def test_a_text_is_stored_under_its_label(services: Services) -> None:
    handle = facts(services, content="# One\n\ntwo\n", source="notes")["handle"]
    assert services.store.get(handle).label == "notes"


def test_an_unchanged_file_is_free_and_a_changed_one_replaces_it(services: Services) -> None:
    project = put(services, a_md="# Alpha\n\nzebra\n")
    first = facts(services, path="a.md")
    again = facts(services, path="a.md")
    (project / "a.md").write_text("# Alpha\n\ngiraffe\n")
    changed = facts(services, path="a.md")
    assert (first["indexed"], again["unchanged"], again["handle"], changed["indexed"]) == (1, 1, first["handle"], 1)


def test_a_folder_honours_gitignore_and_counts_what_it_skips(services: Services) -> None:
    put(services, _gitignore="*.log\n", a_md="alpha\n", b_log="beta\n", c_bin=b"\0\1", sub__d_py="delta = 1\n")
    found = facts(services, path=".")
    assert (found["indexed"], found["binary"], found["refused"], found["beyond_max_files"]) == (3, 1, 0, False)


def test_more_files_than_max_files_are_said_not_swallowed(services: Services) -> None:
    put(services, a_md="a\n", b_md="b\n", c_md="c\n")
    answer = index(services, path=".", max_files=2, budget_tokens=500)
    assert answer.structured["beyond_max_files"] and "max_files=2 were left out" in answer.text


def test_a_caller_s_label_is_kept_for_a_file_and_leads_for_a_folder(services: Services) -> None:
    put(services, a_md="a\n", sub__b_md="b\n")
    one = facts(services, path="a.md", source="mine")["handle"]
    text = index(services, path=".", source="all", budget_tokens=500).text
    assert (services.store.get(one).label, "all/sub/b.md" in text) == ("mine", True)


def test_the_project_is_the_limit_and_ingest_roots_widen_it(services: Services, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("x\n")
    with pytest.raises(UsageError, match=r"outside the folders.*ingest_roots"):
        facts(services, path=str(outside / "x.md"))
    flags = {"data_dir": str(tmp_path / "data2"), "workspace": services.project, "ingest_roots": str(outside)}
    wider = Services(load_settings(flags, environ={"HOME": str(tmp_path)}))
    assert facts(wider, path=str(outside / "x.md"))["indexed"] == 1


def test_a_link_that_leads_outside_is_refused_in_a_folder_and_by_name(services: Services, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    project = put(services, a_md="a\n")
    (project / "link").symlink_to(tmp_path / "secret")
    assert facts(services, path=".")["refused"] == 1
    with pytest.raises(UsageError, match="outside the folders"):
        facts(services, path="link")


def test_a_pipe_does_not_block_and_is_refused(services: Services) -> None:
    project = put(services, a_md="a\n")
    os.mkfifo(project / "pipe")
    with pytest.raises(UsageError, match="a pipe, socket or device"):
        facts(services, path="pipe")


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
    ],
    ids=["neither", "both", "empty", "glob", "nul", "missing", "binary"],
)
def test_what_cannot_be_indexed_is_an_error_that_says_why(services: Services, arguments: dict[str, str], message: str) -> None:
    put(services, bytes_bin=b"\0\1\2")
    with pytest.raises(UsageError, match=message):
        facts(services, **arguments)
