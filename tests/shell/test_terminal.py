"""The shell in a real terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Open = Callable[..., Any]


@pytest.fixture
def shell(terminal: Open) -> Any:
    """A shell that waits for its first input."""
    one = terminal()
    one.ready()
    return one


def test_variables_live_from_one_input_to_the_next(shell: Any) -> None:
    shell.enter("x = 41")
    shell.ready()
    shell.enter("x + 1")
    assert "\n42\n" in shell.see("\n42\n")


def test_a_block_is_edited_over_several_lines_and_indented(shell: Any) -> None:
    shell.enter("def f():")
    shell.type("return 6 * 7", "Enter", "Enter")
    shell.ready()
    shell.enter("f()")
    shell.see("    return 6 * 7\n", "\n42\n")


def test_tab_completes_what_the_kernel_knows(shell: Any) -> None:
    shell.enter("giraffe_number_one = 17")
    shell.ready()
    shell.type("giraffe_n", "Tab")
    shell.see("terminal> giraffe_number_one\n")
    shell.type("", "Enter")
    shell.see("\n17\n")


def test_a_question_mark_asks_the_kernel(shell: Any) -> None:
    shell.enter("len?")
    shell.see("Return the number of items in a container")


def test_ctrl_c_interrupts_the_kernel_and_keeps_shell_and_variables(shell: Any) -> None:
    shell.enter("kept = 'still here'")
    shell.ready()
    shell.enter("print('started', flush=True); import time; time.sleep(600)")
    shell.see("\nstarted\n")
    shell.type("", "C-c")
    shell.see("KeyboardInterrupt")
    shell.ready()
    shell.enter("kept")
    shell.see("'still here'\n")


def test_ctrl_c_at_the_prompt_gives_the_line_up(shell: Any) -> None:
    shell.type("never run", "C-c")
    shell.enter("'run'")
    assert "\n'run'\n" in shell.see("\n'run'\n")


def test_a_second_ctrl_c_ends_what_does_not_heed_the_first(shell: Any) -> None:
    shell.enter("!trap 'echo heard' INT; echo deaf; while :; do read -r -t 600 _ <> <(:); done")
    shell.see("\ndeaf\n")
    shell.type("", "C-c")
    shell.see("heard")
    shell.type("", "C-c")
    shell.see("cancelled")
    shell.ready()


def test_ctrl_d_leaves_with_code_zero(shell: Any) -> None:
    shell.enter("1 / 0")
    shell.see("ZeroDivisionError")
    shell.ready()
    shell.type("", "C-d")
    shell.see("ENDED=0")


def test_a_dead_kernel_says_why_and_is_started_again_on_request(shell: Any) -> None:
    shell.enter("import os; os._exit(5)")
    shell.see("The kernel terminal is gone, and its variables: exit 5.", "Start it again? [Y/n]")
    shell.type("y", "Enter")
    shell.see("terminal runs again, empty")
    shell.ready()
    shell.enter("'os' in globals()")
    shell.see("\nFalse\n")


def test_a_killed_kernel_that_is_not_wanted_back_comes_with_the_next_input(shell: Any) -> None:
    shell.enter("import os; os.kill(os.getpid(), 9)")
    shell.see("killed by SIGKILL", "[Y/n]")
    shell.type("n", "Enter")
    shell.ready()
    shell.enter("6 * 7")
    shell.see("terminal runs again, empty", "\n42\n")


def test_a_long_output_shows_its_head_its_tail_and_a_count(shell: Any) -> None:
    shell.enter("for n in range(1000): print('row', n)")
    screen = shell.see("row 999", "not shown")
    assert [row in screen for row in ("row 0\n", "row 500\n", "row 998\n")] == [True, False, True]
    assert "983 lines not shown; :more shows them" in screen


def test_more_goes_on_where_the_head_ended(shell: Any) -> None:
    shell.enter("for n in range(1000): print('row', n)")
    shell.see("not shown")
    shell.ready()
    shell.enter(":more")
    screen = shell.see("968 more lines: :more")
    assert ("| row 12\n" in screen, "| row 31\n" in screen) == (True, True)


def test_what_was_captured_is_searched_and_read(shell: Any) -> None:
    shell.enter("for n in range(1000): print('row', n, 'okapi' if n == 777 else '')")
    handle = shell.see("all is in").partition("all is in ")[2].split()[0]
    shell.ready()
    shell.enter(":search okapi")
    shell.see("| row 777 okapi")
    shell.enter(f":read {handle}:778-778")
    shell.see(f"{handle}:778-778 of 1000")


def test_output_is_shown_while_the_script_runs(shell: Any, place: Any) -> None:
    shell.enter("import os; print('one', flush=True)")
    shell.ready()
    shell.enter("print('two', flush=True); fd = os.open('gate', os.O_RDONLY); os.read(fd, 1); print('three')")
    shell.see("FileNotFoundError")  # before: there is no gate
    shell.enter("os.mkfifo('gate')")
    shell.enter("print('four', flush=True); fd = os.open('gate', os.O_RDONLY); _ = os.read(fd, 1); print('five')")
    assert "\nfive\n" not in shell.see("\nfour\n")
    (place.project / "gate").write_text("x")
    shell.see("\nfive\n")


def test_a_progress_bar_redraws_its_line(shell: Any) -> None:
    shell.enter("for n in range(0, 101, 10): print(f'\\rdone {n}%', end='', flush=True)")
    screen = shell.see("done 100%")
    shell.ready()
    assert [line for line in screen.splitlines() if line.startswith("done")] == ["done 100%"]


def test_control_sequences_never_reach_the_terminal(shell: Any) -> None:
    shell.enter("print('\\x1b]2;stolen\\x07\\x1b[2J\\x1b[31mharmless\\x1b[0m \\x9b2J \\x1bc end')")
    assert "terminal> print(" in shell.see("\nharmless   end\n")
    assert "stolen" not in shell.tmux("display-message", "-p", "#{pane_title}")


def test_a_pasted_script_of_a_thousand_lines_is_one_input(shell: Any) -> None:
    shell.paste("total = 0\n" + "total += 1\n" * 998 + "print('total', total)")
    shell.type("", "Enter")
    shell.see("\ntotal 998\n")


def test_a_terminal_that_is_resized_gets_what_fits(shell: Any) -> None:
    shell.tmux("resize-window", "-x", "60", "-y", "50")
    shell.enter("for n in range(1000): print('row', n)")
    assert "957 lines not shown" in shell.see("row 999", "not shown")


def test_a_denied_input_is_refused_with_its_rule(shell: Any) -> None:
    shell.enter("import requests")
    shell.see("denied: There is no network")
    shell.enter(":policy import requests")
    shell.see("deny by default/python-http")


def test_the_history_is_kept_for_the_project_and_is_private(shell: Any, terminal: Open, place: Any, tmp_path: Any) -> None:
    shell.enter("'a line to remember'")
    shell.see("\n'a line to remember'\n")
    shell.ready()
    shell.type("", "C-d")
    shell.see("ENDED=0")
    (file,) = (tmp_path / "data" / "shell").iterdir()
    again = terminal()
    again.ready()
    again.type("", "Up")
    again.see("terminal> 'a line to remember'")
    assert oct(file.stat().st_mode)[-3:] == "600"


def test_a_dumb_terminal_is_spoken_to_plainly(terminal: Open) -> None:
    dumb = terminal(term="dumb")
    dumb.ready()
    dumb.enter("def f():")
    dumb.see("...")
    dumb.enter("    return 6 * 7")
    dumb.enter("")
    dumb.ready()
    dumb.enter("f()")
    dumb.see("\n42\n")
    dumb.ready()
    dumb.enter("print('started', flush=True); import time; time.sleep(600)")
    dumb.see("\nstarted\n")
    dumb.type("", "C-c")
    dumb.see("KeyboardInterrupt")
    dumb.ready()
    dumb.type("", "C-d")
    dumb.see("ENDED=0")


def test_other_languages_run_fresh(shell: Any) -> None:
    shell.enter(":lang shell")
    shell.ready("shell")
    shell.enter("for n in 1 2; do")
    shell.type("echo $((n * 21))", "Enter")
    shell.enter("done")
    shell.see("\n42\n")
    shell.enter(":lang pyton")
    shell.see("unknown language 'pyton'")


def test_a_line_of_shell_runs_in_the_sandbox(shell: Any) -> None:
    shell.enter("!pwd; cat /proc/net/route | wc -l")
    shell.see("project\n1\n")


@pytest.mark.parametrize(("mode", "said"), [("ro", "writes nothing there."), ("overlay", "is kept aside")])
def test_the_greeting_says_what_becomes_of_files(terminal: Any, place: Any, mode: str, said: str) -> None:
    place.environment["SANDBOXMCP_WORKSPACE_MODE"] = mode
    shell = terminal()
    shell.ready()
    assert said in " ".join(shell.screen().split())
