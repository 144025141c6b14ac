"""Every example of every shipped pack, as a test of its own."""

from pathlib import Path

import pytest

from sandboxmcp.core.resources import data_folder
from sandboxmcp.policy.engine import load_engine
from sandboxmcp.policy.packs.pack import Pack, load_pack
from sandboxmcp.policy.rules import Example, Rule

SHIPPED = [load_pack(file) for file in sorted(Path(data_folder("policies")).glob("*.toml"))]
EXAMPLES = [
    pytest.param(pack, rule, example, id=f"{pack.name}-{rule.id}-{number}")
    for pack in SHIPPED
    for rule in pack.rules
    for number, example in enumerate(rule.examples)
]


@pytest.mark.parametrize(("pack", "rule", "example"), EXAMPLES)
def test_the_example_has_the_verdict_it_names(pack: Pack, rule: Rule, example: Example) -> None:
    verdict = load_engine([pack.name]).judge(example.code, example.language, example.setting)
    assert verdict.action == example.verdict
