"""Which variables of a shell script surely have the value that the script gives them, at a place of the script.

`$c rm x` runs rm if c is empty, so a value counts for the name of a command only where its assignment has surely run before, in
the same shell. An assignment counts from its own end up to the end of the block in which it stands: a subshell, the body of a loop,
a branch, a part of a pipeline. In a function's body it counts if it is made before the script's first call of any function.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandboxmcp.policy.analysis.shell_scan import Scan
from sandboxmcp.policy.analysis.shell_words import Variables, raw_of, text_of
from sandboxmcp.policy.facts import HOLE

if TYPE_CHECKING:
    from tree_sitter import Node

_NEVER = -1
_MOST_ASSIGNMENTS = 50
_OWN_BLOCK = frozenset(
    {"subshell", "do_group", "case_item", "else_clause", "elif_clause", "command_substitution", "process_substitution"}
    | {"function_definition", "redirected_statement"}
)
_KEEP_VALUES = frozenset({"export", "readonly"})
"""Declarations that leave a variable which they name as it is; the others make a new one in a function."""
RUN_TEXT = frozenset({"eval", "trap", "source", ".", "mapfile", "readarray", "alias", "complete", "bind"})
"""Builtins that run text in the same shell."""
_SET_NAMED = frozenset({"read", "printf", "mapfile", "readarray", "getopts", "wait", "let", "unset"})
"""Builtins that set or unset variables which their arguments name."""
_READS = frozenset({"read", "mapfile", "readarray"})
_PASS_ON = frozenset({"builtin", "command", "time", "coproc"})
_VALUED = re.compile(r"-\w*[pdtnNuioOsCcT]")
"""An option behind which a value of another kind stands."""
_MARKS = re.compile(
    rb"\(\(|\$\[|\blet\b|\beval\b|\btrap\b|\bsource\b|(?:^|[\s;&|({])\.\s|\bmapfile\b|\breadarray\b|\balias\b|declare\s+-\w*i"
)
"""Code that may set variables in text which the tree does not hold as assignments."""
_SET_IN_TEXT = re.compile(
    r"(?<![\w-])([A-Za-z_]\w{0,200})(?:\[[^\]\n]{0,200}\])?\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)"
    r"|(?<!\w)(\w{1,200})(?:\+\+|--)|(?:\+\+|--)(\w{1,200})"
)
PRINT_NO_CODE = re.compile(
    r"\"?(?:\$\(|`)\s*(?:mktemp|tempfile|getopt)\b(?:(?!\s-\w*u|--unquoted|[;&|`(]).)*[)`]\"?\Z",
    re.DOTALL,
)
"""Programs that print the path of a new file, or words that they have quoted for `eval`."""
_SET_BY_USE = re.compile(r"\$\{(\w+):?=|\{(\w+)\}[<>]")
"""`${c:=x}`, and `exec {c}>file`."""
_OF_THE_SHELL = frozenset(
    "_ RANDOM SECONDS LINENO UID EUID PPID BASHPID BASHOPTS SHELLOPTS FUNCNAME GROUPS HISTCMD OPTARG OPTIND REPLY PIPESTATUS"
    " SRANDOM EPOCHSECONDS EPOCHREALTIME BASH_COMMAND BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_ARGV0 DIRSTACK MAPFILE COPROC"
    " OLDPWD".split()
)
"""Variables that the shell sets by itself."""


@dataclass(slots=True)
class Assignments:
    """Where each variable of a script is assigned, and what else may set it."""

    source: bytes
    counts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By name: where an assignment counts, from and to."""
    assigned: dict[str, int] = field(default_factory=dict)
    """How many assignments the tree holds."""
    built: set[str] = field(default_factory=set)
    """Variables that are assigned anything but the output of programs that print no code."""
    lost: set[str] = field(default_factory=set)
    """Variables that other things than plain assignments may set or unset."""
    all_lost: bool = False
    """A variable whose name is known only at run time is set."""
    functions: list[tuple[int, int]] = field(default_factory=list)
    """Where functions that stand in no other begin and end, in order."""
    nested: bool = False
    """A function is defined in another one."""
    calls: int = 1 << 62
    """Where a function may be called first, outside of functions."""
    separators: str = ""
    """Characters that `IFS` is set to; HOLE: not known."""

    def sure(self, name: str, at: int) -> bool:
        """Whether the variable surely has its one value at this place."""
        if not name.isidentifier():
            return True  # an argument of a function: shell.py knows those of each call
        if name in ("HOME", "PWD") and name not in self.assigned:
            return True
        if self.all_lost or name in self.lost or name in _OF_THE_SHELL:
            return False
        return any(start <= self._reached(at, start) < end for start, end in self.counts.get(name, ()))

    def builds(self, name: str) -> bool:
        """Whether the script may put any text into the variable."""
        return name in self.built or name in self.lost

    def _reached(self, at: int, assigned: int) -> int:
        """When a place is first reached. A function that does not hold the assignment may be called earlier than it is written."""
        outer = self.function_at(at)
        called = outer >= 0 and (self.nested or outer != self.function_at(assigned))
        return self.calls if called else at

    def function_at(self, at: int) -> int:
        """Which function a place is in; -1: in none."""
        index = bisect_right(self.functions, at, key=lambda one: one[0]) - 1
        return index if index >= 0 and at < self.functions[index][1] else -1

    def close(self) -> None:
        """Order what has been collected; of very many assignments of one variable only the first ones count."""
        outer: list[tuple[int, int]] = []
        for start, end in sorted(self.functions):
            if outer and start < outer[-1][1]:
                self.nested = True
            else:
                outer.append((start, end))
        self.functions = outer
        self.counts = {name: sorted(places)[:_MOST_ASSIGNMENTS] for name, places in self.counts.items()}

    def splits(self, text: str) -> bool:
        """Whether an unquoted expansion to this text may become other words than those between its blanks."""
        if any(one in text for one in "*?["):
            return True
        return bool(self.separators) and (HOLE in self.separators or any(one in text for one in self.separators + " \t\n"))


def assignments_of(root: Node, source: bytes, written: bytes, scan: Scan, values: Variables) -> Assignments:
    """The assignments of a script. `values`: the variables that have one value; `written`: the source as it was scanned."""
    found = Assignments(source)
    coprocesses = _coprocesses(written, scan)
    names: list[tuple[Node, str]] = []
    defined, before_read = set[str](), set[int]()
    stack = [(root, len(source) + 1, _NEVER)]
    while stack:
        node, end, list_end = stack.pop()
        if node.start_byte in coprocesses and node.type not in ("program", "list"):
            end = min(end, node.end_byte)
        if node.type == "variable_assignment":
            _assigned(found, node, end, values, before_read)
        elif node.type == "command":
            name = name_of(node, source, values)
            names.append((node, name))
            if name in _READS:  # `IFS=, read a b` sets it for that command alone
                before_read |= {child.start_byte for child in node.named_children if child.type == "variable_assignment"}
        elif node.type in ("declaration_command", "unset_command"):
            _declared(found, node)
        elif node.type == "function_definition":
            found.functions.append((node.start_byte, node.end_byte))
            defined |= {raw_of(one, source) for one in node.children_by_field_name("name")}
        elif node.type in ("for_statement", "select_statement") and (variable := node.child_by_field_name("variable")) is not None:
            found.lost.add(raw_of(variable, source))
        stack += _children(node, end, list_end)
    found.close()
    _set_by_commands(found, names, values, defined)
    _set_in_text(found, written)
    return found


def name_of(node: Node, source: bytes, values: Variables) -> str:
    """The name of a command, HOLE for one that is not known."""
    name = node.child_by_field_name("name")
    return text_of(name.children[0], source, values) if name is not None and name.child_count else HOLE


def _coprocesses(source: bytes, scan: Scan) -> set[int]:
    """Where the bodies of coprocesses begin, which the grammar takes for plain groups."""
    ends = (one.end for one in scan.keywords if b"coproc" in source[one.start : one.end])
    return {end + len(source[end : end + 100]) - len(source[end : end + 100].lstrip(b" \t\n")) for end in ends}


def _children(node: Node, end: int, list_end: int) -> Iterator[tuple[Node, int, int]]:
    """Each child with the place up to which an assignment in it counts."""
    children = node.children
    own = node.end_byte if node.type in _OWN_BLOCK else _NEVER if node.type in ("ERROR", "command") else end
    operator = next((child.type for child in children if child.type in ("&&", "||")), "") if node.type == "list" else ""
    until, inside_list = max(list_end, node.end_byte), _NEVER
    for at, child in enumerate(children):
        if node.type == "if_statement" and child.type == "then":
            clauses = (one.start_byte for one in children[at:] if one.type in ("elif_clause", "else_clause"))
            own = next(clauses, node.end_byte)
        if not child.is_named:
            continue
        inside = own
        if node.type == "list":
            inside = end if at == 0 else until
            inside_list = _NEVER if at else until if operator == "&&" else child.end_byte
        elif node.type == "pipeline":
            inside = child.end_byte
        elif node.type == "redirected_statement" and child.type == "variable_assignment":
            inside = _NEVER
        if at + 1 < len(children) and children[at + 1].type == "&":
            inside = child.end_byte
        yield child, inside, inside_list


def _assigned(found: Assignments, node: Node, end: int, values: Variables, before_read: set[int]) -> None:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None:
        return
    text = raw_of(name, found.source).split("[")[0]
    found.assigned[text] = found.assigned.get(text, 0) + 1
    found.counts.setdefault(text, []).append((node.end_byte, end))
    if value is None or not PRINT_NO_CODE.match(raw_of(value, found.source)):
        found.built.add(text)
    if text == "IFS" and node.start_byte not in before_read:
        found.separators += text_of(value, found.source, values) if value is not None else ""


def _declared(found: Assignments, node: Node) -> None:
    """`local c` and `unset c` leave c without a value; `declare $x` may set anything."""
    keeps = node.type == "declaration_command" and bool(node.children) and node.children[0].type in _KEEP_VALUES
    for child in node.named_children:
        raw = raw_of(child, found.source)
        if child.type == "variable_assignment" or raw.startswith("-"):
            continue
        found.all_lost |= "$" in raw or "`" in raw
        if not keeps or child.type != "variable_name":
            found.lost |= set(re.findall(r"\w+", raw))


def _set_by_commands(found: Assignments, commands: list[tuple[Node, str]], values: Variables, defined: set[str]) -> None:
    for node, first in commands:
        parts = node.children_by_field_name("argument")
        texts = [first, *(text_of(part, found.source, values) for part in parts[:1_000])]
        while texts[0] in _PASS_ON and (rest := [at for at in range(1, len(texts)) if not texts[at].startswith("-")]):
            texts = texts[rest[0] :]
        name, *texts = texts
        if (HOLE in name or name in defined or name in RUN_TEXT) and found.function_at(node.start_byte) < 0:
            found.calls = min(found.calls, node.start_byte)
        if name in RUN_TEXT:
            found.all_lost |= name == "eval" and any(HOLE in text for text in texts)
            found.lost |= {word for text in texts for word in re.findall(r"(?<![\w$/-])(?<!\$\{)[A-Za-z_]\w*", text)}
        if name in _SET_NAMED:
            _named(found, name, texts)


def _named(found: Assignments, name: str, texts: list[str]) -> None:
    """The variables that the arguments of `read` and its like name, also glued to an option as in `printf -vc`."""
    before = ""
    for text in texts:
        valued = _VALUED.fullmatch(before) is not None
        plain = name != "printf" or before == "-v" or text.startswith("-v")
        if HOLE in text and plain and not valued and name != "let":
            found.all_lost = True
        found.lost |= set(re.findall(r"[A-Za-z_]\w*", text)) if plain else set()
        found.lost |= {text[at:] for at in range(2, min(len(text), 80))} if text.startswith("-") and len(text) < 200 else set()
        before = text


def _set_in_text(found: Assignments, written: bytes) -> None:
    """Variables that are set in text which the code runs, or in sums: named there more often than the tree has assignments."""
    text = written.decode("utf-8", "replace")
    found.lost |= {name for match in _SET_BY_USE.finditer(text) for name in match.groups() if name}
    if "IFS" in found.lost:
        found.separators += HOLE
    if _MARKS.search(written) is None:
        return
    named: dict[str, int] = {}
    for match in _SET_IN_TEXT.finditer(text):
        name = next(one for one in match.groups() if one)
        named[name] = named.get(name, 0) + 1
    found.lost |= {name for name, count in named.items() if count > found.assigned.get(name, 0)}
    if found.assigned.get("IFS", 0) < named.get("IFS", 0):
        found.separators += HOLE
