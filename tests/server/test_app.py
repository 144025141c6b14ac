"""The server through a real client, in memory, both eras: knowledge tools and errors; nothing here needs a sandbox."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.session import Session

pytestmark = pytest.mark.anyio

NAMES = (
    "ctx_batch_execute ctx_execute ctx_execute_file ctx_jobs ctx_kernels "
    "ctx_search ctx_index ctx_fetch_and_index ctx_read ctx_sources ctx_purge ctx_stats ctx_doctor"
).split()


async def test_the_tools_are_listed_with_their_schemas(connect: Any) -> None:
    async with connect() as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == NAMES
    assert tools[1].input_schema["required"] == ["code"] and all(tool.output_schema is None for tool in tools)


async def test_the_instructions_reach_the_client(connect: Any) -> None:
    async with connect() as client:
        assert client.instructions.startswith("Think in code")


async def test_what_is_indexed_is_found_read_listed_and_counted(connect: Any, tmp_path: Path) -> None:
    async with connect() as client:
        (tmp_path / "project" / "notes.md").write_text("# Animals\n\nThe zebra runs.\n")
        indexed = await client.call_tool("ctx_index", {"path": "notes.md"})
        handle = indexed.structured_content["handle"]
        found = await client.call_tool("ctx_search", {"queries": ["zebra"]})
        read = await client.call_tool("ctx_read", {"around": f"{handle}:1"})
        listed = await client.call_tool("ctx_sources", {})
        counted = await client.call_tool("ctx_stats", {})
    assert "| The zebra runs." in found.content[0].text and "| # Animals" in read.content[0].text
    assert listed.structured_content["sources"][0]["handle"] == handle
    assert counted.structured_content["tools"]["ctx_search"]["calls"] == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("ctx_serch", {}, "Did you mean 'ctx_search'?"),
        ("ctx_index", {"path": "~nosuchuser/x"}, "no home folder for '~nosuchuser/x'"),
        ("ctx_index", {"path": "x" * 5_000}, "a path of 5,000 characters names no file"),
        ("ctx_index", {"path": "half \ud800"}, "half of a character"),
        ("ctx_index", {"path": "../../**"}, "outside the folders that may be read"),
        ("ctx_index", {"path": "/**"}, "outside the folders that may be read"),
        ("ctx_index", {"path": ".", "max_files": 10**30}, "from 1 to 100,000"),
        ("ctx_index", {"path": ".", "max_files": -1}, "from 1"),
        ("ctx_index", {"path": ".", "include": ["!"]}, "include holds '!', which is no pattern"),
        ("ctx_index", {"path": ".", "include": "[" * 20_000}, "which is no pattern"),
        ("ctx_index", {"path": ".", "exclude": ["a\0b"]}, "which is no pattern"),
        ("ctx_read", {"handle": "nope"}, "no source 'nope'"),
        ("ctx_read", {"handle": "nope", "budget_tokens": 0}, "from 50"),
        ("ctx_search", {"queries": ["a"], "budget_tokens": -1}, "from 50"),
        ("ctx_search", {"queries": []}, "queries is empty"),
        ("ctx_batch_execute", {"commands": []}, "commands is empty"),
        ("ctx_batch_execute", {"commands": [{"label": "x"}]}, "either `command` or `code`"),
        ("ctx_execute", {"code": "1", "kernel": "a/b"}, "'a/b' cannot be a kernel's name"),
        ("ctx_execute", {"code": "1", "kernel": "x" * 300}, "cannot be a kernel's name"),
        ("ctx_execute", {"code": "1", "kernel": "k", "language": "ruby"}, "'ruby' keeps no state between calls"),
        (
            "ctx_batch_execute",
            {"commands": ["true", {"code": "1", "language": "python", "kernel": "../k"}]},
            "cannot be a kernel's name",
        ),
        ("ctx_execute", {"code": "1", "cwd": "../.."}, "is no folder of the project"),
        ("ctx_execute", {"code": "1", "cwd": "missing"}, "is no folder of the project"),
        ("ctx_execute_file", {"code": "1"}, "either `path` or `paths`"),
        ("ctx_execute_file", {"code": "1", "path": "a", "paths": ["b"]}, "either `path` or `paths`"),
        ("ctx_execute_file", {"code": "1", "path": "missing.txt"}, "cannot be read: No such file"),
        ("ctx_execute_file", {"code": "1", "path": "/etc/passwd"}, "outside the folders that may be read"),
        ("ctx_execute_file", {"code": "1", "path": "."}, "is a folder, not a file"),
        ("ctx_execute_file", {"code": "1", "paths": ["*.nothing"]}, "no file matches *.nothing"),
        ("ctx_jobs", {"action": "result"}, "result wants a job"),
        ("ctx_jobs", {"action": "cancel", "job": "j000000"}, "there is no job 'j000000'"),
        ("ctx_kernels", {"action": "stop"}, "stop wants a kernel"),
        ("ctx_kernels", {"action": "interrupt", "kernel": "ghost"}, "there is no kernel 'ghost'"),
        ("ctx_execute", {"code": "1", "language": "pyton"}, "Did you mean 'python'?"),
        ("ctx_execute", {"code": "a\0b"}, "NUL byte"),
        ("ctx_execute", {"code": "  "}, "the code is empty"),
        ("ctx_execute", {"code": "1", "timeout_s": 1e9}, "at most 86,400"),
    ],
)
async def test_bad_input_is_an_error_that_says_what_to_do(connect: Any, tool: str, arguments: dict[str, Any], message: str) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, arguments)
    assert (result.is_error, message in result.content[0].text, "Traceback" in result.content[0].text) == (True, True, False)


@pytest.mark.parametrize(
    ("client", "wanted", "sent"),
    [("claude-code", "auto", False), ("claude-code", "always", True), ("test", "auto", True), ("test", "never", False)],
)
async def test_facts_are_left_out_for_clients_that_would_show_nothing_else(
    connect: Any, client: str, wanted: str, sent: bool
) -> None:
    async with connect(client=client, structured_content=wanted) as connection:
        result = await connection.call_tool("ctx_sources", {})
        failed = await connection.call_tool("ctx_read", {"handle": "nope"})
    assert (result.content[0].text, result.structured_content is not None) == ("nothing stored", sent)
    assert (failed.is_error, failed.structured_content is not None) == (True, sent)


async def test_the_facts_of_a_failure_carry_its_message(connect: Any) -> None:
    async with connect() as client:
        failed = await client.call_tool("ctx_read", {"handle": "nope"})
    assert failed.structured_content == {"error": "UsageError", "exit_code": 2, "message": failed.content[0].text}


async def test_a_broken_pack_stops_execution_and_nothing_else(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("not = [toml")
    async with connect(policy_packs=str(tmp_path / "bad.toml")) as client:
        refused = await client.call_tool("ctx_execute", {"code": "print(1)"})
        searched = await client.call_tool("ctx_search", {"queries": ["x"]})
    assert (refused.structured_content["exit_code"], searched.is_error) == (6, False)


async def test_a_store_that_cannot_be_opened_is_an_error_with_its_code(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    async with connect(data_dir=str(tmp_path / "file")) as client:
        result = await client.call_tool("ctx_search", {"queries": ["x"]})
    assert (result.is_error, result.structured_content["exit_code"]) == (True, 5)


async def test_a_bug_of_ours_is_logged_and_not_shown(
    connect: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Session) -> None:
        raise RuntimeError("secret internals")

    monkeypatch.setattr(Session, "store", property(broken))
    with caplog.at_level(logging.ERROR, logger="sandboxmcp"):
        async with connect() as client:
            result = await client.call_tool("ctx_search", {"queries": ["x"]})
    assert (result.is_error, "secret" in result.content[0].text, "secret internals" in caplog.text) == (True, False, True)
