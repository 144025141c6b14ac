"""Where the symbols of a piece of source code begin and end, and what they are called. Pure.

The language is guessed from the text, as captured output has no file name. Python is read by its own `ast`, or by its
indents where that fails, the others by tree-sitter, which reads past errors. A text in no language that we know has no
symbols, and is cut like any other.
"""

from __future__ import annotations

import ast
import re
import time
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from sandboxmcp.store.chunking.indented import DEFINITIONS, definitions

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_GUESSED_FROM = 20_000
_SIGNS = {
    "python": r"(?:async )?def \w+\(.*(?::$|,$|\($)|class \w+.*:$|from [\w.]+ import "
    r"|import [\w.]+(?: as \w+)?$|@\w[\w.]*(?:\(.*)?$",
    "go": r"package \w+$|func (?:\([^)]*\) )?\w+\(|type \w+ (?:struct|interface|func)\b|import \($",
    "rust": r"(?:pub(?:\([a-z]+\))? )?(?:async )?fn \w+|impl\b.*\{$|use [\w:]+(?:::.*)?;$|(?:pub )?(?:struct|enum|trait|mod) \w+"
    r"|#\[\w",
    "typescript": r"(?:export )?(?:interface|type|enum|abstract class|declare) \w+|import .* from ['\"].*['\"];?$|import type "
    r"|.*\w\)?: (?:string|number|boolean|void|Promise)\b",
    "javascript": r"(?:export )?(?:default )?(?:async )?function\*? ?\w*\(|(?:const|let|var) \w+ = |import .* from ['\"].*['\"];?$"
    r"|module\.exports|(?:export )?class \w+.*\{$",
    "ruby": r"def (?:self\.)?\w+[?!]?(?:\(.*\)|$)|class [A-Z]\w*(?: < \S+)?$|module [A-Z]\w*$|require ['\"]",
    "php": r"<\?php|namespace [\w\\]+;|use [\w\\]+;|(?:abstract |final )?class \w+.*$|.*function \w+\(.*\$|\$\w+ =",
    "csharp": r"using [\w.]+;$|namespace [\w.]+|(?:public|internal|private|protected)"
    r" (?:static |sealed |abstract |partial |async )*(?:class|interface|struct|record|enum|void|Task|string|int|bool)\b",
    "perl": r"use strict;|use warnings;|sub \w+ ?\{?$|my [\$@%(]|package [\w:]+;",
    "bash": r"#!/.*\bsh$|#!/.*bash|(?:function )?[\w-]+ ?\(\) ?\{$|fi$|esac$|done$|if \[\[? |set -[a-z]+",
    "elixir": r"defmodule [\w.]+ do$|defp? \w+[?!]?(?:\(.*\))?(?: when .*)? do$|use [A-Z][\w.]+|@(?:module)?doc ",
    "powershell": r"function [A-Z]\w+-\w+|param ?\($|\[CmdletBinding|\$\w+ = (?:Get|New)-",
}
_GRAMMARS = {
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "typescript": ("tree_sitter_typescript", "language_tsx"),
    "javascript": ("tree_sitter_javascript", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "perl": ("tree_sitter_perl", "language"),
    "bash": ("tree_sitter_bash", "language"),
    "elixir": ("tree_sitter_elixir", "language"),
    "powershell": ("tree_sitter_powershell", "language"),
}
_INNERMOST = frozenset(
    "function_declaration generator_function_declaration method_declaration method_definition method singleton_method function_item"
    " macro_definition function_definition constructor_declaration subroutine_declaration_statement function_statement"
    " class_method_definition type_alias_declaration type_spec enum_declaration enum_item struct_item".split()
)
_HOLDING = frozenset(
    "class_declaration abstract_class_declaration interface_declaration internal_module class module impl_item trait_item mod_item"
    " trait_declaration struct_declaration record_declaration namespace_declaration package_statement class_statement".split()
)
_ELIXIR = frozenset(("defmodule", "def", "defp", "defmacro", "defmacrop", "defprotocol", "defimpl"))
_DEEPEST = 12
_MOST_SECONDS = 1.0
_MOST_NODES = 500_000
_PIECE = 16 << 10
_BESIDE = re.compile(r"\s*(?:#|//|/\*|\*|--|@|\[[A-Z])")


class Symbol(NamedTuple):
    """A named part of the code. Lines count from 0, the last is inside."""

    first: int
    last: int
    depth: int
    name: str


def language_of(text: str) -> str | None:
    """The language that most lines of the beginning speak; None when hardly any speaks one."""
    lines = [line.strip() for line in text[:_GUESSED_FROM].split("\n") if line.strip()]
    counts = {language: sum(sign.match(line) is not None for line in lines) for language, sign in _signs().items()}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= max(2, len(lines) // 100) else None


def symbols_of(text: str) -> list[Symbol]:
    """The symbols of a text in the order of their first lines, comments and decorators above them included."""
    language = language_of(text)
    found = _python(text) if language == "python" else _parsed(text, language) if language else []
    lines = text.split("\n")
    return sorted({symbol._replace(first=_with_comments(lines, symbol.first)) for symbol in found})


@cache
def _signs() -> dict[str, re.Pattern[str]]:
    return {language: re.compile(pattern) for language, pattern in _SIGNS.items()}


def _with_comments(lines: list[str], first: int) -> int:
    while first and _BESIDE.match(lines[first - 1]):
        first -= 1
    return first


def _python(text: str) -> list[Symbol]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _by_indents(text, "python")
    return list(_definitions(tree, 0))


def _definitions(tree: ast.AST, depth: int) -> Iterator[Symbol]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield Symbol(node.lineno - 1, (node.end_lineno or node.lineno) - 1, depth, node.name)
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node, depth + 1)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _definitions(node, depth)


def _parsed(text: str, language: str) -> list[Symbol]:
    """By tree-sitter, starved when it has had its time: some texts take their grammar minutes."""
    import tree_sitter

    source = text.encode()
    end = time.thread_time() + _MOST_SECONDS

    def piece(offset: int, _: object) -> bytes:
        return source[offset : offset + _PIECE] if time.thread_time() < end else b""

    tree = tree_sitter.Parser(_grammar(language)).parse(piece)  # a parser is not for several threads
    late = time.thread_time() >= end or tree.root_node.descendant_count > _MOST_NODES
    found = [] if late else list(_named(tree.root_node, 0, 0))
    if not tree.root_node.has_error or language not in DEFINITIONS:
        return found
    return _completed(found, _by_indents(text, language))


def _completed(found: list[Symbol], by_indents: list[Symbol]) -> list[Symbol]:
    """An error may cost what lies around it: then the indents tell more, or what the parser has no part of."""
    if len(by_indents) > len(found):
        return by_indents
    lost = [one for one in by_indents if not one.depth and not any(had.first <= one.first <= had.last for had in found)]
    return found + lost


def _by_indents(text: str, language: str) -> list[Symbol]:
    return [Symbol(*one) for one in definitions(text.split("\n"), language)]


@cache
def _grammar(language: str) -> Language:
    import tree_sitter

    module, function = _GRAMMARS[language]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some grammars still hand over a number
        return tree_sitter.Language(getattr(import_module(module), function)())


def _named(tree: Node, depth: int, level: int) -> Iterator[Symbol]:
    """The symbols below a node. Functions are not looked into: what they define is theirs."""
    if level > _DEEPEST:
        return
    for node in tree.named_children:
        name = _name(node)
        if name:
            yield Symbol(node.start_point[0], node.end_point[0], depth, name)
        if node.type not in _INNERMOST:
            yield from _named(node, depth + bool(name), level + 1)


def _name(node: Node) -> str:
    if node.type in _INNERMOST or node.type in _HOLDING:
        name = node.child_by_field_name("name") or node.child_by_field_name("type") or _first_name(node)
    elif node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        name = node.child_by_field_name("name") if value is not None and "function" in value.type else None
    elif node.type == "call":
        target = node.child_by_field_name("target")
        name = _called(node) if target is not None and _text(target) in _ELIXIR else None
    else:
        name = None
    return _text(name).split("\n")[0] if name is not None else ""


def _first_name(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type.endswith("name") or child.type == "identifier"), None)


def _called(node: Node) -> Node | None:
    """What a macro of Elixir defines: `def name(args)`, `defmodule Name`."""
    arguments = next((child for child in node.named_children if child.type == "arguments"), None)
    first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    while first is not None and first.type in ("call", "binary_operator"):
        first = first.child_by_field_name("target") or first.child_by_field_name("left")
    return first


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
