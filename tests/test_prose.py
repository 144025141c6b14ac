"""No code decides by reading back a sentence that we wrote: reasons have codes (core/reasons.py)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_READING = frozenset(
    "startswith endswith removeprefix removesuffix partition rpartition split rsplit find index count replace compile match"
    " fullmatch search sub findall finditer".split()
)
_PHRASE = re.compile(r"[A-Za-z_]{2,}[;:,]? [A-Za-z_]{2,}")
ALLOWED = {
    "No such option": "a message of the library that reads the command line, which has no code for it",
    "Possible options": "the same",
    "no such file": "what any program says, looked for in its output",
    "No space left on device": "what the operating system says, in the output of programs",
    "Resource temporarily unavailable": "the same",
    r"at line (\d+)": "tomllib names the line in its message only",
}


def _files() -> Iterator[tuple[Path, ast.Module]]:
    for folder in ("sandboxmcp", "kernels/guest"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield file, ast.parse(file.read_text())


def _read_by(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts that something is compared with or searched for."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READING:
        for argument in node.args:
            yield from (one for one in ast.walk(argument) if isinstance(one, ast.Constant))
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant):
        yield from [node.left] if any(isinstance(one, ast.In | ast.NotIn) for one in node.ops) else []


def _docstrings(tree: ast.Module) -> set[int]:
    bodies = [
        node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {id(one.value) for body in bodies for one in body if isinstance(one, ast.Expr)}


def findings() -> list[str]:
    """Where a phrase that something is compared with stands in a text of ours too."""
    read: list[tuple[str, str]] = []
    written: list[str] = []
    for file, tree in _files():
        compared = {id(one): one for node in ast.walk(tree) for one in _read_by(node)}
        documented = _docstrings(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documented:
                continue
            if id(node) not in compared:
                written.append(node.value)
            elif _PHRASE.search(node.value):
                read.append((f"{file.relative_to(ROOT)}:{node.lineno}", node.value))
    return [
        f"{place}: {phrase!r}"
        for place, text in read
        for phrase in _PHRASE.findall(text)
        if not any(one in text for one in ALLOWED) and any(phrase in one for one in written)
    ]


def test_no_text_of_ours_is_read_back() -> None:
    assert findings() == []


def test_what_is_allowed_is_still_there() -> None:
    texts = "\n".join(file.read_text() for file, _ in _files())
    assert [phrase for phrase in ALLOWED if phrase not in texts] == []
