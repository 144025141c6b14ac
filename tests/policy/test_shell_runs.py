"""What bash runs of random scripts, recorded in the sandbox, is a subset of what the judge sees in them."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sandboxmcp.policy.analysis.analyse import facts_of
from sandboxmcp.policy.engine import Engine
from sandboxmcp.policy.facts import Command, Embedded, Fact, Unknown
from sandboxmcp.policy.paths import Places
from sandboxmcp.policy.written import scripts_run
from tests.policy.recorded import recorded
from tests.policy.scripts import Script

COUNT = int(os.environ.get("SANDBOXMCP_SCRIPTS", "1000"))
BATCH = 1_000
MOST_UNKNOWN = 0.3
"""Share of the scripts of which the judge may say that it does not know what they run."""


def _facts(engine: Engine, script: str) -> Iterator[Fact]:
    """The facts of a script, and of what it writes into a file and runs."""
    facts = facts_of(script, "shell", engine.knowledge)
    yield from facts
    for written in scripts_run(facts, engine.knowledge, Places()):
        yield written
        if isinstance(written, Embedded):
            yield from facts_of(written.code, written.language, engine.knowledge)


def _seen(engine: Engine, script: str) -> set[str] | None:
    """The commands that the judge sees; None: it says that it does not know all of them."""
    facts = list(_facts(engine, script))
    return None if any(isinstance(fact, Unknown) for fact in facts) else {f.name for f in facts if isinstance(f, Command)}


@pytest.mark.timeout(1_800)
def test_bash_runs_no_command_that_the_judge_has_not_seen(
    engine: Engine, inside: Any, print_at_the_end: Callable[[str], None]
) -> None:
    counts = Counter[str]()
    for start in range(0, COUNT, BATCH):
        seeds = range(start, min(start + BATCH, COUNT))
        scripts = [Script(seed).text for seed in seeds]
        for seed, script, run in zip(seeds, scripts, recorded(scripts, inside), strict=True):
            seen = _seen(engine, script)
            missed = run - seen if seen is not None else set()
            assert not missed, f"seed {seed}: bash ran {sorted(missed)}, which the judge has not seen, of\n{script}"
            counts.update(scripts=1, unknown=seen is None, commands=len(run))
    print_at_the_end(f"random scripts: {dict(counts)}")
    assert (counts["commands"] > 2 * COUNT, counts["unknown"] <= MOST_UNKNOWN * COUNT) == (True, True), counts


def test_data_of_random_scripts_is_seldom_taken_for_a_command(engine: Engine) -> None:
    wrong = [
        seed
        for seed in range(COUNT)
        if any(name[:1] == "d" and name[1:].isdigit() for name in _seen(engine, Script(seed).text) or ())
    ]
    assert len(wrong) <= COUNT // 100, wrong
