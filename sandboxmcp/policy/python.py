"""Python code by its syntax tree (`ast`): imports, calls with their names followed home, commands that it starts.

Names are followed without regard to scope: an alias anywhere in the code counts everywhere. The code runs in IPython, so its
`!command` lines and `%%bash` cells are understood too. A syntax error yields no facts: the script runs and reports it.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

from sandboxmcp.policy.argv import command_of, expand_command
from sandboxmcp.policy.facts import (
    HOLE,
    SPREAD,
    UNKNOWN_NAME,
    Call,
    Command,
    Embedded,
    Fact,
    Import,
    Reference,
    Sink,
    Unknown,
    Word,
    filled,
)
from sandboxmcp.policy.programs import Function, Knowledge

_MOST_CHARACTERS = 1 << 20
"""Code beyond this is not analysed."""
_MOST_NODES = 400_000
_MOST_DEPTH = 40
"""Layers of an expression that are followed when it is read as a literal or a name."""
_CELL_MAGIC = re.compile(r"\s*%%(?:bash|sh|script\s+(?:ba|da|z|k)?sh|system|sx|!)\b[^\n]*\n")
_SHELL_LINE = re.compile(r"(?P<indent>\s*+)(?:[\w\[(][\w.,\s\[\]()]*+=\s*+)?(?:!!?|%sx\s|%system\s)(?P<code>.+)")
_MAGIC_LINE = re.compile(r"(?P<indent>\s*+)(?:[\w\[(][\w.,\s\[\]()]*+=\s*+)?%\w.*")
_F_STRING = re.compile(r"\b(?:[fF][rR]?|[rR][fF])[\"']")
_MOST_BRACES = 20_000
"""In code with f-strings: until Python 3.12 the time to parse one grows with the square of its length."""


def python_facts(code: str, knowledge: Knowledge) -> tuple[Fact, ...]:
    """The facts of Python code. What it gives up on is an Unknown."""
    if len(code) > _MOST_CHARACTERS:
        return (Unknown(1, f"python code of more than {_MOST_CHARACTERS:,} characters"),)
    if code.count("{") > _MOST_BRACES and _F_STRING.search(code):
        return (Unknown(1, f"python code with f-strings and more than {_MOST_BRACES:,} braces"),)
    code = code.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    cell = _CELL_MAGIC.match(code)
    if cell:
        return (Embedded(code.count("\n", 0, cell.end()) + 1, "shell", code[cell.end() :]),)
    shell_lines: list[Fact] = []
    try:
        tree = _parse(code)
        if tree is None and ("!" in code or "%" in code):
            plain, shell_lines = _without_magics(code)
            tree = _parse(plain) if plain != code else None
        if tree is None:
            return ()
        nodes = list(islice(_in_order(tree), _MOST_NODES + 1))
        if len(nodes) > _MOST_NODES:
            return (Unknown(1, f"python code of more than {_MOST_NODES:,} syntax nodes"),)
        return (*shell_lines, *_Walk(nodes, knowledge).facts())
    except (RecursionError, MemoryError):
        return (Unknown(1, "python code nested too deeply to analyse"),)


def _parse(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError):
            return None


def _without_magics(code: str) -> tuple[str, list[Fact]]:
    """The code with IPython's own lines replaced by `pass`, and the shell code of those lines."""
    lines, found = code.split("\n"), list[Fact]()
    for at, line in enumerate(lines):
        shell, magic = _SHELL_LINE.fullmatch(line), _MAGIC_LINE.fullmatch(line)
        if shell:
            found.append(Embedded(at + 1, "shell", re.sub(r"\{[^{}]*\}", f"${{{UNKNOWN_NAME}}}", shell["code"])))
        if replaced := shell or magic:
            lines[at] = replaced["indent"] + "pass"
    return "\n".join(lines), found


class _Walk:
    """Two passes over one tree: what names stand for, then what is imported and called."""

    def __init__(self, nodes: Sequence[ast.AST], knowledge: Knowledge) -> None:
        self.nodes, self.knowledge = nodes, knowledge
        self.names: dict[str, str] = {}
        """Name or dotted target to what it stands for."""
        self.constants: dict[str, set[object]] = {}

    def facts(self) -> Iterator[Fact]:
        for node in self.nodes:
            self.bind(node)
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    yield from (Import(node.lineno, alias.name) for alias in names)
                case ast.ImportFrom(module=str(module), level=0, names=names):
                    yield from (Import(node.lineno, module if a.name == "*" else f"{module}.{a.name}") for a in names)
                case ast.Call():
                    yield from self.call(node)

    def bind(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    self.names[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    self.names[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.bind_target(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self.bind_target(target, value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self.bind_target(target, value)
            case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
                self.constants.setdefault(_spelled(target) or "", set()).add(HOLE)
            case ast.arg(arg=name):
                self.constants.setdefault(name, set()).add(HOLE)

    def bind_target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for part, one in zip(target.elts, values, strict=False):
                if not isinstance(part, ast.Tuple | ast.List):
                    self.bind_target(part, one)
            return
        name = _spelled(target)
        if name is None:
            return
        self.constants.setdefault(name, set()).add(self.value(value))
        meaning = self.meaning(value)
        if meaning is not None:
            self.names.setdefault(name, meaning)

    def meaning(self, node: ast.expr) -> str | None:
        """The dotted name that an expression stands for; what a call returns is named like the function."""
        parts: list[str] = []
        for _ in range(_MOST_DEPTH):
            match node:
                case ast.Attribute(value=inner, attr=attr):
                    spelled = _spelled(node)
                    if spelled in self.names:
                        return ".".join([self.names[spelled], *reversed(parts)])
                    parts.append(attr)
                    node = inner
                case ast.Call(func=function, args=[ast.expr() as first, *rest]) if known := self.meaning_of_lookup(function):
                    told = self.value(rest[0] if rest and known == "getattr" else first)
                    if not isinstance(told, str) or HOLE in told:
                        return None
                    if known == "import":
                        return ".".join([told, *reversed(parts)])
                    parts.append(told)
                    node = first
                case ast.Call(func=inner) | ast.Await(value=inner) | ast.NamedExpr(value=inner):
                    node = inner
                case ast.Name(id=name):
                    return ".".join([self.names.get(name, name), *reversed(parts)])
                case _:
                    return None
        return None

    def meaning_of_lookup(self, function: ast.expr) -> str | None:
        """`import` for a function that returns the module it is told, `getattr` for that one."""
        name = _spelled(function)
        if name is None:
            return None
        known = self.names.get(name) or ".".join([self.names.get(name.split(".")[0], name.split(".")[0]), *name.split(".")[1:]])
        if known.removeprefix("builtins.") == "getattr":
            return "getattr"
        found = self.knowledge.functions.get(("python", known))
        return "import" if found is not None and found.runs == "import" else None

    def value(self, node: ast.expr, depth: int = 0) -> object:
        """The literal that an expression is; HOLE for what is none, also inside texts and tuples."""
        if depth > _MOST_DEPTH:
            return HOLE
        match node:
            case ast.Constant(value=bytes() as raw):
                return raw.decode("utf-8", "replace").replace("\0", "")
            case ast.Constant(value=str() as text):
                return text.replace("\0", "")
            case ast.Constant(value=value):
                return value
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                return tuple(SPREAD if isinstance(e, ast.Starred) else self.value(e, depth + 1) for e in elts)
            case ast.JoinedStr(values=values):
                return "".join(str(self.value(part, depth + 1)) if isinstance(part, ast.Constant) else HOLE for part in values)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _added(self.value(left, depth + 1), self.value(right, depth + 1))
            case ast.BinOp(left=left, op=ast.Mod()) if isinstance(pattern := self.value(left, depth + 1), str):
                return re.sub(r"%[-+ #\d.]*[sdrif]", HOLE, pattern)
            case ast.Call(args=[first, *_]) if self.meaning(node) == "shlex.split":
                return _shell_split(self.value(first, depth + 1))
            case ast.Call(func=ast.Attribute(value=inner, attr="format" | "split" as attr), args=args) if isinstance(
                whole := self.value(inner, depth + 1), str
            ):
                return re.sub(r"\{[^{}]*\}", HOLE, whole) if attr == "format" else HOLE if args else tuple(whole.split())
            case ast.Name() | ast.Attribute():
                return self.named_value(node)
        return HOLE

    def named_value(self, node: ast.expr) -> object:
        values = self.constants.get(_spelled(node) or "", set())
        if len(values) == 1:
            return next(iter(values))
        meaning = self.meaning(node)
        if meaning == "sys.executable":
            return "python"
        return Reference(meaning) if meaning is not None and isinstance(node, ast.Attribute) else HOLE

    def call(self, node: ast.Call) -> Iterator[Fact]:
        name = self.meaning(node.func)
        if name is None:
            return
        call = Call(
            node.lineno,
            name.removeprefix("builtins."),
            tuple(SPREAD if isinstance(arg, ast.Starred) else self.value(arg) for arg in node.args),
            {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg},
            tuple(arg.lineno for arg in node.args),
        )
        yield call
        function = self.knowledge.functions.get(("python", call.name))
        if function is not None:
            yield from _runs(call, function, self.knowledge)


def _runs(call: Call, function: Function, knowledge: Knowledge) -> Iterator[Fact]:
    """What a function that runs something out of its arguments runs."""
    args = call.args[function.argument :]
    line = call.lines[function.argument] if args else call.line
    first = args[0] if args else next((call.options[k] for k in ("args", "cmd", "command", "name") if k in call.options), HOLE)
    if function.runs == "import":
        known = isinstance(first, str) and HOLE not in first
        yield Import(call.line, str(first)) if known else Unknown(call.line, f"the module that {call.name} imports")
    elif function.runs == "code" or (function.runs == "argv" and isinstance(first, str) and _uses_shell(call)):
        yield from _code(first, function.code, line, call)
    else:
        words = _words(first if function.runs == "argv" else args, line, drop_name=function.runs == "exec")
        found = command_of(words, Command(line, "", (), _sink(call, "stdout"), _sink(call, "stderr")))
        yield from expand_command(found, knowledge) if isinstance(found, Command) else [found] if found else []


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


def _added(left: object, right: object) -> object:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, tuple):
        return (*left, SPREAD)
    if isinstance(left, str) or isinstance(right, str):
        return (left if isinstance(left, str) else HOLE) + (right if isinstance(right, str) else HOLE)
    return HOLE


def _shell_split(text: object) -> object:
    try:
        return tuple(shlex.split(text)) if isinstance(text, str) else HOLE
    except ValueError:
        return HOLE


def _spelled(node: ast.expr) -> str | None:
    """`self.sock` as written; None for what is not a plain dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MOST_DEPTH:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, in the order of the source, without what only a type checker reads."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.If) and (_spelled(node.test) or "").split(".")[-1] == "TYPE_CHECKING":
            children = list(node.orelse)
        stack.extend(reversed(children))
