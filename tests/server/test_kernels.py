"""Named kernels, background jobs and bound files through a real client on the real sandbox, both eras."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from sandboxmcp.core.settings import load_settings
from sandboxmcp.server.app import make_server
from sandboxmcp.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox")]


async def call(client: Any, tool: str, **arguments: Any) -> tuple[str, dict[str, Any], Any]:
    result = await client.call_tool(tool, arguments, read_timeout_seconds=90)
    return result.content[0].text, result.structured_content, result


async def until(found: Any) -> None:
    with anyio.fail_after(30):
        while not found():
            await anyio.to_thread.run_sync(threading.Event().wait, 0.01)


async def ended(client: Any, job: str) -> tuple[str, dict[str, Any]]:
    """The result of a background job, once it has one."""
    with anyio.fail_after(60):
        while True:
            text, facts, _ = await call(client, "ctx_jobs", action="result", job=job)
            if facts.get("state") != "running":
                return text, facts


# named kernels


async def test_variables_live_on_in_a_named_kernel_and_nowhere_else(connect: Any) -> None:
    async with connect() as client:
        await call(client, "ctx_execute", code="x = 41", kernel="a")
        told, _, _ = await call(client, "ctx_execute", code="print(x + 1)", kernel="a")
        other, facts, _ = await call(client, "ctx_execute", code="x")
    assert told.endswith("| 42") and facts["exit_code"] == 1 and "NameError" in other


async def test_a_script_that_leaves_a_named_kernel_has_its_code_and_no_hint_of_ipython_s(connect: Any) -> None:
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_execute", code="raise SystemExit(3)", kernel="a")
    assert facts["exit_code"] == 3 and text.endswith("no output")


async def test_items_of_a_batch_may_name_kernels(connect: Any) -> None:
    commands = [{"label": "set", "code": "y = 7", "language": "python", "kernel": "b"}, "echo fresh"]
    async with connect() as client:
        await call(client, "ctx_batch_execute", commands=commands)
        again = [{"label": "get", "code": "print(y * 6)", "language": "python", "kernel": "b"}]
        text, _, _ = await call(client, "ctx_batch_execute", commands=again)
    assert text.endswith("| 42")


async def test_kernels_are_listed_restarted_and_stopped(connect: Any) -> None:
    async with connect() as client:
        empty, _, _ = await call(client, "ctx_kernels")
        await call(client, "ctx_execute", code="one = 1", kernel="c")
        text, facts, _ = await call(client, "ctx_kernels")
        await call(client, "ctx_kernels", action="restart", kernel="c")
        anew, _, _ = await call(client, "ctx_execute", code="'one' in globals()", kernel="c")
        await call(client, "ctx_kernels", action="stop", kernel="c")
        _, none, _ = await call(client, "ctx_kernels")
    assert empty.startswith("no named kernels run") and text.startswith("c: python, idle ")
    state = facts["kernels"][0]
    assert (state["name"], state["calls"], state["variables"], state["memory"] > 0) == ("c", 1, 1, True)
    assert anew.endswith("| False") and none["kernels"] == []


async def test_an_interrupt_of_an_idle_kernel_says_that_there_was_nothing_to_interrupt(connect: Any) -> None:
    async with connect() as client:
        await call(client, "ctx_execute", code="one = 1", kernel="c")
        said, _, _ = await call(client, "ctx_kernels", action="interrupt", kernel="c")
        kept, _, _ = await call(client, "ctx_execute", code="one", kernel="c")
    assert said == "c: it runs nothing that could be interrupted" and kept.endswith("| 1")


async def test_an_interrupt_reaches_a_kernel_that_is_busy_in_c_code(connect: Any, tmp_path: Path) -> None:
    code = "import pathlib, re; kept = 5; pathlib.Path('begun').touch(); re.match('(a+)+$', 'a' * 60 + 'b')"
    ends: list[Any] = []

    async def run(client: Any) -> None:
        ends.append(await call(client, "ctx_execute", code=code, kernel="d"))

    async with connect() as client:
        async with anyio.create_task_group() as group:
            group.start_soon(run, client)
            await until((tmp_path / "project" / "begun").exists)
            await call(client, "ctx_kernels", action="interrupt", kernel="d")
        kept, _, _ = await call(client, "ctx_execute", code="print(kept)", kernel="d")
    assert "KeyboardInterrupt" in ends[0][0] and ends[0][1]["exit_code"] == 1 and kept.endswith("| 5")


async def test_a_kernel_that_is_stopped_while_a_client_waits_says_so(connect: Any, tmp_path: Path) -> None:
    code = "import pathlib, time; print('half', flush=True); pathlib.Path('begun').touch(); time.sleep(60)"
    ends: list[Any] = []

    async def run(client: Any) -> None:
        ends.append(await call(client, "ctx_execute", code=code, kernel="e"))

    async with connect() as client, anyio.create_task_group() as group:
        group.start_soon(run, client)
        await until((tmp_path / "project" / "begun").exists)
        await call(client, "ctx_kernels", action="stop", kernel="e")
    text, facts, _ = ends[0]
    assert facts["status"] == "killed" and "| half" in text and "the kernel e ended, its variables are gone" in text


async def test_two_calls_of_one_kernel_wait_for_each_other(connect: Any) -> None:
    ends: dict[str, str] = {}

    async def run(client: Any, name: str, code: str) -> None:
        ends[name] = (await call(client, "ctx_execute", code=code, kernel="f"))[0]

    slow = "import time\nfor i in range(5): print('one', flush=True); time.sleep(0.05)"
    async with connect() as client, anyio.create_task_group() as group:
        group.start_soon(run, client, "one", slow)
        group.start_soon(run, client, "two", "print('two')")
        await until(lambda: len(ends) == 2)
    assert ends["one"].count("| one") == 5 and "two" not in ends["one"] and ends["two"].endswith("| two")


async def test_an_idle_kernel_is_ended_with_a_notice(connect: Any) -> None:
    async with connect(kernel_idle_s=0.3) as client:
        await call(client, "ctx_execute", code="z = 1", kernel="g")
        with anyio.fail_after(20):
            while not (text := (await call(client, "ctx_kernels"))[0]).startswith("note: "):
                pass
        gone, _, _ = await call(client, "ctx_execute", code="'z' in globals()", kernel="g")
    assert text.splitlines()[0] == "note: the kernel g was ended after 0.3 s without use (kernel_idle_s)"
    assert gone.endswith("| False")


async def test_a_new_sandbox_says_whose_variables_went_with_the_old_one(connect: Any, tmp_path: Path) -> None:
    async with connect() as client:
        await call(client, "ctx_execute", code="v = 1", kernel="h")
        (tmp_path / "project" / ".envrc").write_text("export X=1\n")
        text, _, _ = await call(client, "ctx_execute", code="print('v' in globals())", kernel="h")
    assert (
        text.startswith("note: a new sandbox was started (protected files of the project have changed") and "of h are gone" in text
    )


async def test_the_working_folder_can_be_chosen(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    async with connect() as client:
        for language, code in (("python", "import os; print(os.getcwd())"), ("shell", "pwd"), ("perl", "use Cwd; print getcwd")):
            text, _, _ = await call(client, "ctx_execute", code=code, language=language, cwd="sub")
            assert text.endswith(f"| {tmp_path}/project/sub")


# background jobs


async def test_a_background_job_returns_at_once_and_its_result_is_there_later(connect: Any, tmp_path: Path) -> None:
    code = "until [ -e go ]; do sleep 0.01; done; echo zebra"
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_execute", code=code, language="shell", background=True)
        _, running, _ = await call(client, "ctx_jobs", action="result", job=facts["job"])
        (tmp_path / "project" / "go").touch()
        result, end = await ended(client, facts["job"])
        listed, _, _ = await call(client, "ctx_jobs")
    assert "started" in text and running["state"] == "running"
    assert result.endswith("| zebra") and (end["state"], end["exit_code"]) == ("ok", 0)
    assert listed.startswith(f"{facts['job']}: ok, shell, ")


async def test_a_cancelled_background_job_keeps_what_it_printed(connect: Any, tmp_path: Path) -> None:
    async with connect() as client:
        code = "echo giraffe; touch begun; sleep 60"
        _, facts, _ = await call(client, "ctx_execute", code=code, language="shell", background=True)
        await until((tmp_path / "project" / "begun").exists)
        text, end, _ = await call(client, "ctx_jobs", action="cancel", job=facts["job"])
    assert (end["state"], "| giraffe" in text) == ("cancelled", True)


async def test_a_job_survives_a_client_that_reconnects_and_not_its_server(tmp_path: Path, era: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    flags = {"data_dir": str(tmp_path / "data"), "workspace": str(project)}
    settings = load_settings(flags, environ={"HOME": str(tmp_path)}, project=project)
    session = Session(settings)
    code = "echo okapi; touch begun; sleep 60"
    async with Client(make_server(session), mode=era) as client:
        _, facts, _ = await call(client, "ctx_execute", code=code, language="shell", background=True)
    await until((project / "begun").exists)
    async with Client(make_server(session), mode=era) as client:
        _, running, _ = await call(client, "ctx_jobs", action="result", job=facts["job"])
    await session.close()
    later = Session(settings)
    async with Client(make_server(later), mode=era) as client:
        text, end, _ = await call(client, "ctx_jobs", action="result", job=facts["job"])
        found, _, _ = await call(client, "ctx_search", queries=["okapi"])
    await later.close()
    assert (running["state"], end["state"], "| okapi" in found) == ("running", "cancelled", True)
    assert text.startswith("cancelled, ") and text.endswith("\n| okapi")


async def test_a_job_whose_server_was_killed_is_told_as_lost(connect: Any, tmp_path: Path) -> None:
    record = {"job": "jabcdef", "project": str(tmp_path / "project"), "language": "python", "state": "running", "wall_s": 0.0}
    record |= {"handles": [], "pid": os.getpid(), "mark": "another time", "at": 4e9}
    (tmp_path / "data" / "jobs").mkdir(parents=True)
    (tmp_path / "data" / "jobs" / "jabcdef.json").write_text(json.dumps(record))
    async with connect() as client:
        text, facts, result = await call(client, "ctx_jobs", action="result", job="jabcdef")
    assert (facts["state"], result.is_error) == ("lost", True)
    assert text.endswith(f"its server {os.getpid()} ended; what it had printed may be found by ctx_search")


# bound files


async def test_a_script_reads_a_file_without_the_file_entering_the_answer(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "log.txt").write_text("secretive line\n" * 1000)
    counting = "print(FILE_PATH, FILE_CONTENT.count('\\n'), FILE_CONTENT_PATH == FILE_PATH)"
    async with connect() as client:
        text, facts, _ = await call(
            client,
            "ctx_execute_file",
            path="log.txt",
            code=counting,
        )
        shell, _, _ = await call(client, "ctx_execute_file", path="log.txt", code='wc -l < "$FILE_PATH"', language="shell")
    assert text.endswith(f"| {tmp_path}/project/log.txt 1000 True") and "secretive" not in text
    assert shell.endswith("| 1000") and facts["status"] == "ok"


async def test_a_glob_runs_the_script_once_for_each_file(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    for number in range(3):
        (tmp_path / "project" / f"{number}.csv").write_text("x\n" * number)
    async with connect() as client:
        _, facts, _ = await call(client, "ctx_execute_file", paths=["*.csv"], code="print(len(FILE_CONTENT))")
    assert [(item["label"], item["status"]) for item in facts["items"]] == [("0.csv", "ok"), ("1.csv", "ok"), ("2.csv", "ok")]


async def test_what_a_glob_matches_and_may_not_be_read_is_left_out_and_told(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    for name in (".env", "a.txt", "b.txt"):
        (tmp_path / "project" / name).write_text("x")
    (tmp_path / "project" / "gone").symlink_to("nowhere")
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_execute_file", path="*", code="print(FILE_PATH)")
        named, _, result = await call(client, "ctx_execute_file", paths=["*", ".env"], code="print(FILE_PATH)")
    assert [(item["label"], item["status"]) for item in facts["items"]] == [("a.txt", "ok"), ("b.txt", "ok")]
    assert text.count("left out: ") == 2 and ".env looks like a file of secrets" in text and "gone cannot be read" in text
    assert result.is_error and ".env looks like a file of secrets" in named


async def test_a_glob_of_ten_thousand_files_is_refused_before_anything_runs(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    for number in range(10_000):
        (tmp_path / "project" / f"{number}.txt").touch()
    async with connect() as client:
        text, _, result = await call(client, "ctx_execute_file", paths="*.txt", code="1")
    assert result.is_error and text.startswith("more than 500 files match *.txt")


async def test_a_file_of_another_allowed_folder_is_copied_in_and_is_not_writable_there(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs" / "big.log"
    file.write_text("row\n" * 100_000)
    code = "import os; print(len(FILE_CONTENT), os.path.basename(FILE_PATH)); open(FILE_PATH, 'a')"
    async with connect(ingest_roots=str(tmp_path / "logs")) as client:
        text, _, _ = await call(client, "ctx_execute_file", path=str(file), code=code)
        perl = "print length($FILE_CONTENT)"
        other, _, _ = await call(client, "ctx_execute_file", path=str(file), code=perl, language="perl")
        left, _, _ = await call(client, "ctx_execute", code="ls -d /tmp/.file-* | wc -l", language="shell")
    assert "| 400000 big.log" in text and "PermissionError" in text and other.endswith("| 400000")
    assert file.stat().st_size == 400_000 and "| 0" in left


async def test_a_link_out_of_the_allowed_folders_is_refused(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "link").symlink_to("/etc/passwd")
    async with connect() as client:
        text, _, result = await call(client, "ctx_execute_file", path="link", code="print(FILE_CONTENT)")
    assert result.is_error and text.startswith("/etc/passwd lies outside the folders that may be read")


@pytest.mark.parametrize("language", ["python", "shell"])
async def test_half_a_gigabyte_can_be_bound(connect: Any, tmp_path: Path, language: str) -> None:
    (tmp_path / "project").mkdir()
    with (tmp_path / "project" / "huge.txt").open("wb") as file:
        for _ in range(500):
            file.write(b"x" * 999_999 + b"\n")
    code = {"python": "print(len(FILE_CONTENT))", "shell": 'echo "${#FILE_CONTENT}"'}[language]
    async with connect() as client:
        text, facts, _ = await call(client, "ctx_execute_file", path="huge.txt", code=code, language=language)
    (tmp_path / "project" / "huge.txt").unlink()  # pytest keeps the folders of its last runs
    assert (facts["status"], text.rpartition("| ")[2]) == ("ok", {"python": "500000000", "shell": "499999999"}[language])


async def test_a_language_that_is_not_installed_is_an_error_that_says_what_to_install(connect: Any) -> None:
    async with connect() as client:
        text, facts, result = await call(client, "ctx_execute", code="IO.puts 1", language="elixir")
    if facts["status"] == "ok":
        pytest.skip("elixir is installed here")
    assert (facts["status"], result.is_error) == ("skipped", True)
    assert "elixir is not installed. Install Elixir (apt-get install elixir)" in text


async def test_a_file_in_utf_16_is_bound_as_its_text(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "wide.txt").write_text("Grüße aus Köln", encoding="utf-16")
    async with connect() as client:
        text, _, _ = await call(client, "ctx_execute_file", path="wide.txt", code="print(FILE_CONTENT)")
    assert text.endswith("| Grüße aus Köln")


async def test_where_a_project_is_only_read_the_first_answer_says_so(connect: Any) -> None:
    async with connect(workspace_mode="ro") as client:
        texts = [(await call(client, "ctx_execute", code="print(1)"))[0] for _ in range(2)]
    assert [text.startswith("note: scripts may not write in the project (workspace_mode ro)") for text in texts] == [True, False]


async def test_a_file_of_secrets_is_refused_and_not_silently_empty(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".env").write_text("TOKEN=1")
    async with connect() as client:
        text, _, result = await call(client, "ctx_execute_file", path=".env", code="print(FILE_CONTENT)")
    assert result.is_error and "looks like a file of secrets" in text


@pytest.mark.parametrize(
    ("language", "broken", "said"),
    [
        (
            "elixir",
            {"elixir": "echo 'erl: not found' >&2; exit 127"},
            "elixir is not installed (it says: erl: not found). Install Elixir",
        ),
        ("csharp", {"mcs": "exit 0", "mono": "exit 127"}, "csharp is not installed. Install Mono's runtime"),
        ("typescript", {"deno": "exit 1"}, "Install Node.js 22.6 or newer (https://nodejs.org), deno, bun or tsx"),
    ],
    ids=["its virtual machine is missing", "its second half is missing", "nothing runs it"],
)
async def test_half_a_language_is_an_error_that_names_the_other_half(
    connect: Any, tmp_path: Path, language: str, broken: dict[str, str], said: str
) -> None:
    (tmp_path / "tools" / "bin").mkdir(parents=True)
    for name, text in broken.items():
        (tmp_path / "tools" / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "tools" / "bin" / name).chmod(0o755)
    async with connect(tool_folders=str(tmp_path / "tools")) as client:
        text, facts, result = await call(client, "ctx_execute", code="1", language=language)
    if facts["status"] in ("ok", "failed"):
        pytest.skip(f"{language} is installed here")
    assert result.is_error and said in text


async def test_an_item_in_a_language_that_is_not_installed_does_not_stop_the_others(connect: Any) -> None:
    async with connect() as client:
        _, facts, result = await call(
            client, "ctx_batch_execute", commands=[{"code": "IO.puts 1", "language": "elixir"}, "echo fine"]
        )
    assert (facts["items"][1]["status"], result.is_error) == ("ok", False)


async def test_doctor_tells_what_a_server_has_at_work(connect: Any) -> None:
    async with connect() as client:
        await call(client, "ctx_execute", code="x = 1", kernel="k")
        text, _, _ = await call(client, "ctx_doctor")
    (work,) = [line for line in text.split("\n") if line.startswith("ok work: ")]
    assert "1 session, 1 store" in work and "1 named kernel" in work and work.endswith("loops: reaping, guarding")
