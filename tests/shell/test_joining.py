"""A person joins a kernel of another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def agent(talk: Callable[..., Any]) -> Any:
    """Another process with a kernel called work, in which a variable was set."""
    other = talk("--kernel", "work")
    assert other.ask("found = 17; print(found)") == "17"
    return other


def test_a_person_sees_and_changes_the_variables_of_the_other_s_kernel(agent: Any, terminal: Callable[..., Any]) -> None:
    shell = terminal()
    shell.ready()
    shell.enter(":connect work")
    shell.ready(f"work@{agent.process.pid}")
    shell.enter("found")
    shell.see("\n17\n")
    shell.enter("found += 25; print('changed')")
    shell.see("\nchanged\n")
    assert agent.ask("found") == "42"


def test_completion_and_inspection_work_in_a_joined_kernel(agent: Any, terminal: Callable[..., Any]) -> None:
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    shell.type("foun", "Tab")
    shell.see("> found\n")
    shell.type("?", "Enter")
    shell.see("String form: 17")


def test_ctrl_c_in_a_joined_kernel_interrupts_what_the_person_runs(agent: Any, terminal: Callable[..., Any]) -> None:
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    shell.enter("print('mine', flush=True); import time; time.sleep(600)")
    shell.see("\nmine\n")
    shell.type("", "C-c")
    shell.see("KeyboardInterrupt")
    assert agent.ask("found") == "17"


def test_who_waits_for_the_other_s_script_gives_up_without_disturbing_it(
    agent: Any, terminal: Callable[..., Any], place: Any
) -> None:
    os.mkfifo(place.project / "gate")
    assert agent.ask("print('busy', flush=True); _ = open('gate').read(); print('undisturbed')") == "busy"
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    shell.enter("found")
    shell.see("waiting for its turn")
    shell.type("", "C-c")
    shell.see("cancelled")
    (place.project / "gate").write_text("")
    assert agent.read() == "undisturbed"


ENDING = "print('busy', flush=True); import os; _ = open('gate').read(); os._exit(7)"


def test_an_input_that_waited_for_a_joined_kernel_that_ends_is_not_run(
    agent: Any, terminal: Callable[..., Any], place: Any
) -> None:
    os.mkfifo(place.project / "gate")
    assert agent.ask(ENDING) == "busy"
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    shell.enter("print('it', 'ran')")
    shell.see("waiting for its turn")
    (place.project / "gate").write_text("")
    assert "it ran" not in shell.see("is gone, and its variables", "the input was not run", "back at work")


def test_an_input_that_waited_for_a_kernel_that_is_started_anew_is_not_run_in_the_new_one(
    agent: Any, terminal: Callable[..., Any], place: Any
) -> None:
    assert agent.ask("print('busy', flush=True); import time; time.sleep(600)") == "busy"
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    shell.enter("print('it', 'ran')")
    shell.see("waiting for its turn")
    restart = [sys.executable, "-m", "sandboxmcp", "kernels", "restart", "work"]
    subprocess.run(restart, env=place.environment, cwd=place.project, check=True, capture_output=True)
    shell.see("its variables", "the input was not run")
    assert "it ran" not in shell.screen(history=True)


def test_an_input_that_waited_for_one_s_own_kernel_that_ends_is_not_run_and_a_restart_is_offered(
    terminal: Callable[..., Any], talk: Callable[..., Any], place: Any
) -> None:
    os.mkfifo(place.project / "gate")
    shell = terminal("--kernel", "mine")
    shell.ready("mine")
    agent = talk("--kernel", "mine")
    assert agent.ask(ENDING) == "busy"
    shell.enter("print('it', 'ran')")
    shell.see("waiting for its turn")
    (place.project / "gate").write_text("")
    assert "it ran" not in shell.see("the input was not run", "Start it again? [Y/n]")
    shell.type("y", "Enter")
    shell.see("mine runs again, empty")


@pytest.mark.parametrize(("answer", "seen"), [("y", "\nallowed\n"), ("n", "denied: The user was asked and said no.")])
def test_the_policy_s_questions_in_a_joined_kernel_are_put_to_who_sits_at_the_terminal(
    terminal: Callable[..., Any], talk: Callable[..., Any], place: Any, asks: str, answer: str, seen: str
) -> None:
    (place.project / "asks.toml").write_text(asks)
    place.environment["SANDBOXMCP_POLICY_PACKS"] = f"default,{place.project}/asks.toml"
    agent = talk("--kernel", "work")
    assert agent.ask("print(1)") == "1"
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    shell.enter("import colorsys; print('allowed')")
    screen = shell.see("May this python code run? It has colours.", "[Y/n]")
    assert "waiting for its turn" not in screen
    shell.type(answer, "Enter")
    shell.see(seen)


def test_a_joined_output_is_the_person_s_and_none_of_the_other_s(agent: Any, talk: Callable[..., Any]) -> None:
    person = talk("--kernel", "work", "--json")
    document = json.loads(person.ask("print('for the person')"))
    assert (document["text"], agent.ask("print('for the agent')")) == ("for the person\n", "for the agent")


def test_the_list_shows_the_kernels_of_both(agent: Any, talk: Callable[..., Any]) -> None:
    person = talk()
    rows = [person.ask(":kernels").split("\t"), person.read().split("\t"), person.read().split("\t")]
    assert [row[:4] for row in rows[1:]] == [
        ["terminal", "python", "here", "idle"],
        [f"work@{agent.process.pid}", "python", "this project", "idle"],
    ]


def test_a_kernel_whose_process_ends_is_gone_for_who_joined_it(agent: Any, terminal: Callable[..., Any]) -> None:
    shell = terminal("--kernel", "work")
    shell.ready(f"work@{agent.process.pid}")
    agent.close()
    shell.enter("found")
    shell.see("is gone, and its variables", "back at work")


def test_connection_files_are_private_and_go_with_their_kernels(agent: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "kernels"
    (file,) = folder.glob("*.json")
    facts = json.loads(file.read_text())
    assert ({*facts} >= {"transport", "ip", "key", "shell_port", "iopub_port"}, oct(file.stat().st_mode)[-3:]) == (True, "600")
    assert (oct(folder.stat().st_mode)[-3:], agent.close(), list(folder.iterdir())) == ("700", 0, [])


def test_what_a_killed_process_left_is_cleared_away(agent: Any, talk: Callable[..., Any], tmp_path: Path) -> None:
    agent.process.kill()
    agent.process.wait()
    person = talk()
    assert [person.ask(":kernels").split("\t")[0], person.read().split("\t")[0]] == ["kernel", "terminal"]
    names = sorted(file.name for file in (tmp_path / "data" / "kernels").iterdir())
    session = names[0].partition("-")[0]
    assert names == [f"{session}-terminal.json", f"{session}.{person.process.pid}.door"]


def test_a_name_that_two_processes_have_is_asked_for_with_its_number(talk: Callable[..., Any], pipe: Callable[..., Any]) -> None:
    first, second = talk("--kernel", "twin"), talk("--kernel", "other")
    first.ask("print(1)")
    second.ask("print(1)")
    said = pipe(":connect nobody", f":connect twin@{first.process.pid}", "print('there')")
    assert (said.out, "no kernel 'nobody' runs anywhere" in said.err) == ("there\n", True)
