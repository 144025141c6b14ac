"""What every session pays for: the listed tools and the instructions."""

from __future__ import annotations

import json

import bpe_openai
import pytest

from sandboxmcp.kernels.jupyter.kernelspecs import kernel_languages
from sandboxmcp.kernels.languages import script_languages
from sandboxmcp.server.instructions import INSTRUCTIONS
from sandboxmcp.tools.arguments import checked_arguments
from sandboxmcp.tools.registry import TOOLS

ALIASES = ("timeout", "contentType", "query", "timeline", "global", "bash", "js", "golang")


def test_the_listed_tools_cost_at_most_fifteen_hundred_tokens() -> None:
    """The contract's bound for the daily tools; a thousand was ours while there were eight of them, now there are eleven."""
    listed = [{"name": tool.name, "description": tool.description, "inputSchema": tool.schema} for tool in TOOLS.values()]
    encoding = bpe_openai.get_encoding("cl100k_base")
    assert len(encoding.encode(json.dumps(listed, separators=(",", ":"), ensure_ascii=False))) <= 1_500


def test_the_instructions_are_short() -> None:
    assert len(bpe_openai.get_encoding("cl100k_base").encode(INSTRUCTIONS)) <= 100


def test_every_language_is_listed_and_no_other() -> None:
    listed = TOOLS["ctx_execute"].schema["properties"]["language"]["enum"]
    assert sorted(listed) == sorted({*kernel_languages(), *script_languages()})


@pytest.mark.parametrize("word", ALIASES)
def test_aliases_are_accepted_but_not_advertised(word: str) -> None:
    assert f'"{word}"' not in json.dumps([tool.schema for tool in TOOLS.values()])


def test_every_tool_with_arguments_takes_a_budget() -> None:
    without = [tool.name for tool in TOOLS.values() if not tool.has_budget]
    assert without == ["ctx_stats", "ctx_doctor"] and all(checked_arguments(name, {}) == {} for name in without)
