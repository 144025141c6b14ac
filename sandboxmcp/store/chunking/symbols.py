"""Where the symbols of a piece of source code begin and end, and what they are called. Pure.

The language is guessed from the text, as captured output has no file name. Python is read by its own `ast`, or by its
indents where that fails, the others by tree-sitter, which reads past errors. A text in no language that we know has no
symbols, and is cut like any other.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from sandboxmcp.store.chunking.indented import DEFINITIONS, definitions

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

_GUESSED_FROM = 20_000
_SIGN_LETTERS = 400
"""So much of a line is looked at for the signs of a language."""
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
_STEPS = 5_000
_BYTES_A_STEP = 4
"""The steps of a parse grow with the text. Ordinary code takes one for ten bytes of Perl, for a hundred of most others."""
_MOST_NODES = 500_000
_PIECE = 1 << 10
"""What the lexer is given at once. It is copied each time that the lexer goes back: with 16 KiB Perl takes ten times as long."""
_BESIDE = re.compile(r"\s*(?:#|//|/\*|\*|--|@|\[[A-Z])")


class Symbol(NamedTuple):
    """A named part of the code. Lines count from 0, the last is inside."""

    first: int
    last: int
    depth: int
    name: str


def language_of(text: str) -> str | None:
    """The language that most lines of the beginning speak; None when hardly any speaks one."""
    lines = [line.strip()[:_SIGN_LETTERS] for line in text[:_GUESSED_FROM].split("\n") if line.strip()]
    counts = {language: sum(sign.match(line) is not None for line in lines) for language, sign in _signs().items()}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= max(2, len(lines) // 100) else None


def symbols_of(text: str) -> list[Symbol]:
    """The symbols of a text in the order of their first lines, comments and decorators above them included."""
    language = language_of(text)
    found = _python(text) if language == "python" else _parsed(text, language) if language else []
    lines = text.split("\n")
    begins: dict[int, int] = {}
    return sorted({symbol._replace(first=_with_comments(lines, symbol.first, begins)) for symbol in found})


@cache
def _signs() -> dict[str, re.Pattern[str]]:
    return {language: re.compile(pattern) for language, pattern in _SIGNS.items()}


def _with_comments(lines: list[str], first: int, begins: dict[int, int]) -> int:
    """The first of the lines right above that are comments. `begins` remembers it: many symbols may stand below the same ones."""
    line = first
    while line and line not in begins and _BESIDE.match(lines[line - 1]):
        line -= 1
    found = begins.get(line, line)
    begins.update(dict.fromkeys(range(line, first + 1), found))
    return found


def _python(text: str) -> list[Symbol]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _by_indents(text, "python")
    return list(_definitions(tree))


def _definitions(tree: ast.AST) -> Iterator[Symbol]:
    """In no order. A loop and not a recursion: a chain of `elif` is a tree as deep as it is long."""
    waiting = [(tree, 0)]
    while waiting:
        outer, depth = waiting.pop()
        for node in ast.iter_child_nodes(outer):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield Symbol(node.lineno - 1, (node.end_lineno or node.lineno) - 1, depth, node.name)
                if isinstance(node, ast.ClassDef):
                    waiting.append((node, depth + 1))
            elif isinstance(node, ast.If | ast.Try | ast.With):
                waiting.append((node, depth))


def _parsed(text: str, language: str) -> list[Symbol]:
    """By tree-sitter, as far as its steps reach: some texts take their grammar minutes."""
    tree = _tree(text.encode(), language)
    found = [] if tree is None or tree.root_node.descendant_count > _MOST_NODES else list(_named(tree.root_node, 0, 0))
    if (tree is not None and not tree.root_node.has_error) or language not in DEFINITIONS:
        return found
    return _completed(found, _by_indents(text, language))


def _tree(source: bytes, language: str) -> Tree | None:
    """None when it takes too many steps. Steps are counted and not seconds: the same code has the same symbols on every day.

    A step is a hundred operations of the parser, or a piece that its lexer reads, perhaps again.
    """
    import tree_sitter

    left = _STEPS + len(source) // _BYTES_A_STEP

    def spend(*_: object) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    def piece(offset: int, _: object) -> bytes:
        return b"" if spend() else source[offset : offset + _PIECE]

    try:
        tree = tree_sitter.Parser(_grammar(language)).parse(piece, progress_callback=spend)  # a parser is not for several threads
    except ValueError:  # it was told to stop
        return None
    return tree if left >= 0 else None


def _completed(found: list[Symbol], by_indents: list[Symbol]) -> list[Symbol]:
    """An error may cost what lies around it: then the indents tell more, or what the parser has no part of."""
    if len(by_indents) > len(found):
        return by_indents
    within = _within(found)
    return found + [one for one in by_indents if not one.depth and not within(one.first)]


def _within(symbols: Iterable[Symbol]) -> Callable[[int], bool]:
    """Says of a line whether a symbol holds it."""
    firsts: list[int] = []
    lasts: list[int] = []
    """The furthest line of the symbols that begin by then."""
    for one in sorted(symbols):
        firsts.append(one.first)
        lasts.append(max(one.last, lasts[-1] if lasts else one.last))

    def within(line: int) -> bool:
        before = bisect_right(firsts, line)
        return before > 0 and lasts[before - 1] >= line

    return within


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
