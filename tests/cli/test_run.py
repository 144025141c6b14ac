"""`sandboxmcp run` and `doctor` on the real sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandboxmcp.kernels.languages import script_languages

pytestmark = pytest.mark.usefixtures("sandbox")


def test_a_script_s_output_is_shown(say: Any) -> None:
    said = say("run", "-c", "print(6 * 7)")
    assert (said.code, said.out.endswith("\n| 42\n"), said.err) == (0, True, "")


def test_a_failing_script_is_exit_code_one_with_its_stderr(say: Any) -> None:
    said = say("run", "-c", "raise SystemExit('over')")
    assert (said.code, "| over" in said.out) == (1, True)


def test_a_denied_script_is_exit_code_three_with_one_line(say: Any) -> None:
    said = say("run", "-c", "import requests")
    assert (said.code, said.out, said.err.count("\n"), said.err.startswith("sandboxmcp: denied")) == (3, "", 1, True)


def test_a_language_has_the_names_that_agents_use(say: Any) -> None:
    assert say("run", "--lang", "sh", "-c", "echo okapi").out.endswith("| okapi\n")


def test_the_ending_of_a_file_names_its_language(say: Any) -> None:
    Path("script.sh").write_text("echo $BASH_VERSION | wc -l\n")
    assert say("run", "script.sh").out.endswith("| 1\n")


def test_an_ending_that_names_no_language_is_an_error_unless_a_flag_does(say: Any) -> None:
    Path("cpp.cc").write_text("print(6 * 7)\n")
    refused, ran = say("run", "cpp.cc"), say("run", "cpp.cc", "--language", "py")
    assert (refused.code, "'cpp.cc' ends in '.cc'. Name it with --language" in refused.err) == (2, True)
    assert ran.out.endswith("| 42\n")


@pytest.mark.parametrize("line", ["#!/bin/bash", "#!/usr/bin/env -S bash -eu"])
def test_the_first_line_of_a_file_without_an_ending_names_its_language(say: Any, line: str) -> None:
    Path("script").write_text(f"{line}\necho $BASH_VERSION | wc -l\n")
    assert say("run", "script").out.endswith("| 1\n")


def test_what_is_said_of_a_timeout_names_the_flag(say: Any) -> None:
    assert "raise --timeout, or run less" in say("run", "--lang", "shell", "-c", "sleep 60", "--timeout", "0.5").out


@pytest.mark.parametrize(("typed", "code", "said"), [("y", 0, "\n| allowed\n"), ("n", 3, "The user was asked and said no.")])
def test_what_the_policy_asks_is_put_to_who_sits_at_the_terminal(
    asks: str, tmp_path: Path, typed: str, code: int, said: str
) -> None:
    (tmp_path / "asks.toml").write_text(asks)
    (tmp_path / "project").mkdir()
    flags = [
        "--workspace",
        str(tmp_path / "project"),
        "--data-dir",
        str(tmp_path / "data"),
        "--policy-packs",
        f"default,{tmp_path}/asks.toml",
    ]
    command = [sys.executable, "-m", "sandboxmcp", "run", *flags, "-c", "import colorsys; print('allowed')"]
    ours, theirs = os.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, env=environment, text=True) as process:
        asked = b""
        while not asked.endswith(b"[y/N] "):
            asked += os.read(ours, 1_000)
        os.write(ours, f"{typed}\n".encode())
        out, _ = process.communicate(timeout=60)
    told = out if code == 0 else os.read(ours, 4_000).decode()
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, b"It has colours." in asked, said in told) == (code, True, True)


def test_a_run_is_counted(say: Any) -> None:
    say("run", "-c", "print(1)")
    assert say("stats", "--json").document["tools"]["ctx_execute"]["captured_bytes"] == 2


def test_a_script_is_read_from_standard_input_and_queried(say: Any) -> None:
    said = say("run", "-", "--query", "row 777", "--budget", "200", stdin=b"for n in range(2000): print('row', n)")
    assert (said.code, "| row 777" in said.out) == (0, True)


def test_json_has_the_facts_and_the_text(say: Any) -> None:
    document = say("run", "-c", "print(1)", "--json").document
    assert (document["ok"], document["status"], document["bytes"], document["text"].endswith("| 1")) == (True, "ok", 2, True)


def test_what_one_command_ran_the_next_one_finds(say: Any) -> None:
    say("run", "-c", "print('okapi')")
    assert "| okapi" in say("search", "okapi").out


def test_doctor_finds_all_well_here_and_tries_every_language(say: Any) -> None:
    said = say("doctor", "--json")
    languages = {
        check["name"].removeprefix("runtime ") for check in said.document["checks"] if check["name"].startswith("runtime ")
    }
    assert (said.code, said.document["ok"]) == (0, True), said.document["text"]
    assert languages == {"python", *script_languages()}
    assert [check for check in said.document["checks"] if not check["ok"] and not check["fix"].startswith("Install ")] == []
