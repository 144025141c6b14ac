"""What names and expressions of Python code stand for: aliases followed home, literals read, scope left out of account."""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Iterable

from sandboxmcp.policy.facts import HOLE, SPREAD, Reference
from sandboxmcp.policy.programs.knowledge import Knowledge

_PATHS = frozenset(
    {
        "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.Path.home", "os.path.join", "os.path.expanduser",
        "os.path.abspath", "os.path.normpath", "os.path.realpath", "os.fspath", "str",
    }
)  # fmt: skip
"""Functions that make a path of their arguments, or leave one as it is."""
_MOST_DEPTH = 40
"""Layers of an expression that are followed."""


_BUILTINS = {"__builtins__": "builtins"}


class Names:
    """What the names in some code stand for. An alias anywhere in the code counts everywhere in it."""

    def __init__(self, nodes: Iterable[ast.AST], knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.names: dict[str, str] = {}
        """Name or dotted target to what it stands for."""
        self.constants: dict[str, set[object]] = {}
        for node in nodes:
            self.bind(node)

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
                self.constants.setdefault(spelled(target) or "", set()).add(HOLE)
            case ast.arg(arg=name):
                self.constants.setdefault(name, set()).add(HOLE)

    def bind_target(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for part, one in zip(target.elts, values, strict=False):
                if not isinstance(part, ast.Tuple | ast.List):
                    self.bind_target(part, one)
            return
        name = spelled(target)
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
                    whole = spelled(node)
                    if whole in self.names:
                        return ".".join([self.names[whole], *reversed(parts)])
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
                    return ".".join([self.names.get(name, _BUILTINS.get(name, name)), *reversed(parts)])
                case _:
                    return None
        return None

    def meaning_of_lookup(self, function: ast.expr) -> str | None:
        """`import` for a function that returns the module it is told, `getattr` for that one."""
        name = spelled(function)
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
            case ast.Call(args=args) if (meaning := self.meaning(node)) in _PATHS or meaning == "shlex.split":
                return self.called_value(meaning or "", [self.value(arg, depth + 1) for arg in args])
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return _path_of([self.value(left, depth + 1), self.value(right, depth + 1)])
            case ast.Call(func=ast.Attribute(value=inner, attr="format" | "split" as attr), args=args) if isinstance(
                whole := self.value(inner, depth + 1), str
            ):
                return re.sub(r"\{[^{}]*\}", HOLE, whole) if attr == "format" else HOLE if args else tuple(whole.split())
            case ast.Name() | ast.Attribute():
                return self.named_value(node)
        return HOLE

    def called_value(self, meaning: str, args: list[object]) -> object:
        """The literal that a call to one of a few pure functions returns."""
        if meaning == "shlex.split":
            return _shell_split(args[0] if args else HOLE)
        return "~" if meaning.endswith("Path.home") else _path_of(args)

    def named_value(self, node: ast.expr) -> object:
        values = self.constants.get(spelled(node) or "", set())
        if len(values) == 1:
            return next(iter(values))
        meaning = self.meaning(node)
        if meaning == "sys.executable":
            return "python"
        return Reference(meaning) if meaning is not None and isinstance(node, ast.Attribute) else HOLE


def _path_of(parts: list[object]) -> object:
    if not all(isinstance(part, str) for part in parts):
        return HOLE
    return posixpath.join(*map(str, parts)) if parts else "."


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


def spelled(node: ast.expr) -> str | None:
    """`self.sock` as written; None for what is not a plain dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MOST_DEPTH:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None
