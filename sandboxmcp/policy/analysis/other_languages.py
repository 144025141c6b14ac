"""The facts of code in languages other than shell and Python: imports, calls with their literals, what they start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sandboxmcp.policy.analysis.bindings import JOINTS, SCRIPTS, Bindings
from sandboxmcp.policy.analysis.lexemes import Lexeme, lexemes_of
from sandboxmcp.policy.analysis.spawning import runs_of
from sandboxmcp.policy.facts import HOLE, Call, Embedded, Fact, Import, Unknown
from sandboxmcp.policy.programs.knowledge import Knowledge

_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_GLUE = frozenset({"+", ".", "~", "<>", "++"})
_MOST = 400
"""Lexemes of one call's arguments that are looked at."""
_COMMAND_STYLE = frozenset({"ruby", "perl", "elixir", "php", "powershell"})
"""A call may do without brackets there."""
_DECLARES = frozenset({"function", "def", "fn", "func", "sub", "class"})
_NO_CALL = _DECLARES | {
    "and", "as", "await", "const", "do", "echo", "end", "for", "from", "if", "import", "in", "interface", "let", "my", "new", "not",
    "or", "print", "puts", "require", "return", "then", "type", "unless", "use", "using", "var", "while",
}  # fmt: skip


def foreign_facts(code: str, language: str, knowledge: Knowledge) -> tuple[Fact, ...]:
    """The facts of code. What it gives up on is an Unknown."""
    lexemes = lexemes_of(code, language)
    if isinstance(lexemes, str):
        return (Unknown(1, f"{language} {lexemes}"),)
    bindings = Bindings(lexemes, language)
    facts = [*bindings.imports, *_facts(lexemes, bindings, language, knowledge)]
    return tuple(sorted(facts, key=lambda fact: fact.line))


def _facts(lexemes: Sequence[Lexeme], bindings: Bindings, language: str, knowledge: Knowledge) -> Iterator[Fact]:
    at = 0
    while at < len(lexemes):
        lexeme = lexemes[at]
        if lexeme.kind == "shell":
            yield Embedded(lexeme.line, "shell", lexeme.text.replace(HOLE, "${__unknown__}"))
        if lexeme.kind != "name":
            at += 1
            continue
        parts, end = _chain(lexemes, at, language)
        if (hidden := _hidden(lexemes, at, end, parts, language)) is not None:
            yield Unknown(lexeme.line, hidden)
        if parts[0].startswith("module:") and lexeme.text not in ("require", "import"):  # those are bindings.imports
            yield Import(lexeme.line, parts[0].removeprefix("module:"))
        call = _call(lexemes, at, end, parts, bindings, language)
        if call is not None:
            yield call
            yield from runs_of(call, knowledge)
        at = end


def _chain(lexemes: Sequence[Lexeme], at: int, language: str) -> tuple[list[str], int]:
    """The parts of a dotted name and the place behind it; `require("m")` at its head is the module.

    In JavaScript `a["b"]` and `a?.["b"]` are `a.b`, and `process.getBuiltinModule("m")` is a module too.
    """
    parts = lexemes[at].text.split("::")
    end = at + 1
    if parts == ["require"] or parts == ["import"]:
        inside = lexemes[end : end + 3]
        if len(inside) == 3 and inside[0].text == "(" and inside[1].kind == "text" and inside[2].text == ")":
            parts, end = ["module:" + inside[1].text.removeprefix("node:")], end + 3
    while end + 1 < len(lexemes) and lexemes[end].kind == "mark":
        following = lexemes[end + 1]
        if lexemes[end].text in JOINTS and following.kind == "name":
            parts += following.text.split("::")
            end += 2
        elif language in SCRIPTS and _subscript(lexemes, end):
            opening = end + (lexemes[end].text == "?.")
            parts.append(lexemes[opening + 1].text)
            end = opening + 3
        elif language in SCRIPTS and ".".join(parts) in _MODULE_OF and lexemes[end].text == "(" and following.kind == "text":
            if end + 2 >= len(lexemes) or lexemes[end + 2].text != ")":
                break
            parts, end = ["module:" + following.text.removeprefix("node:")], end + 3
        else:
            break
    return parts, end


def _subscript(lexemes: Sequence[Lexeme], at: int) -> bool:
    """Whether `["b"]` or `?.["b"]` stands here."""
    at += lexemes[at].text == "?."
    inside = lexemes[at : at + 2]
    return len(inside) == 2 and inside[0].text == "[" and inside[1].kind == "text" and _closes(lexemes, at + 2)


def _hidden(lexemes: Sequence[Lexeme], at: int, end: int, parts: Sequence[str], language: str) -> str | None:
    """What is looked up by a name that is known only at run time: a global, a module, a method."""
    following = [one.text for one in lexemes[end : end + 2] if one.kind == "mark" or one.kind == "name"] + ["", ""]
    called = following[0] == "("
    argument = lexemes[end + 1] if end + 1 < len(lexemes) else None
    literal = argument is not None and argument.kind == "text" and HOLE not in argument.text and _ends(lexemes, end + 2)
    name = ".".join(parts)
    if language in SCRIPTS:
        if parts[-1] in _GLOBALS and (following[0] == "[" or following == ["?.", "[", "", ""]):
            return f"what of {name} is used"
        if (
            parts == ["this"]
            and "[" in following[:2]
            and lexemes[end + following.index("[") + 1 :][:1]
            and (lexemes[end + following.index("[") + 1].kind == "text")
        ):
            return "what of this is used, by a name that is made up at run time"
        if name == "Function" and called and argument is not None and argument.kind == "text" and "return" in argument.text:
            return "what the code returns that Function makes"
        if (
            name in _ALIASED
            and following[0] not in (".", "[", "(", "?.", ":")
            and at
            and lexemes[at - 1].text in ("=", ",", "(", "=>")
        ):
            return f"what {name} is used for under another name"
        if name == "Function" and called and any(one.text == "," for one in lexemes[end + 2 : end + 3]):
            return "the code that Function runs"
        if called and (
            (name in ("require", "import", *_MODULE_OF) and not literal) or name in _LOOKUPS or parts[-1] == "constructor"
        ):
            return f"what {name} finds"
    elif parts[-1] in _DYNAMIC.get(language, ()) and (called or argument is not None):
        first = argument if called else lexemes[end] if end < len(lexemes) else None
        if first is None or first.kind != "text" or HOLE in first.text:
            harmless = first is not None and (first.text in _BLOCKS.get(language, ()) or _is_symbol(first.text))
            return None if harmless else f"what {name} runs"
    elif (language == "perl" and called and at and lexemes[at - 1].text in ("&", "&$")) or (
        language == "php" and called and len(parts) == 1 and parts[-1].startswith("$")
    ):
        return f"which function {name} is"
    elif language == "php" and called and len(parts) == 1 and at and lexemes[at - 1].text == "$":
        return f"which function ${name} is"
    return None


def _is_symbol(text: str) -> bool:
    """Whether this is a symbol of Ruby's that names no function which runs something."""
    return text.startswith(":") and text[1:] not in _RUNNING_METHODS


_RUNNING_METHODS = frozenset(
    {"system", "exec", "spawn", "eval", "instance_eval", "class_eval", "send", "open", "popen", "require", "load", ""}
)
_MODULE_OF = frozenset({"process.getBuiltinModule", "process.mainModule.require", "module.require", "require.main.require"})
"""Functions that return the module which they are told."""
_ALIASED = frozenset({"globalThis", "global", "window", "require", "eval", "Function"})
_GLOBALS = frozenset({"globalThis", "global", "window", "self", "module", "mainModule", "process"})
_LOOKUPS = frozenset(
    {"process.binding", "process._linkedBinding", "process.dlopen", "Reflect.get", "Reflect.apply", "Reflect.construct"}
)
_DYNAMIC = {
    "ruby": frozenset(
        {"send", "public_send", "__send__", "eval", "instance_eval", "class_eval", "module_eval", "const_get", "method"}
    ),
    "perl": frozenset({"eval"}),
    "php": frozenset({"call_user_func", "call_user_func_array", "create_function", "assert", "eval"}),
    "r": frozenset({"do.call", "eval", "get", "match.fun"}),
    "elixir": frozenset({"eval_string", "eval_quoted", "apply"}),
}
"""Functions that run what they are told by name or as text."""
_BLOCKS = {"perl": frozenset("{;"), "ruby": frozenset({"do", "{", "(", ")"}), "elixir": frozenset({"("})}


def _ends(lexemes: Sequence[Lexeme], at: int) -> bool:
    return at < len(lexemes) and lexemes[at].text in (")", ",")


def _closes(lexemes: Sequence[Lexeme], at: int) -> bool:
    return at < len(lexemes) and lexemes[at].kind == "mark" and lexemes[at].text == "]"


def _is_joint(lexeme: Lexeme) -> bool:
    return lexeme.kind == "mark" and lexeme.text in JOINTS


def _call(lexemes: Sequence[Lexeme], at: int, end: int, parts: list[str], bindings: Bindings, language: str) -> Call | None:
    before = lexemes[at - 1].text if at and lexemes[at - 1].kind in ("name", "mark") else ""
    if (
        before in ("$", ".", "?.", "->", "&.")
        or before in ("function", "def", "fn", "func", "sub", "class")
        or (len(parts) == 1 and parts[0] in _NO_CALL)
    ):
        return None
    after = lexemes[end] if end < len(lexemes) else Lexeme("mark", "", 0)
    bracket = after.kind == "mark" and after.text == "("
    bare = language in _COMMAND_STYLE and after.kind == "text" and after.line == lexemes[at].line
    if not (bracket or bare or before == "new" or len(parts) > 1):
        return None
    name = bindings.meaning(parts)
    if name is None:
        return None
    args, options, past = _arguments(lexemes, end + bracket, bracket, bindings) if bracket or bare else ([], {}, end)
    if language == "rust":
        args += _builder(lexemes, past, bindings)
    return Call(lexemes[at].line, name, tuple(args), options, (), language)


def _arguments(
    lexemes: Sequence[Lexeme], at: int, bracket: bool, bindings: Bindings
) -> tuple[list[object], dict[str, object], int]:
    """The values between brackets, or up to the end of the line."""
    args: list[object] = []
    options: dict[str, object] = {}
    part: list[Lexeme] = []
    depth, line = 0, lexemes[at].line if at < len(lexemes) else 0
    end = min(at + _MOST, len(lexemes))
    while at < end:
        lexeme = lexemes[at]
        closes = lexeme.kind == "mark" and lexeme.text in _CLOSE
        if (depth == 0 and closes) or (not bracket and depth == 0 and (lexeme.line != line or lexeme.text == ";")):
            break
        depth += (lexeme.kind == "mark" and lexeme.text in _OPEN) - closes
        if depth == 0 and lexeme.text == "," and lexeme.kind == "mark":
            _keep(part, args, options, bindings)
            part = []
        else:
            part.append(lexeme)
        at += 1
    _keep(part, args, options, bindings)
    return args, options, at + 1


def _keep(part: Sequence[Lexeme], args: list[object], options: dict[str, object], bindings: Bindings) -> None:
    if not part:
        return
    if len(part) > 2 and part[0].kind == "name" and part[1].text in ("=", ":", "=>"):
        options[part[0].text] = _value(part[2:], bindings)
    else:
        args.append(_value(part, bindings))


def _value(part: Sequence[Lexeme], bindings: Bindings) -> object:
    """A text, a list of texts as a tuple, or HOLE; texts joined by an operator are one."""
    bare = [one for one in part if one.text not in ("&", "await")]
    if len(bare) == 1 and bare[0].text.isdigit():
        return int(bare[0].text)
    if bare and bare[-1].text == "string" and bare[0].kind == "text":  # TypeScript's `"a" as string`
        return bare[0].text
    if bare and all(_joins(bare, at) for at in range(len(bare))):
        return "".join(one.text if one.kind == "text" else bindings.text(one.text) for one in bare if one.kind != "mark")
    opens = next((n for n, one in enumerate(bare[:4]) if one.kind == "mark" and one.text in _OPEN), None)
    if opens is not None and bare[-1].text in _CLOSE:
        inside = [one for one in bare[opens + 1 : -1] if one.kind in ("text", "name")]
        return tuple(one.text if one.kind == "text" else bindings.text(one.text) for one in inside)
    return HOLE


def _joins(part: Sequence[Lexeme], at: int) -> bool:
    """Whether the row is texts and names with operators that join texts between them."""
    one = part[at]
    if at % 2 == 0:
        return one.kind in ("text", "name")
    names = part[at - 1].kind == "name" and at + 1 < len(part) and part[at + 1].kind == "name"
    return one.kind == "mark" and one.text in _GLUE and not (one.text == "." and names)


def _builder(lexemes: Sequence[Lexeme], at: int, bindings: Bindings) -> list[object]:
    """Rust's `.arg("a").args(["b", "c"])` behind `Command::new("sh")`."""
    found: list[object] = []
    while at + 2 < len(lexemes) and lexemes[at].text == "." and lexemes[at + 2].text == "(":
        args, _, past = _arguments(lexemes, at + 3, True, bindings)
        if lexemes[at + 1].text in ("arg", "args"):
            found += args
        at = past
    return found
