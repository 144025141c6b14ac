"""Arguments: strict about what is wrong, forgiving about what agents learned elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxmcp.core.errors import UsageError
from sandboxmcp.tools.arguments import checked_arguments
from sandboxmcp.tools.registry import TOOLS

COMMANDS = ["echo 1"]
ACCEPTED = [
    ("ctx_execute", {"code": "1", "timeout": 1500}, {"code": "1", "timeout_s": 1.5}),
    ("ctx_execute", {"code": "1", "timeout": 1500, "timeout_s": 3}, {"code": "1", "timeout_s": 3}),
    ("ctx_execute", {"code": "1", "language": "bash", "intent": None}, {"code": "1", "language": "shell"}),
    ("ctx_execute", {"code": '["not a list"]'}, {"code": '["not a list"]'}),
    ("ctx_execute", {"code": "1", "budget_tokens": 500.0}, {"code": "1", "budget_tokens": 500}),
    ("ctx_batch_execute", {"commands": COMMANDS}, {"commands": [{"command": "echo 1"}]}),
    ("ctx_batch_execute", {"commands": "ls -la"}, {"commands": [{"command": "ls -la"}]}),
    ("ctx_batch_execute", {"commands": '["a", {"code": "b"}]'}, {"commands": [{"command": "a"}, {"code": "b"}]}),
    ("ctx_batch_execute", {"commands": ["{ echo 1; }"]}, {"commands": [{"command": "{ echo 1; }"}]}),
    ("ctx_batch_execute", {"commands": [{"command": "a", "timeout": 500}]}, {"commands": [{"command": "a", "timeout_s": 0.5}]}),
    (
        "ctx_batch_execute",
        {"commands": COMMANDS, "query_scope": "global"},
        {"commands": [{"command": "echo 1"}], "query_scope": "all"},
    ),
    ("ctx_batch_execute", {"commands": COMMANDS, "timeout": 2000}, {"commands": [{"command": "echo 1"}], "timeout_s": 2.0}),
    ("ctx_search", {"query": "one"}, {"queries": ["one"]}),
    ("ctx_search", {"queries": "one"}, {"queries": ["one"]}),
    ("ctx_search", {"queries": '["one", "two"]'}, {"queries": ["one", "two"]}),
    ("ctx_search", {"queries": ["one"], "contentType": "code"}, {"queries": ["one"], "kind": "code"}),
    ("ctx_search", {"queries": ["one"], "sort": "timeline"}, {"queries": ["one"], "sort": "recent"}),
    ("ctx_search", {"queries": ["one"], "scope": "global"}, {"queries": ["one"], "scope": "all"}),
    ("ctx_fetch_and_index", {"requests": ["http://a.example/"]}, {"requests": [{"url": "http://a.example/"}]}),
    ("ctx_fetch_and_index", {"requests": '[{"url": "u"}, "v"]'}, {"requests": [{"url": "u"}, {"url": "v"}]}),
    ("ctx_stats", None, {}),
    ("ctx_read", {"handle": "h1", "around": 98, "cursor": 121}, {"handle": "h1", "around": "98", "cursor": "121"}),
    ("ctx_search", {"queries": [404]}, {"queries": ["404"]}),
    ("ctx_search", {"queries": ["a"], "limit": 10**5000}, {"queries": ["a"], "limit": 10**15}),
    ("ctx_execute", {"code": "1", "timeout": 10**5000}, {"code": "1", "timeout_s": 10**12}),
]
REFUSED = [
    ("ctx_exec", {}, "unknown tool 'ctx_exec'. Did you mean 'ctx_execute'?"),
    ("ctx_execute", {}, "argument 'code' is missing. It wants a text"),
    ("ctx_execute", {"code": [1]}, "'code' wants a text, not [1]"),
    ("ctx_execute", {"code": "1", "intnt": "x"}, "unknown argument 'intnt'. Did you mean 'intent'?"),
    ("ctx_execute", {"code": "1", "timeout_s": 0}, "'timeout_s' wants a number above 0, not 0"),
    ("ctx_execute", {"code": "1", "timeout_s": True}, "'timeout_s' wants a number above 0, not True"),
    ("ctx_execute", {"code": "1", "budget_tokens": -1}, "'budget_tokens' wants a whole number from 50, not -1"),
    ("ctx_execute", {"code": "1", "budget_tokens": 60.5}, "'budget_tokens' wants a whole number from 50, not 60.5"),
    ("ctx_execute", {"code": "1", "images": "yes"}, "'images' wants true or false, not 'yes'"),
    ("ctx_batch_execute", {"commands": [1]}, "commands[0] wants an object or a shell command, not 1"),
    ("ctx_fetch_and_index", {"requests": [1]}, "requests[0] wants an object or a URL, not 1"),
    ("ctx_batch_execute", {"commands": [{"cmd": "a"}]}, "commands[0]: unknown argument 'cmd'"),
    ("ctx_batch_execute", {"commands": COMMANDS, "concurrency": 0}, "'concurrency' wants a whole number from 1, not 0"),
    ("ctx_batch_execute", {"commands": COMMANDS, "diff": True}, "unknown argument 'diff'"),
    ("ctx_search", {"queries": ["a"], "sort": "newest"}, "'sort' wants one of relevance, recent, not 'newest'"),
    ("ctx_search", {"queries": [1.5]}, "'queries[0]' wants a text, not 1.5"),
    ("ctx_search", {"queries": {"a": 1}}, "'queries' wants a list of texts, not {'a': 1}"),
    ("ctx_stats", {"x": 1}, "unknown argument 'x'. It takes no arguments."),
]


@pytest.mark.parametrize(("tool", "given", "checked"), ACCEPTED)
def test_what_is_meant_is_understood(tool: str, given: dict[str, Any] | None, checked: dict[str, Any]) -> None:
    assert checked_arguments(tool, given) == checked


@pytest.mark.parametrize(("tool", "given", "message"), REFUSED)
def test_what_is_wrong_is_named_with_what_is_wanted(tool: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_arguments(tool, given)
    assert message in str(refused.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(sorted({one.name for tool in TOOLS.values() for one in tool.arguments} | {"timeout", "query", "kernel"}))


@given(tool=st.sampled_from(sorted(TOOLS)), given=st.dictionaries(names, anything, max_size=5))
def test_no_arguments_make_anything_but_a_usage_error(tool: str, given: dict[str, Any]) -> None:
    try:
        checked = checked_arguments(tool, given)
    except UsageError:
        return
    assert set(checked) <= {one.name for one in TOOLS[tool].arguments}
