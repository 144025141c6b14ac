"""The tools' words become those of the command line; what the user stored or printed does not change."""

from __future__ import annotations

import pytest

from sandboxmcp.cli.wording import answer_for_terminal, for_terminal

SENTENCES = [
    ("There is no source 'x'. ctx_sources lists them.", "There is no source 'x'. sandboxmcp sources lists them."),
    ("budget_tokens is 0, the minimum is 50", "--budget is 0, the minimum is 50"),
    ("timed out after 2 s; raise timeout_s, or run less", "timed out after 2 s; raise --timeout, or run less"),
    ("ctx_search: 'kind' wants one of code, not 'x'", "search: --kind wants one of code, not 'x'"),
    (
        "Add its folder to ingest_roots, or pass the text as `content`.",
        "Add its folder to --ingest-roots, or pass the text as standard input (-).",
    ),
    ("more: cursor=12", "more: --cursor 12"),
    ("would delete 1 source; confirm=ab within 60 s does it", "would delete 1 source; --confirm ab within 60 s does it"),
    (
        "+7 more sources: narrow with source, or raise budget_tokens",
        "+7 more sources: narrow with --source, or raise --budget",
    ),
    ("+2 more passages, 5 weaker: raise limit or set limit", "+2 more passages, 5 weaker: raise --limit or set --limit"),
]


@pytest.mark.parametrize(("tool", "terminal"), SENTENCES)
def test_a_sentence_names_commands_and_flags(tool: str, terminal: str) -> None:
    assert for_terminal(tool) == terminal


def test_captured_lines_and_labels_are_left_as_they_are() -> None:
    text = "h1 file:ctx_read: code\n| ctx_read\n12| timeout_s\n... 9 lines: ctx_read h1:1-9"
    shown = answer_for_terminal(text, labelled=True)
    assert shown == text.replace("lines: ctx_read", "lines: sandboxmcp read")
    assert answer_for_terminal("raise timeout_s\n| timeout_s", labelled=False) == "raise --timeout\n| timeout_s"
