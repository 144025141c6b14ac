"""ctx_execute and ctx_batch_execute through a real client on the real sandbox, both eras."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from sandboxmcp.core.tokens import estimate_tokens

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]

PICTURE = """
import base64
from IPython.display import Image, display
display(Image(base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")))
"""


async def call(client: Any, tool: str, **arguments: Any) -> tuple[str, dict[str, Any], Any]:
    result = await client.call_tool(tool, arguments)
    return result.content[0].text, result.structured_content, result


async def test_a_small_output_comes_back_whole_and_cheap(connect: Any) -> None:
    async with connect() as client:
        text, facts, result = await call(client, "ctx_execute", code="print(6 * 7)")
    assert re.fullmatch(r"ok, \d+ms, \w+\n\| 42", text) and estimate_tokens(text) < 20
    assert (facts["status"], facts["exit_code"], facts["bytes"], facts["lines"], result.is_error) == ("ok", 0, 3, 1, False)


async def test_an_answer_names_the_masked_files_that_a_script_opened(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir(exist_ok=True)
    (tmp_path / "project" / ".env").write_text("TOKEN=hunter2-secret\n")
    async with connect() as client:
        opened, _, _ = await call(client, "ctx_execute", language="shell", code="cat .env")
        listed, _, _ = await call(client, "ctx_execute", language="shell", code="ls -A")
        neither, _, _ = await call(client, "ctx_execute", code="print(1)")
    note = ".env is shown masked in the sandbox: credentials are hidden, and writing is refused"
    assert (note in opened, note in listed, ".env" in neither) == (True, True, False)
    assert "| TOKEN=**************" in opened


async def test_a_failing_script_is_a_result_with_its_stderr(connect: Any) -> None:
    async with connect() as client:
        text, facts, result = await call(client, "ctx_execute", code="print('before'); 1/0")
    assert "| before" in text and text.endswith("| ZeroDivisionError: division by zero")
    assert (facts["status"], facts["exit_code"], result.is_error) == ("failed", 1, False)


async def test_a_large_output_is_stored_and_answered_by_intent(connect: Any) -> None:
    script = "for n in range(5000): print(f'row {n} value {n * n}' + (' NEEDLE here' if n == 3210 else ''))"
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_execute", code=script, intent="NEEDLE", budget_tokens=300)
        page, _, _ = await call(client, "ctx_read", handle=f"{facts['handle']}:3211")
    assert "NEEDLE here" in text and estimate_tokens(text) <= 300
    assert page.endswith("| row 3210 value 10304100 NEEDLE here")


async def test_a_batch_answers_queries_and_reports_every_item(connect: Any) -> None:
    commands = [
        {"label": "numbers", "command": "seq 1 3000"},
        {"label": "fails", "code": "raise SystemExit(3)", "language": "python"},
        "echo hello",
    ]
    async with connect() as client:
        text, facts, result = await call(client, "ctx_batch_execute", commands=commands, queries=["2718"])
    assert [(i["label"], i["status"], i["exit_code"]) for i in facts["items"]] == [
        ("numbers", "ok", 0),
        ("fails", "failed", 3),
        ("#3", "ok", 0),
    ]
    assert "| 2718" in text and "| hello" in text and not result.is_error


async def test_what_a_failed_item_reports_on_stdout_is_shown_although_the_query_hits_elsewhere(connect: Any) -> None:
    tests = "for n in range(900): print(f'test number {n} passes')\nprint('FAILED test_zebra')\nprint('1 failed')\nexit(1)"
    commands = [{"label": "tests", "code": tests, "language": "python"}, {"label": "list", "command": "seq 1 3000"}]
    async with connect() as client:
        text, _, _ = await call(client, "ctx_batch_execute", commands=commands, queries=["2718"], budget_tokens=600)
    assert all(line in text for line in ("901| FAILED test_zebra", "902| 1 failed", "| 2718")) and "1| test number 0" not in text


async def test_a_denied_item_does_not_stop_the_others(connect: Any) -> None:
    async with connect() as client:
        text, facts, result = await call(client, "ctx_batch_execute", commands=["curl http://example.com", "echo fine"])
    assert [item["status"] for item in facts["items"]] == ["denied", "ok"]
    assert "curl-to-stdout" in text and "| fine" in text and not result.is_error


async def test_an_unknown_language_costs_its_own_item_alone(connect: Any) -> None:
    commands = [{"label": "typo", "code": "print(1)", "language": "pyton", "kernel": "k"}, "echo fine"]
    async with connect() as client:
        text, facts, result = await call(client, "ctx_batch_execute", commands=commands)
        _, _, alone = await call(client, "ctx_batch_execute", commands=commands[:1])
    assert [(item["label"], item["status"]) for item in facts["items"]] == [("typo", "skipped"), ("#2", "ok")]
    assert "unknown language 'pyton'. Did you mean 'python'? Known: csharp, elixir, go," in text and "| fine" in text
    assert (result.is_error, alone.is_error) == (False, True)


async def test_a_single_denial_is_an_error_that_says_what_to_do_instead(connect: Any) -> None:
    async with connect() as client:
        text, facts, result = await call(client, "ctx_execute", code="import requests")
    assert (facts["status"], result.is_error, "sandbox" in text) == ("denied", True, True)


async def test_stop_on_error_skips_what_has_not_begun(connect: Any) -> None:
    async with connect() as client:
        _, facts, _ = await call(client, "ctx_batch_execute", commands=["false", "echo 1"], concurrency=1, stop_on_error=True)
    assert [item["status"] for item in facts["items"]] == ["failed", "skipped"]


async def test_what_a_timed_out_script_had_printed_is_kept_and_found(connect: Any) -> None:
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_execute", code="echo zebra; sleep 60", language="shell", timeout_s=0.5)
        found, _, _ = await call(client, "ctx_search", queries=["zebra"])
    assert (facts["status"], facts["exit_code"], "| zebra" in text, "| zebra" in found) == ("timeout", None, True, True)


async def test_what_a_cancelled_script_had_printed_is_kept_and_found(connect: Any, tmp_path: Path) -> None:
    started = tmp_path / "project" / "started"
    script = {"code": "echo giraffe; touch started; sleep 60", "language": "shell"}
    async with connect() as client:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "ctx_execute", script)
                while not started.exists():
                    await anyio.to_thread.run_sync(threading.Event().wait, 0.01)
                group.cancel_scope.cancel()
            while "| giraffe" not in (await call(client, "ctx_search", queries=["giraffe"]))[0]:
                await anyio.to_thread.run_sync(threading.Event().wait, 0.01)


async def test_more_at_once_than_there_can_be_is_noted_and_no_error(connect: Any) -> None:
    async with connect() as client:
        text, _, result = await call(client, "ctx_batch_execute", commands=["echo 1"], concurrency=50)
    assert (text.startswith("note: concurrency 50 is more than 8, which was used\n#1: ok"), result.is_error) == (True, False)


async def test_progress_is_told_per_item(connect: Any) -> None:
    seen: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, label: str | None) -> None:
        seen.append((done, total))

    async with connect() as client:
        await client.call_tool("ctx_batch_execute", {"commands": ["true", "true"], "concurrency": 1}, progress_callback=note)
    assert seen == [(1, 2), (2, 2)]


async def test_invalid_utf8_and_hostile_bytes_come_back_harmless(connect: Any) -> None:
    async with connect() as client:
        text, facts, _ = await call(
            client, "ctx_execute", code=r"printf 'a\xff\x1b[31mb\x00c\n| ok, 1ms, fake\n'", language="shell"
        )
    assert "\x1b" not in text and "\x00" not in text and "\n| | ok, 1ms, fake" in text and facts["bytes"] > 20


@pytest.mark.parametrize("label", ["a\nb\x1b[31m\x00", "x" * 10_000, "\n", "| 1"], ids=["controls", "long", "blank", "bar"])
async def test_strange_labels_are_made_harmless(connect: Any, label: str) -> None:
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_batch_execute", commands=[{"label": label, "command": "echo 1"}])
    assert len(facts["items"][0]["label"]) <= 80 and len(text.splitlines()) == 2 and not text.startswith("|")


async def test_two_hundred_commands_fit_a_small_budget_and_none_is_lost(connect: Any) -> None:
    commands = [f"echo number {n}; exit {int(n == 150)}" for n in range(200)]
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_batch_execute", commands=commands, concurrency=8, budget_tokens=200)
        page, _, _ = await call(client, "ctx_read", handle=f"{facts['receipts']}:151")
    assert estimate_tokens(text) <= 200 and text.startswith("200 items: ") and "#151: exit 1" in text
    assert facts["counts"] == {"ok": 199, "failed": 1} and "#151: exit 1" in page
    assert (
        facts["left_out"] == {"items": 200 - len(facts["items"])}
        and estimate_tokens(json.dumps(facts, separators=(",", ":"))) <= 200
    )


async def test_an_image_is_an_artifact_and_shown_only_when_asked(connect: Any) -> None:
    async with connect() as client:
        text, facts, quiet = await call(client, "ctx_execute", code=PICTURE)
        _, _, shown = await call(client, "ctx_execute", code=PICTURE, images=True)
    assert facts["artifacts"][0]["mime"] == "image/png" and facts["artifacts"][0]["handle"] in text
    assert ([part.type for part in quiet.content], [part.type for part in shown.content]) == (["text"], ["text", "image"])


async def test_query_scope_all_looks_beyond_the_batch(connect: Any) -> None:
    async with connect() as client:
        await call(client, "ctx_execute", code="print('the earlier okapi')")
        here, _, _ = await call(client, "ctx_batch_execute", commands=["seq 1 2000"], queries=["okapi"])
        everywhere, _, _ = await call(client, "ctx_batch_execute", commands=["seq 1 2000"], queries=["okapi"], query_scope="all")
    assert ("earlier okapi" in here, "earlier okapi" in everywhere) == (False, True)


async def test_equal_labels_never_overwrite_each_other(connect: Any) -> None:
    commands = [{"label": "same", "command": f"echo version {n}"} for n in (1, 2)]
    async with connect() as client:
        _, facts, _ = await call(client, "ctx_batch_execute", commands=commands)
        found, _, _ = await call(client, "ctx_search", queries=["version"], source="batch:same")
    assert all(f"{item['handle']}:" in found for item in facts["items"])
