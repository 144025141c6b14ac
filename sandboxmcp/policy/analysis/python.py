"""Python code by its syntax tree (`ast`): imports, calls with their names followed home, commands that it starts.

The code runs in IPython, so its `!command` lines and `%%bash` cells are understood too. A syntax error yields no facts: the
script runs and reports it.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

from sandboxmcp.policy.analysis.python_names import Names, spelled
from sandboxmcp.policy.analysis.spawning import runs_of
from sandboxmcp.policy.facts import (
    HOLE,
    SPREAD,
    UNKNOWN_NAME,
    Call,
    Embedded,
    Fact,
    Import,
    Unknown,
)
from sandboxmcp.policy.programs.knowledge import Knowledge

_MOST_CHARACTERS = 1 << 20
"""Code beyond this is not analysed."""
_MOST_NODES = 400_000
_PARSING = threading.Lock()
"""Warnings can be silenced only for all threads at once."""
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
        return (*shell_lines, *_facts(nodes, knowledge))
    except (RecursionError, MemoryError):
        return (Unknown(1, "python code nested too deeply to analyse"),)


def _parse(code: str) -> ast.Module | None:
    with _PARSING, warnings.catch_warnings():
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


def _facts(nodes: Sequence[ast.AST], knowledge: Knowledge) -> Iterator[Fact]:
    """What is imported and called."""
    names = Names(nodes, knowledge)
    for node in nodes:
        match node:
            case ast.Import(names=imported):
                yield from (Import(node.lineno, alias.name) for alias in imported)
            case ast.ImportFrom(module=str(module), level=0, names=imported):
                yield from (Import(node.lineno, module if a.name == "*" else f"{module}.{a.name}") for a in imported)
            case ast.Call():
                yield from _call(node, names)


def _call(node: ast.Call, names: Names) -> Iterator[Fact]:
    name = names.meaning(node.func)
    if _is_looked_up(node.func, names):
        yield Unknown(node.lineno, "which function is called, by a name that is made up at run time")
    if name is not None:
        call = Call(
            node.lineno,
            name.removeprefix("builtins."),
            tuple(SPREAD if isinstance(arg, ast.Starred) else names.value(arg) for arg in node.args),
            {keyword.arg: names.value(keyword.value) for keyword in node.keywords if keyword.arg},
            tuple(arg.lineno for arg in node.args),
            receiver=names.value(node.func.value) if isinstance(node.func, ast.Attribute) else HOLE,
        )
        yield call
        yield from runs_of(call, names.knowledge)


def _is_looked_up(function: ast.expr, names: Names) -> bool:
    """`getattr(os, x)` and `globals()[x]`: a function of a module or of the builtins, by a name that is not spelled out."""
    match function:
        case ast.Call(func=ast.Name(id="getattr"), args=[module, name, *_]):
            return names.meaning(module) is not None and not (isinstance(text := names.value(name), str) and HOLE not in text)
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals" | "locals" | "vars")), slice=name):
            return True
        case ast.Subscript(value=ast.Attribute(attr="__dict__") | ast.Name(id="__builtins__")):
            return True
        case ast.Attribute(value=ast.Subscript() as inner):
            return _is_looked_up(inner, names)
    return False


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, in the order of the source, without what only a type checker reads."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.If) and (spelled(node.test) or "").split(".")[-1] == "TYPE_CHECKING":
            children = list(node.orelse)
        stack.extend(reversed(children))
