"""What names in a row of lexemes stand for: imports of every language, aliases, and texts that are given a name once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sandboxmcp.policy.analysis.lexemes import Lexeme
from sandboxmcp.policy.facts import HOLE, Fact, Import

JOINTS = frozenset({".", "::", "->", "?.", "\\", "&."})
_ASSIGN = frozenset({"=", ":=", "<-"})
_DECLARES = frozenset({"function", "class", "def", "func", "fn", "sub", "struct", "enum", "defp", "defmodule"})
_GLOBALS = frozenset({"globalThis", "window", "self", "global"})
SCRIPTS = frozenset({"javascript", "typescript"})
_LOADERS = {"require", "import", "requireNamespace", "library", "loadNamespace"}
_NO_ALIAS = frozenset({"require", "await", "import", "new"})
_MOST = 400
"""Lexemes of one statement that are looked at."""


class Bindings:
    """What names stand for in one piece of code; scope is left out of account."""

    def __init__(self, lexemes: Sequence[Lexeme], language: str) -> None:
        self.lexemes, self.language = lexemes, language
        self.names: dict[str, str] = {}
        self.texts: dict[str, set[str]] = {}
        self.declared: set[str] = set()
        self.imports: list[Fact] = list(self._read())

    def meaning(self, parts: Sequence[str]) -> str | None:
        """The dotted name that a chain stands for; None for one that the code itself declares."""
        if self.language in SCRIPTS and parts[0] in _GLOBALS and len(parts) > 1:
            parts = parts[1:]
        if parts[0] in self.names:
            return ".".join([self.names[parts[0]], *parts[1:]])
        return None if parts[0] in self.declared else ".".join(parts)

    def text(self, name: str) -> str:
        found = self.texts.get(name, set())
        return next(iter(found)) if len(found) == 1 else HOLE

    def _read(self) -> Iterator[Fact]:
        for at, lexeme in enumerate(self.lexemes):
            if lexeme.kind != "name":
                continue
            if lexeme.text in _DECLARES and self._kind(at + 1) == "name":
                self.declared.add(self.lexemes[at + 1].text)
            elif self._is(at + 1, _ASSIGN):
                self._assigned(at)
            yield from self._imported(at, lexeme)

    def _imported(self, at: int, lexeme: Lexeme) -> Iterator[Fact]:
        """The imports of a statement that begins here."""
        if self.language in SCRIPTS:
            yield from self._script_import(at) if lexeme.text in ("import", "export", "require") else ()
        elif self.language == "go":
            yield from self._go_import(at) if lexeme.text == "import" else ()
        elif self.language == "rust":
            yield from self._tree(at + 1, "") if lexeme.text == "use" else ()
        elif self.language in ("php", "csharp", "perl"):
            yield from self._use(at) if lexeme.text in ("use", "using", "require") else ()
        elif self.language in ("ruby", "r") and lexeme.text in _LOADERS:
            found = self.lexemes[at + 1 + self._is(at + 1, {"("}) :][:1]
            if found and found[0].kind in ("name", "text"):
                yield Import(lexeme.line, found[0].text, self.language)

    def _script_import(self, at: int) -> Iterator[Fact]:
        """`import a, {b as c} from "m"`, `import "m"`, `import("m")`, `require("m")`, and what the result is called."""
        line = self.lexemes[at].line
        if self._is(at + 1, {"("}):
            if self._kind(at + 2) == "text":
                module = self._module(at + 2)
                yield Import(line, module, self.language)
                self._bind_back(at - 1, module)
            return
        if self._is(at + 1, {"type"}) and not self._is(at + 2, {"from", ","}):
            return
        end = next((n for n in range(at, min(at + _MOST, len(self.lexemes))) if self.lexemes[n].kind in ("text", "shell")), None)
        if end is None or any(self._is(n, {";", "=", "("}) for n in range(at, end)):
            return
        module = self._module(end)
        yield Import(line, module, self.language)
        self._bind_list(range(at + 1, end), module, "as")

    def _module(self, at: int) -> str:
        return self.lexemes[at].text.removeprefix("node:")

    def _bind_back(self, at: int, module: str) -> None:
        """Names to the left of `= require("m")`."""
        if self._is(at, {"await"}):
            at -= 1
        if not self._is(at, _ASSIGN):
            return
        if self._is(at - 1, {"}"}):
            start = next((n for n in range(at - 1, max(-1, at - _MOST), -1) if self._is(n, {"{"})), at)
            self._bind_list(range(start, at), module, ":")
        elif self._kind(at - 1) == "name":
            self.names[self.lexemes[at - 1].text] = f"module:{module}"

    def _bind_list(self, places: range, module: str, renames: str) -> None:
        """`a as b` in braces binds b to the module's a; outside of them a name is the whole module."""
        braced = False
        for at in places:
            text = self.lexemes[at].text
            braced = (braced or text == "{") and text != "}"
            if text in ("from", "type", renames) or not (self.lexemes[at].kind == "name" or self._word(at)):
                continue
            if self._is(at + 1, {renames}) and not self._is(at - 1, {renames}):
                continue
            original = self.lexemes[at - 2].text if self._is(at - 1, {renames}) else text
            whole = not braced or original in ("default", "*")
            self.names[text] = f"module:{module}" if whole else f"module:{module}.{original}"

    def _word(self, at: int) -> bool:
        return self.lexemes[at].text.isidentifier()

    def _go_import(self, at: int) -> Iterator[Fact]:
        end = at + 2
        if self._is(at + 1, {"("}):
            end = next((n for n in range(at, min(at + _MOST, len(self.lexemes))) if self._is(n, {")"})), at)
        elif self._kind(at + 1) != "text":
            end = at + 3
        for place in range(at + 1, min(end, len(self.lexemes))):
            lexeme = self.lexemes[place]
            if lexeme.kind == "text":
                before = self.lexemes[place - 1]
                named = before.kind == "name" and before.text != "import" and before.line == lexeme.line
                self.names[before.text if named else lexeme.text.rsplit("/", 1)[-1]] = lexeme.text
                yield Import(lexeme.line, lexeme.text, "go")

    def _tree(self, at: int, prefix: str) -> Iterator[Fact]:
        """Rust's `use a::{b, c as d};`."""
        stack, path = [prefix], ""
        last = ""
        for place in range(at, min(at + _MOST, len(self.lexemes))):
            lexeme = self.lexemes[place]
            if lexeme.text == "as":
                self.names[self.lexemes[place + 1].text if place + 1 < len(self.lexemes) else ""] = f"{stack[-1]}{path}".rstrip(".")
                last = "as"
            elif lexeme.kind == "name" and last != "as":
                path = f"{path}{lexeme.text}."
            elif lexeme.text == "{":
                stack.append(stack[-1] + path)
                path = ""
            elif lexeme.text in (",", "}", ";"):
                if path:
                    whole = f"{stack[-1]}{path}".rstrip(".")
                    if last != "as":
                        self.names[whole.rsplit(".", 1)[-1]] = whole
                    yield Import(lexeme.line, whole, "rust")
                path, last = "", ""
                if lexeme.text == "}" and len(stack) > 1:
                    stack.pop()
                if lexeme.text == ";":
                    return

    def _use(self, at: int) -> Iterator[Fact]:
        """`use A\\B as C;`, `using H = A.B;`, `use A::B qw(c);`."""
        place = at + 1
        alias = ""
        if self._kind(place) == "name" and self._is(place + 1, {"="}):
            alias, place = self.lexemes[place].text, place + 2
        parts = []
        while self._kind(place) == "name":
            parts += self.lexemes[place].text.split("::")
            place += 2 if self._is(place + 1, JOINTS) else 1
            if not self._is(place - 1, JOINTS):
                break
        if not parts:
            return
        whole = ".".join(parts)
        if self._is(place, {"as"}) and self._kind(place + 1) == "name":
            alias = self.lexemes[place + 1].text
        if self.language == "php" or alias:
            self.names[alias or parts[-1]] = whole
        yield Import(self.lexemes[at].line, whole, self.language)

    def _assigned(self, at: int) -> None:
        """`a = "text"` once names a text; `a = b.c` makes an alias."""
        name, place = self.lexemes[at].text, at + 2
        if self._kind(place) == "text" and not self._is(place + 1, {"+", ".", "~", "<>"}):
            self.texts.setdefault(name, set()).add(self.lexemes[place].text)
            return
        self.texts.setdefault(name, set()).add(HOLE)
        parts = []
        while self._kind(place) == "name":
            parts.append(self.lexemes[place].text)
            place += 1
            if not self._is(place, JOINTS):
                break
            place += 1
        self.declared.add(name)
        if parts and not self._is(place, {"(", "{", "["}) and parts[0] not in _NO_ALIAS and parts != [name]:
            meaning = self.meaning(parts)
            if meaning is not None:
                self.names.setdefault(name, meaning)

    def _is(self, at: int, wanted: frozenset[str] | set[str]) -> bool:
        return 0 <= at < len(self.lexemes) and self.lexemes[at].text in wanted and self.lexemes[at].kind in ("name", "mark")

    def _kind(self, at: int) -> str:
        return self.lexemes[at].kind if 0 <= at < len(self.lexemes) else ""
