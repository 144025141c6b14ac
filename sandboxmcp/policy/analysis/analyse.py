"""The analysis of code: all its facts, those of code inside code too, whatever the languages."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from sandboxmcp.policy.analysis.lexemes import LEXED
from sandboxmcp.policy.facts import Embedded, Fact, Unknown
from sandboxmcp.policy.programs.knowledge import Knowledge

_MOST_PIECES = 1_000
"""Pieces of code inside one code that are looked into."""
_MOST_LAYERS = 12
LANGUAGES = {
    "bash": "shell", "sh": "shell", "zsh": "shell", "py": "python", "python3": "python", "ipython": "python", "js": "javascript",
    "node": "javascript", "ts": "typescript", "rb": "ruby", "golang": "go", "rs": "rust", "pl": "perl", "R": "r", "ex": "elixir",
    "exs": "elixir", "c#": "csharp", "cs": "csharp", "pwsh": "powershell", "ps1": "powershell",
}  # fmt: skip
"""Other names of languages."""


def facts_of(code: str, language: str, knowledge: Knowledge) -> tuple[Fact, ...]:
    """Every fact of `code` and of all code inside it, each with its line in `code`. Never raises."""
    facts: list[Fact] = []
    waiting = deque([(Embedded(1, language, code), 0)])
    pieces = 0
    while waiting:
        piece, layer = waiting.popleft()
        pieces += 1
        if pieces > _MOST_PIECES or layer > _MOST_LAYERS:
            facts.append(Unknown(piece.line, "code inside code, beyond what is looked into"))
            break
        for fact in _analyse(piece, knowledge):
            moved = replace(fact, line=fact.line + piece.line - 1)
            facts.append(moved)
            if isinstance(moved, Embedded):
                waiting.append((moved, layer + 1))
    return tuple(facts)


def _analyse(piece: Embedded, knowledge: Knowledge) -> tuple[Fact, ...]:
    language = LANGUAGES.get(piece.language, piece.language)
    try:
        return _by_language(language, piece, knowledge)
    except Exception as error:  # a fault of ours must not stop a harmless script: the sandbox stands, and the reader is told
        return (Unknown(1, f"{language} code on which the analysis failed ({type(error).__name__})"),)


def _by_language(language: str, piece: Embedded, knowledge: Knowledge) -> tuple[Fact, ...]:
    code, stdout, stderr = piece.code, piece.stdout, piece.stderr
    if language in ("shell", "cmd"):
        from sandboxmcp.policy.analysis.shell import shell_facts
        from sandboxmcp.policy.analysis.shell_streams import Streams
        from sandboxmcp.policy.analysis.windows_shells import cmd_as_shell

        plain = cmd_as_shell(code) if language == "cmd" else code
        return shell_facts(plain, knowledge, Streams({"1": stdout, "2": stderr}, piece.stdin, piece.piped), piece.arguments)
    if language == "python":
        from sandboxmcp.policy.analysis.python import python_facts

        return python_facts(code, knowledge)
    if language == "powershell":
        from sandboxmcp.policy.analysis.windows_shells import powershell_facts

        return powershell_facts(code, knowledge, stdout, stderr)
    if language in ("awk", "crontab", "make", "sed"):
        from sandboxmcp.policy.analysis.text_tools import TOOLS

        return TOOLS[language](code)
    if language in LEXED:
        from sandboxmcp.policy.analysis.other_languages import foreign_facts

        return foreign_facts(code, language, knowledge)
    return (Unknown(1, f"{language} code, which is not analysed"),)
