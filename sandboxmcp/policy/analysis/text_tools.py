"""What awk, sed and make run: the command lines inside their own small languages.

Sources: gawk(1) "Output Statements" and system(), sed(1) commands `e` and flag `e`, GNU make's manual on recipes and `shell`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from sandboxmcp.policy.facts import UNKNOWN_NAME, Embedded, Fact, Unknown

_TEXT = r'"((?:[^"\\]|\\.)*)"'
_AWK = re.compile(
    rf"system\s*\(\s*{_TEXT}\s*\)|{_TEXT}\s*\|&?\s*getline|\|&?\s*{_TEXT}|(system\s*\(\s*)|(\|&?\s*getline)|{_TEXT}|(#[^\n]*)",
    re.DOTALL,
)
_AWK_ESCAPES = re.compile(r"\\(.)", re.DOTALL)
_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\]|\\.)*/I?M?|\\(.)(?:(?!\1).)*\1|[,+~!\s;{}])*")
_MAKE_NAME = re.compile(r"\$\$|\$\(shell\s+|\$[({][^(){}$]*[)}]|\$.")
_RULE = re.compile(r"[^\t#=][^=#]*?::?(?!=)[^;#]*;(.*)")
_ECHO = "@-+ \t"


def awk_facts(code: str) -> tuple[Fact, ...]:
    """Programs that awk starts: by `system`, and at either end of a pipe."""
    return tuple(_awk(code))


def _awk(code: str) -> Iterator[Fact]:
    for found in _AWK.finditer(code):
        line = code.count("\n", 0, found.start()) + 1
        command = next((text for text in found.groups()[:3] if text is not None), None)
        if command is not None:
            yield Embedded(line, "shell", _AWK_ESCAPES.sub(r"\1", command))
        elif found[4] or (found[5] and not code[: found.start()].rstrip().endswith(('"', ")"))):
            yield Unknown(line, "what awk starts")


def sed_facts(code: str) -> tuple[Fact, ...]:
    """Programs that sed starts: by the command `e`, or by the flag of `s`."""
    return tuple(_sed(code))


def _sed(code: str) -> Iterator[Fact]:
    at = 0
    while at < len(code):
        address = _ADDRESS.match(code, at)
        at = address.end() if address is not None else at
        letter, line = code[at : at + 1], code.count("\n", 0, at) + 1
        at += 1
        if letter in ("s", "y"):
            replaced, flags, at = _substituted(code, at)
            if letter == "s" and "e" in flags:
                yield Embedded(line, "shell", replaced.replace("&", f"${{{UNKNOWN_NAME}}}"))
                yield Unknown(line, "what sed runs")
        elif letter in ("e", "a", "i", "c", "r", "R", "w", "W", "#", ":", "b", "t", "T"):
            end = code.find("\n", at)
            rest, at = (code[at:], len(code)) if end < 0 else (code[at:end], end)
            if letter == "e":
                yield Embedded(line, "shell", rest.strip()) if rest.strip("} ;\t") else Unknown(line, "what sed runs")


def _substituted(code: str, at: int) -> tuple[str, str, int]:
    """The replacement, the flags, and the place behind them."""
    delimiter, parts, part = code[at : at + 1], list[str](), ""
    at += 1
    while at < len(code) and len(parts) < 2:
        if code[at] == "\\":
            part += code[at : at + 2]
            at += 1
        elif code[at] == delimiter:
            parts.append(part)
            part = ""
        else:
            part += code[at]
        at += 1
    start = at
    while at < len(code) and code[at] not in ";\n}":
        at += 1
    return parts[1] if len(parts) > 1 else part, code[start:at].split("w")[0], at


def make_facts(code: str) -> tuple[Fact, ...]:
    """The recipes of a makefile, and what `$(shell …)` runs."""
    return tuple(_make(code.replace("\\\n", "  ")))


def _make(code: str) -> Iterator[Fact]:
    for number, line in enumerate(code.split("\n"), 1):
        rule = _RULE.fullmatch(line)
        recipe = line[1:] if line.startswith("\t") else rule[1] if rule is not None else ""
        if recipe.strip():
            yield Embedded(number, "shell", _MAKE_NAME.sub(_filled, recipe.lstrip(_ECHO)))
        for start in re.finditer(r"\$\(shell\s+", line):
            yield Embedded(number, "shell", _MAKE_NAME.sub(_filled, _until_closed(line[start.end() :])))


def _filled(found: re.Match[str]) -> str:
    if found[0] == "$$":
        return "$"
    return "$(" if found[0].startswith("$(shell") else f"${{{UNKNOWN_NAME}}}"


def _until_closed(text: str) -> str:
    depth = 1
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[:at]
    return text


_SCHEDULE = re.compile(r"\s*(?:@\w+|(?:[^\s#=]+\s+){5})\s*(?P<line>\S.*)")


def crontab_facts(code: str) -> tuple[Fact, ...]:
    """The command lines of a crontab, behind the five fields of their times."""
    lines = ((number, _SCHEDULE.fullmatch(line)) for number, line in enumerate(code.split("\n"), 1))
    return tuple(Embedded(number, "shell", found["line"]) for number, found in lines if found)


TOOLS: Mapping[str, Callable[[str], tuple[Fact, ...]]] = {
    "awk": awk_facts,
    "crontab": crontab_facts,
    "make": make_facts,
    "sed": sed_facts,
}
