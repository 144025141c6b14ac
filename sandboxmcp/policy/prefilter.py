"""A prefilter over the bytes of code that proves, for plain code, that no rule can match it and nothing in it is unknown.

Conservative on purpose: it gives up at the first letter that could hide a word. It imports next to nothing, and what it knows of
the packs is a few sets of words that survive as JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandboxmcp.policy.judge import Engine
    from sandboxmcp.policy.rules import Rule

_SHELL = re.compile(r"[A-Za-z0-9 \t\n_./=:,@%+\-|&;<>'\"]*")
_CLOSED = re.compile(r"(?:[^'\"]++|'[^']*+'|\"[^\"]*+\")*+")
"""Every quote has its end: code that the grammar does not understand is not plain."""
_PYTHON = re.compile(r"[\t\n -~]*")
_WORD = re.compile(r"[A-Za-z0-9_.+-]+")
_DOT = re.compile(r"(?<![\w./-])\.(?![\w./-])")
_PATH = re.compile(r"[\w./+-]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_VERSION = re.compile(r"-?\d[\d.]*$")
_MOST = 20_000
"""Characters; longer code may meet the bounds of the analyses."""
_MOST_NESTED = 100
_SPELLED_OUT = frozenset({"make"})
"""Languages in which nothing is unknown: what plain code in them starts stands in it, word by word."""
_LOOKUPS = frozenset({"getattr", "builtins", "__import__", "importlib", "IPython", "get_ipython"})


def words_of(engine: Engine) -> dict[str, Any]:
    """What `surely_allowed` must know of the packs of an engine, as JSON values."""
    shell, python, fragments = set(_programs(engine)), set(_LOOKUPS), set[str]()
    closed = False
    for rule in (rule for pack in engine.packs for rule in pack.rules):
        for language, kind, name in rule.keys:
            if kind == "capability":
                shell |= {key[2] for other in engine.packs for one in other.capabilities if one.id == name for key in one.keys}
            elif (language, kind, name) == ("shell", "command", "*"):
                starts = _line_starts(rule)
                closed = closed or not all(starts)
                shell |= starts
            elif language == "shell" and kind == "command":
                shell.add(name)
            elif language == "python" and kind in ("import", "call"):
                python.add(name.split(".")[0])
            elif kind == "url":
                fragments.add("://")
        found = set(_path_fragments(rule))
        closed = closed or "" in found
        fragments |= found
    python |= {name.split(".")[0] for language, name in engine.knowledge.functions if language == "python"}
    return {
        "shell": sorted(shell),
        "python": sorted(python),
        "fragments": sorted(fragments),
        "closed": closed,
        "network": _network(engine),
    }


def surely_allowed(code: str, language: str, words: Mapping[str, Any]) -> bool:
    """True: the engine would say allow, without a rule and with nothing unknown, in every setting. False says nothing."""
    if words["closed"] or len(code) > _MOST or any(fragment in code for fragment in words["fragments"]):
        return False
    if language == "shell":
        if not _SHELL.fullmatch(code) or not _CLOSED.fullmatch(code) or "<<" in code:
            return False
        bare = code.replace('"', "").replace("'", "")
        if _names_a_script_twice(bare):
            return False
        spoken = _spoken(bare)
        if not _DOT.search(bare):  # a dot alone is `source`, in a path it is a folder
            spoken.discard(".")
        return spoken.isdisjoint(words["shell"])
    if language == "python":
        plain = _PYTHON.fullmatch(code) and "!" not in code and "%" not in code and "\\" not in code
        nested = sum(map(code.count, "([{")) > _MOST_NESTED or code.count("    ") > 10 * _MOST_NESTED
        return bool(plain) and not nested and set(_NAME.findall(code)).isdisjoint(words["python"])
    return False


def _names_a_script_twice(bare: str) -> bool:
    """Whether a path's last part stands in the code once more: what the code writes it may then run."""
    names = Counter(word.rsplit("/", 1)[-1] for word in _PATH.findall(bare))
    return any(names[path.rsplit("/", 1)[-1]] > 1 for path in _PATH.findall(bare) if "/" in path)


def surely_without_network(code: str, words: Mapping[str, Any]) -> bool:
    """True, for code that is surely allowed: no program in it wants a network, so that nothing is to be said of one."""
    spoken = _spoken(code.replace('"', "").replace("'", ""))
    return all(spoken.isdisjoint(names) or (firsts and spoken.isdisjoint(firsts)) for names, firsts in words["network"])


def _spoken(bare: str) -> set[str]:
    """The words of a code without quotes, in each form that could name a program."""
    spoken = set(_WORD.findall(bare))
    spoken |= {_VERSION.sub("", word) for word in spoken} | {word.rsplit("=", 1)[-1] for word in spoken}
    return spoken | {word.lower().removesuffix(".exe") for word in spoken if word.lower().endswith(".exe")}


def _network(engine: Engine) -> list[list[list[str]]]:
    """Of each way to want a network its programs, and one of the words that must come first; none: without such a word too."""
    ways = [rule for pack in engine.packs for rule in pack.capabilities if rule.id == "network"]
    return [[sorted({name for *_, name in rule.keys}), sorted(dict(rule.when).get("first", []))] for rule in ways]


def _programs(engine: Engine) -> Iterator[str]:
    """Programs that run other code, or touch files in a way that a rule is about whose paths hold no fragment.

    To move away a folder above what a rule names is one of these.
    """
    rules = [rule for pack in engine.packs for rule in pack.rules if rule.paths]
    judged = {access for rule in rules for access in _accesses(rule) if access == "move" or "*" in rule.paths}
    for name, program in engine.knowledge.programs.items():
        touches = any(touch.access in judged for touch in program.touches)
        speaks = program.language and program.language not in _SPELLED_OUT
        if program.then or program.starts or speaks or program.module or touches:
            yield name


def _accesses(rule: Rule) -> list[str]:
    return next((value for name, value in rule.when if name == "access"), ["read", "write", "remove", "move"])


def _line_starts(rule: Rule) -> set[str]:
    """First words of what a rule about whole command lines matches; empty: any."""
    globs = next((value for name, value in rule.when if name == "line"), [""])
    return {re.split(r"[*?\[\s]", glob, maxsplit=1)[0] for glob in globs}


def _path_fragments(rule: Rule) -> Iterable[str]:
    """A text that stands in every path that the rule covers; redirections alone touch files without a program."""
    access = _accesses(rule)
    for pattern in rule.paths:
        if pattern == "*":
            yield from [">"] if "write" in access else []
            yield from ["<"] if "read" in access else []
        else:
            yield max(re.split(r"[*?\[\]/~]", pattern), key=len)
