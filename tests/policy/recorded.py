"""What bash really runs of scripts, recorded inside the sandbox.

The scripts run in a sandbox of the project's own, many in one run. There `PATH` is one folder: each `c` with a number in it is a
recorder, a program that writes its own name into the log of the script that runs. Beside the recorders lie the few programs that
start others (`env`, `xargs`, `find`, `bash` and so on). A DEBUG trap, which functions and subshells inherit, records what bash
starts itself, and a name that is no program is recorded where bash looks for it in vain.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MOST_NAMES = 400
"""Recorders. No script has so many commands."""
_STARTERS = ("bash", "sh", "env", "xargs", "find", "nohup", "nice", "timeout", "setsid", "cat", "tee", "printf", "sleep")
_LOG = 9
"""The descriptor of the log, in every process of a script."""
_RECORDER = f'#!/bin/sh\necho "${{0##*/}}" >&{_LOG}\n'
_PRELUDE = f"""\
command_not_found_handle() {{ printf '%q\\n' "$1" >&{_LOG}; }}
export -f command_not_found_handle
set -T
trap 'case ${{BASH_COMMAND%%[[:space:];]*}} in [cd][0-9]*) echo "${{BASH_COMMAND%%[[:space:];]*}}" >&{_LOG};; esac' DEBUG
"""
_BOUND_S = 240.0
_NAME = re.compile(r"[cd]\d+")


def recorded(scripts: Sequence[str], inside: Any) -> list[set[str]]:
    """The names of the commands that bash ran of each script, as the sandbox recorded them."""
    folder: Path = inside.workspace / "scripts"
    shutil.rmtree(folder, ignore_errors=True)
    _write_programs(folder / "bin")
    (folder / "here").mkdir()
    for at, script in enumerate(scripts):
        (folder / f"{at}.sh").write_text(script)
    ran = inside.wait(inside.run_here(_driver(folder, len(scripts)), "shell", _BOUND_S), _BOUND_S + 10)
    assert ran.text.endswith("all scripts ran\n"), (ran.outcome.status, ran.stderr[-500:])
    return [_names(folder / f"{at}.log") for at in range(len(scripts))]


def _write_programs(folder: Path) -> None:
    folder.mkdir(parents=True)
    (recorder := folder / "c0").write_text(_RECORDER)
    recorder.chmod(0o755)
    for at in range(1, _MOST_NAMES):
        os.link(recorder, folder / f"c{at}")
    for name in _STARTERS:
        (folder / name).symlink_to(f"/usr/bin/{name}")


def _driver(folder: Path, count: int) -> str:
    """The script that runs all the others. Each has a process, a folder and a log of its own."""
    return (
        f"cd {folder}/here; PATH={folder}/bin; set +m\n{_PRELUDE}"
        f"for at in {{0..{count - 1}}}; do\n"
        f"  (exec {_LOG}>../$at.log; . ../$at.sh; wait) </dev/null >/dev/null 2>&1\n"
        "done\necho all scripts ran\n"
    )


def _names(log: Path) -> set[str]:
    return {name for name in log.read_text(errors="replace").split() if _NAME.fullmatch(name)}
