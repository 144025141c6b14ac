"""What a call starts: a shell, a program with arguments, code of some language, or an import, by what packs know of functions."""

from __future__ import annotations

from collections.abc import Iterator

from sandboxmcp.policy.facts import HOLE, Call, Command, Embedded, Fact, Import, Reference, Sink, Unknown, Word, filled
from sandboxmcp.policy.programs.argv import command_of, expand_command
from sandboxmcp.policy.programs.knowledge import Knowledge


def runs_of(call: Call, knowledge: Knowledge) -> Iterator[Fact]:
    """What a function that runs something out of its arguments runs; nothing for any other."""
    function = knowledge.functions.get((call.language, call.name))
    if function is None or function.runs not in ("code", "argv", "words", "exec", "import", "line", "pipe"):
        return
    if function.runs == "pipe":
        yield from _piped(call, function.argument)
        return
    args = call.args[function.argument :]
    line = call.lines[function.argument] if args and call.lines else call.line
    first = args[0] if args else next((call.options[k] for k in ("args", "cmd", "command", "name") if k in call.options), HOLE)
    if function.runs == "import":
        known = isinstance(first, str) and HOLE not in first
        yield Import(call.line, str(first), call.language) if known else Unknown(call.line, f"the module that {call.name} imports")
    elif (
        function.runs == "code"
        or (function.runs == "line" and isinstance(first, str) and len(args) == 1)
        or (function.runs == "argv" and isinstance(first, str) and _uses_shell(call))
    ):
        yield from _code(first, function.code, line, call)
    else:
        words = _words(first if function.runs == "argv" else args, line, drop_name=function.runs == "exec")
        found = command_of(words, Command(line, "", (), _sink(call, "stdout"), _sink(call, "stderr")))
        yield from expand_command(found, knowledge) if isinstance(found, Command) else [found] if found else []


def _piped(call: Call, argument: int) -> Iterator[Fact]:
    """Perl's `open(F, "-|", "command")` and `open(F, "command |")`."""
    mode, *rest = call.args[argument:] or (HOLE,)
    if not isinstance(mode, str) or (not mode.strip().startswith("|") and not mode.strip().endswith("|")):
        return
    code = " ".join(word if isinstance(word, str) else HOLE for word in rest) if rest else mode.strip().strip("|")
    yield from _code(code, "shell", call.line, call)


def _code(code: object, language: str, line: int, call: Call) -> Iterator[Fact]:
    if not isinstance(code, str) or not code.replace(HOLE, "").strip():
        yield Unknown(line, f"the code that {call.name} runs")
        return
    yield Embedded(line, language, filled(code, language), _sink(call, "stdout"), _sink(call, "stderr"))


def _uses_shell(call: Call) -> bool:
    return call.options.get("shell", False) not in {False, None}


def _words(value: object, line: int, *, drop_name: bool) -> list[Word]:
    """Words out of a list, a text, or arguments among which lists may stand; `exec` functions repeat the program's name."""
    flat: list[object] = []
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, tuple):
            flat += part
        else:
            flat.append(part)
    if drop_name and len(flat) > 1:
        del flat[1]
    return [Word(part if isinstance(part, str) else HOLE, line) for part in flat]


def _sink(call: Call, name: str) -> Sink:
    """Where the output of a started program goes; a file object of any kind counts as a file."""
    value = call.options.get(name)
    meaning = value.name if isinstance(value, Reference) else ""
    if value is None or meaning.endswith((".PIPE", ".STDOUT")):
        return "stream"
    return "discard" if meaning.endswith(".DEVNULL") else "file"
