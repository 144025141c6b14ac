"""What the tools say, in the words of the command line: commands for tools, flags for arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"^ctx_(\w+): '(\w+)'", r"\1: --\2"),
        (r"`?\bctx_(search|index|read|sources|stats|doctor|jobs|kernels|purge)\b`?", r"sandboxmcp \1"),
        (r"`?\bctx_(?:batch_)?execute\b`?", "sandboxmcp run"),
        (r"\bbudget_tokens\b", "--budget"),
        (r"\btimeout_s\b", "--timeout"),
        (r"\b(raise|set) limit\b", r"\1 --limit"),
        (r"\bmax_files=", "--max-files "),
        (r"\bcursor=", "--cursor "),
        (r"\bconfirm=", "--confirm "),
        (r"\bfrom_line\b", "--from"),
        (r"\bto_line\b", "--to"),
        (r"`around`", "--around"),
        (r"\baction=list\b", "sandboxmcp sources"),
        (r"\bingest_roots\b", "--ingest-roots"),
        (r"`content`", "standard input (-)"),
        (r"`tool_folders`", "--tool-folders"),
        (r"\bpolicy_packs\b", "--policy-packs"),
        (r"\bnarrow with (source|include)\b", r"narrow with --\1"),
        (r"`(handle|path)`", r"\1"),
    )
)
_NOTE = re.compile(r"\.\.\. |more|no source has |would delete \d|\+\d|\d+ weaker|note: ")
_CAPTURED = re.compile(r"\d*\|")


def for_terminal(text: str) -> str:
    """A sentence of a tool's for somebody who types commands."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def answer_for_terminal(text: str, *, labelled: bool) -> str:
    """An answer with its notes so worded. Captured lines stay as they are; so do lines that may hold a label or a query of
    the user's, which an answer has when it is `labelled`."""
    return "\n".join(_lines(text.split("\n"), labelled))


def _lines(lines: Iterable[str], labelled: bool) -> Iterable[str]:
    for line in lines:
        ours = _NOTE.match(line) if labelled else not _CAPTURED.match(line)
        yield for_terminal(line) if ours else line
