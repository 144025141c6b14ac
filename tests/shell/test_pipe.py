"""The shell through a pipe: no prompt, no colour, the exit code of the last input."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Pipe = Callable[..., Any]


def test_each_statement_is_an_input_and_nothing_else_is_written(pipe: Pipe) -> None:
    said = pipe("x = 41", "print(x)", "def f():", "    y = 1", "", "    return x + y", "f()", "# the end")
    assert (said.code, said.out, said.err) == (0, "41\n42\n", "")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("1 / 0",), 1),
        (("1 / 0", "print('on')"), 0),
        (("import requests",), 3),
        ((":nope",), 2),
        ((":policy ls",), 0),
        (("!exit 7",), 1),
        (("import os; os._exit(0)",), 0),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_exit_code_is_that_of_the_last_input(pipe: Pipe, lines: tuple[str, ...], code: int) -> None:
    assert pipe(*lines).code == code


def test_an_error_goes_to_stderr_and_the_next_input_runs(pipe: Pipe) -> None:
    said = pipe("undefined", "print('next')")
    assert (said.out, said.err.splitlines()[-1]) == ("next\n", "NameError: name 'undefined' is not defined")


def test_a_large_output_comes_whole_and_harmless(pipe: Pipe) -> None:
    said = pipe("for n in range(5000): print(n, '\\x1b[31mred')")
    assert said.out == "".join(f"{n} red\n" for n in range(5000))


def test_what_has_no_line_end_gets_none(pipe: Pipe) -> None:
    assert pipe("print('a', end='')", "print('b', end='')").out == "ab"


def test_a_kernel_that_ends_says_so_and_the_next_input_starts_another(pipe: Pipe) -> None:
    said = pipe("x = 1", "import os; os._exit(9)", "print('x' in globals())")
    notes = ["sandboxmcp: The kernel terminal is gone, and its variables: exit 9.", "terminal runs again, empty"]
    assert (said.out, said.err.splitlines()) == ("False\n", notes)


def test_with_json_each_input_is_one_document(pipe: Pipe) -> None:
    first, second, third = pipe("print(6 * 7)", "1 / 0", ":policy ls", arguments=("--json",)).documents
    assert (first["ok"], first["status"], first["text"]) == (True, "ok", "42\n")
    assert (second["ok"], second["code"], "ZeroDivisionError" in second["text"]) == (False, 1, True)
    assert (third["ok"], third["text"]) == (True, "allow\n")


def test_a_name_or_language_that_cannot_be_used_is_a_usage_error(pipe: Pipe) -> None:
    codes = [pipe("1", arguments=given).code for given in (("--kernel", "a/b"), ("--kernel", "x" * 300), ("--lang", "klingon"))]
    assert codes == [2, 2, 2]


def test_a_shell_under_a_pipe_answers_line_by_line(talk: Callable[..., Any]) -> None:
    one = talk()
    assert [one.ask("print(1)"), one.ask("2"), one.ask("3")] == ["1", "2", "3"]
    assert one.close() == 0


def test_an_output_that_cannot_be_written_is_one_line_of_error(sandbox: None, place: Any) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            place.command(),
            input="print(1)\n",
            env=place.environment,
            cwd=place.project,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "sandboxmcp: the output cannot be written: No space left on device. Make room, or write it elsewhere.\n",
    )


def test_what_is_run_is_stored_as_an_agent_s_calls_are(pipe: Pipe) -> None:
    assert "execute:python" in pipe("print('okapi')", ":sources").out
