"""Tools, arguments and settings are named as the surface writes them; nothing rewrites a text later."""

from __future__ import annotations

import pytest

from sandboxmcp.core.errors import UsageError
from sandboxmcp.core.reasons import Reason
from sandboxmcp.core.surface import MCP, Surface, advice, argument, call, quoted, speaking_to
from sandboxmcp.render.budget import checked_budget
from sandboxmcp.render.passages import unanswered
from sandboxmcp.render.reasons import sentence
from sandboxmcp.tools.arguments import checked_arguments
from sandboxmcp.tools.registry import TOOLS
from sandboxmcp.tools.surfaces import SHELL, TERMINAL

WORDS = [
    (MCP, "ctx_search", "budget_tokens", "max_files=5", "`content`", "action=list"),
    (TERMINAL, "sandboxmcp search", "--budget", "--max-files 5", "standard input (-)", "sandboxmcp sources"),
    (SHELL, ":search", "budget_tokens", "max_files=5", "`content`", ":sources"),
]


@pytest.mark.parametrize(("surface", "tool", "budget", "files", "content", "listing"), WORDS, ids=["mcp", "terminal", "shell"])
def test_each_surface_has_its_own_words(surface: Surface, tool: str, budget: str, files: str, content: str, listing: str) -> None:
    with speaking_to(surface):
        said = (call("ctx_search"), argument("budget_tokens"), argument("max_files", 5), quoted("content"))
        assert (*said, advice("list_sources", "action=list")) == (tool, budget, files, content, listing)


def test_the_terminal_calls_every_tool_by_a_command() -> None:
    assert {name for name in TOOLS if not TERMINAL.calls[name].startswith("sandboxmcp ")} == set()
    assert (TERMINAL.calls["ctx_jobs"], TERMINAL.calls["ctx_batch_execute"]) == ("sandboxmcp jobs", "sandboxmcp run")


def test_what_is_wrong_with_an_argument_names_the_flag() -> None:
    with speaking_to(TERMINAL), pytest.raises(UsageError) as error:
        checked_arguments("ctx_search", {"queries": ["x"], "kind": "poem"})
    assert str(error.value).startswith("search: --kind wants one of ")
    with pytest.raises(UsageError) as error:
        checked_arguments("ctx_search", {"queries": ["x"], "kind": "poem"})
    assert str(error.value).startswith("ctx_search: 'kind' wants one of ")


def test_reasons_errors_and_notes_are_made_in_the_words_of_the_surface() -> None:
    timeout = Reason("timeout", {"timeout_s": 2.0}, "raise_timeout")
    with speaking_to(TERMINAL):
        assert sentence(timeout) == "timed out after 2 s; raise --timeout, or run less"
        assert unanswered(2) == ["+2 queries without room: ask fewer or raise --budget"]
        with pytest.raises(UsageError, match=r"^--budget is 1, the minimum is"):
            checked_budget(1)
    assert sentence(timeout) == "timed out after 2 s; raise timeout_s, or run less"
