"""What bash runs of random scripts is a subset of what the judge sees in them."""

import os
import re
from pathlib import Path

from sandboxmcp.policy.analysis.analyse import facts_of
from sandboxmcp.policy.engine import Engine
from sandboxmcp.policy.facts import Command
from tests.policy.scripts import Script, ran

COUNT = int(os.environ.get("SANDBOXMCP_SCRIPTS", "1000"))
BATCH = 1_000


def _seen(engine: Engine, script: str) -> set[str]:
    return {fact.name for fact in facts_of(script, "shell", engine.knowledge) if isinstance(fact, Command)}


def test_bash_runs_no_command_that_the_judge_has_not_seen(engine: Engine, tmp_path: Path) -> None:
    commands = 0
    for start in range(0, COUNT, BATCH):
        seeds = range(start, min(start + BATCH, COUNT))
        scripts = [Script(seed).text for seed in seeds]
        folder = tmp_path / str(start)
        folder.mkdir()
        for seed, script, run in zip(seeds, scripts, ran(scripts, folder), strict=True):
            missed = run - _seen(engine, script)
            assert not missed, f"seed {seed}: bash ran {sorted(missed)}, which the judge has not seen, of\n{script}"
            commands += len(run)
    assert commands > 2 * COUNT


def test_data_of_random_scripts_is_seldom_taken_for_a_command(engine: Engine) -> None:
    wrong = [seed for seed in range(COUNT) if any(re.fullmatch(r"d\d+", name) for name in _seen(engine, Script(seed).text))]
    assert len(wrong) <= COUNT // 100, wrong
