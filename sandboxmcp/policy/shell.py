"""Shell code by its syntax tree (tree-sitter-bash): the commands it runs, wherever they stand, and where their output goes.

The walk keeps its own stack: nesting in the code must not become recursion here. Where the grammar goes wrong, what is known is:
a group's end that is missing and text under ERROR are walked like all else, the words behind `> FILE` are given back to the
command, and what stands on the line of a heredoc's start is taken out of the redirection again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sandboxmcp.policy.argv import command_of, expand_command, printed_by
from sandboxmcp.policy.facts import HOLE, Command, Fact, Sink, Unknown, Word, sink_of
from sandboxmcp.policy.programs import Knowledge
from sandboxmcp.policy.shellwords import body_of, spread_braces, text_of, words_of

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_BYTES = 2 << 20
"""Code beyond this is not analysed."""
_MOST_IN_A_ROW = 1_500
"""Pipes or heredocs in one statement; the parser's memory grows with their square."""
_MOST_FUNCTION_WALKS = 200
_SETTERS = {"read", "mapfile", "readarray", "printf", "getopts"}
"""Commands that set variables which they are told by name."""
_REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_STATEMENT_ENDS = re.compile(rb"(?<![|\\])\n|;|&&")


@dataclass(frozen=True, slots=True)
class _Streams:
    """Where a statement's output goes and what it reads."""

    sinks: dict[str, Sink] = field(default_factory=dict)
    """By descriptor; what is missing is a stream."""
    stdin: Word | None = None
    piped: bool = False

    def sink(self, descriptor: str) -> Sink:
        return self.sinks.get(descriptor, "stream")

    def with_sinks(self, **sinks: Sink) -> _Streams:
        return replace(self, sinks=self.sinks | {name.lstrip("_"): sink for name, sink in sinks.items()})


def shell_facts(code: str, knowledge: Knowledge, stdout: Sink = "stream", stderr: Sink = "stream") -> tuple[Fact, ...]:
    """The facts of shell code whose output goes to `stdout` and `stderr`. What it gives up on is an Unknown."""
    source = code.replace("\0", "").encode("utf-8", "replace")
    if len(source) > MOST_BYTES:
        return (Unknown(1, f"shell code of more than {MOST_BYTES:,} bytes"),)
    if _is_monstrous(source):
        return (Unknown(1, f"shell code with more than {_MOST_IN_A_ROW:,} pipes or heredocs in one statement"),)
    streams = _Streams({"1": stdout, "2": stderr})
    return tuple(_Walk(source, knowledge).facts(streams))


def _is_monstrous(source: bytes) -> bool:
    if source.count(b"|") + source.count(b"<<") < _MOST_IN_A_ROW:
        return False
    return any(part.count(b"|") + part.count(b"<<") >= _MOST_IN_A_ROW for part in _STATEMENT_ENDS.split(source))


def _parse(source: bytes) -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(source)


class _Walk:
    """One walk over one tree, in the order of the source."""

    def __init__(self, source: bytes, knowledge: Knowledge) -> None:
        self.source = source
        self.knowledge = knowledge
        self.tree = _parse(source)
        self.variables = _constants(self.tree.root_node, source)
        self.functions: dict[str, list[Node]] = {}
        self.calls: dict[str, list[_Streams]] = {}
        self.extras: dict[int, list[Node]] = {}
        self.stack: list[tuple[Node, _Streams]] = []

    def facts(self, streams: _Streams) -> Iterator[Fact]:
        yield from self.walk(self.tree.root_node, streams)
        walks, walked = 0, set()
        for name in iter(lambda: next((name for name in self.functions if name not in walked), None), None):
            walked.add(name)
            for inside in _distinct(self.calls.get(name, [])) or [streams]:
                for body in self.functions[name]:
                    walks += 1
                    if walks > _MOST_FUNCTION_WALKS:
                        yield Unknown(body.start_point[0] + 1, "the body of one function among very many")
                        return
                    yield from self.walk(body, inside)

    def walk(self, root: Node, streams: _Streams) -> Iterator[Fact]:
        self.stack.append((root, streams))
        while self.stack:
            node, streams = self.stack.pop()
            match node.type:
                case "command":
                    yield from self.command(node, streams)
                case "redirected_statement":
                    self.redirected(node, streams)
                case "pipeline":
                    self.pipeline(node, streams)
                case "command_substitution":
                    self.push(node.children, streams.with_sinks(_1="stream"))
                case "process_substitution":
                    reads = node.children[0].type == "<("
                    inside = streams.with_sinks(_1="stream") if reads else replace(streams, stdin=None, piped=True)
                    self.push(node.children, inside)
                case "function_definition":
                    self.define(node)
                case _:
                    self.push(node.children, streams)

    def push(self, nodes: list[Node], streams: _Streams) -> None:
        self.stack.extend((node, streams) for node in reversed(nodes) if node.child_count or node.is_named)

    def define(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions.setdefault(text_of(name, self.source, {}), []).append(body)

    def command(self, node: Node, streams: _Streams) -> Iterator[Fact]:
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        streams = self.through(redirects, streams)
        self.push(node.children, streams)
        found = self.simple(node, redirects, streams)
        if isinstance(found, Unknown):
            yield found
        elif found is not None:
            if found.name in self.functions or not self.knowledge.program(found.name):
                self.calls.setdefault(found.name, []).append(streams)
            yield from expand_command(found, self.knowledge)

    def simple(self, node: Node, redirects: list[Node], streams: _Streams) -> Command | Unknown | None:
        """The command that a `command` node is, with the words that the grammar gave to a redirection."""
        name = node.child_by_field_name("name")
        parts = [*([name] if name is not None else []), *node.children_by_field_name("argument")]
        parts += _swallowed(redirects) + self.extras.get(node.id, [])
        inner = [part.children[0] if part.type == "command_name" and part.child_count else part for part in parts]
        words = words_of(inner, self.source, self.variables)
        if words and self.source[node.start_byte - 1 : node.start_byte] == b"{":
            words[:1] = [Word(text, words[0].line) for text in spread_braces("{" + words[0].text)]
        elif words and _is_glob(inner[0], self.source):
            words[0] = Word(HOLE, words[0].line)
        start = Command(node.start_point[0] + 1, "", (), streams.sink("1"), streams.sink("2"), streams.stdin, streams.piped)
        return command_of(words, start)

    def redirected(self, node: Node, streams: _Streams) -> None:
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        heredocs = [child for child in redirects if child.type == "heredoc_redirect"]
        tails = [child for heredoc in heredocs for child in heredoc.children if _is_tail(child)]
        body = node.child_by_field_name("body")
        outside = streams
        if any(tail.type == "pipeline" for tail in tails):
            streams = streams.with_sinks(_1="stream")
        streams = self.through([*redirects, *(c for h in heredocs for c in h.children if c.type in _REDIRECTS)], streams)
        if body is not None and _raw(body, self.source).strip() == "exec":
            outside.sinks.update(streams.sinks)
        after = replace(outside, stdin=self.printed(body, streams), piped=True)
        for tail in reversed(tails):
            self.push(tail.children if tail.type == "pipeline" else [tail], after if tail.type == "pipeline" else outside)
        for redirect in reversed(redirects):
            self.push([child for child in redirect.children if not _is_tail(child)], outside)
        if body is not None:
            self.extras[body.id] = _swallowed(redirects)
            self.stack.append((body, streams))

    def pipeline(self, node: Node, streams: _Streams) -> None:
        stages = [child for child in node.children if child.is_named]
        bars = [child.type for child in node.children if not child.is_named]
        for at in range(len(stages) - 1, -1, -1):
            inside = streams if at == len(stages) - 1 else streams.with_sinks(_1="stream")
            if at < len(stages) - 1 and at < len(bars) and bars[at] == "|&":
                inside = inside.with_sinks(_2="stream")
            if at:
                inside = replace(inside, stdin=self.printed(stages[at - 1], _Streams()), piped=True)
            self.stack.append((stages[at], replace(inside, sinks=dict(inside.sinks))))

    def printed(self, node: Node | None, streams: _Streams) -> Word | None:
        """What a stage writes into its pipe, where that is spelled out."""
        while node is not None and node.type == "pipeline" and node.named_child_count:
            node = node.named_children[-1]
        if node is None:
            return None
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        if node.type == "redirected_statement":
            streams, node = self.through(redirects, streams), node.child_by_field_name("body")
            if node is None:
                return None
            redirects = [child for child in node.children if child.type in _REDIRECTS]
        if node.type != "command":
            return None
        found = self.simple(node, redirects, self.through(redirects, streams))
        return printed_by(found, self.knowledge) if isinstance(found, Command) else None

    def through(self, redirects: list[Node], streams: _Streams) -> _Streams:
        """The streams after redirections, in order: `2>&1 >f` is not `>f 2>&1`."""
        sinks, stdin, piped = dict(streams.sinks), streams.stdin, streams.piped
        for redirect in redirects:
            if redirect.type == "file_redirect":
                reads = self.redirect_file(redirect, sinks)
                stdin, piped = (None, False) if reads else (stdin, piped)
            else:
                stdin, piped = self.literal_input(redirect) or stdin, False
        return replace(streams, sinks=sinks, stdin=stdin, piped=piped) if redirects else streams

    def redirect_file(self, redirect: Node, sinks: dict[str, Sink]) -> bool:
        """Applies one redirection; True when it replaces standard input."""
        descriptor, operator, target = "", "", ""
        for child in redirect.children:
            if child.type == "file_descriptor":
                descriptor = _raw(child, self.source)
            elif not child.is_named and not operator:
                operator = child.type
            elif child.is_named and not target:
                target = text_of(child, self.source, self.variables)
        if operator.startswith("<"):
            return descriptor in {"", "0"}
        if operator in {">&", ">&-"} and target.rstrip("-").isdigit():
            sinks[descriptor or "1"] = sinks.get(target.rstrip("-"), "stream")
            return False
        both = operator.startswith("&>") or (operator == ">&" and not descriptor and not target.startswith("-"))
        for name in ("1", "2") if both else (descriptor or "1",):
            sinks[name] = self.duplicate(target, sinks)
        return False

    def duplicate(self, target: str, sinks: dict[str, Sink]) -> Sink:
        match = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d)", target)
        return sinks.get(match[1], "stream") if match else sink_of(target)

    def literal_input(self, redirect: Node) -> Word | None:
        if redirect.type == "herestring_redirect":
            value = redirect.named_children[-1] if redirect.named_child_count else None
            return None if value is None else Word(text_of(value, self.source, self.variables), value.start_point[0] + 1)
        start = next((child for child in redirect.children if child.type == "heredoc_start"), None)
        body = next((child for child in redirect.children if child.type == "heredoc_body"), None)
        if start is None or body is None:
            return None
        quoted = any(mark in _raw(start, self.source) for mark in "'\"\\")
        return Word(body_of(body, self.source, self.variables, quoted=quoted), start.start_point[0] + 2)


def _raw(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _swallowed(redirects: list[Node]) -> list[Node]:
    """The words behind `> FILE`, which the grammar gives to the redirection."""
    return [extra for redirect in redirects for extra in redirect.children_by_field_name("destination")[1:]]


def _is_tail(node: Node) -> bool:
    """What stands behind `<<EOF` on its line but is no part of the redirection."""
    return node.is_named and node.type not in {*_REDIRECTS, "heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"}


def _is_glob(node: Node, source: bytes) -> bool:
    return node.type in {"word", "concatenation", "extglob_pattern"} and bool(
        re.search(r"(?<!\\)[*?]|(?<!\\)\[.+\]", _raw(node, source))
    )


def _distinct(calls: list[_Streams]) -> list[_Streams]:
    seen: dict[tuple[Sink, Sink], _Streams] = {}
    for streams in calls:
        seen.setdefault((streams.sink("1"), streams.sink("2")), streams)
    return list(seen.values())


def _constants(root: Node, source: bytes) -> dict[str, str]:
    """Variables that the code sets once, to a text that it spells out. Loop variables and what `read` sets are not among them."""
    values: dict[str, set[str]] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "variable_assignment":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            if name is not None:
                plain = value is not None and node.children[1].type == "=" and name.type == "variable_name"
                text = text_of(value, source, {}) if plain and value is not None else HOLE
                values.setdefault(_raw(name, source).split("[")[0], set()).add(text)
        elif node.type == "for_statement":
            variable = node.child_by_field_name("variable")
            if variable is not None:
                values.setdefault(_raw(variable, source), set()).add(HOLE)
        elif node.type == "command" and (name := node.child_by_field_name("name")) is not None:
            for argument in node.children_by_field_name("argument") if _raw(name, source) in _SETTERS else ():
                values.setdefault(_raw(argument, source), set()).add(HOLE)
        stack.extend(node.named_children)
    return {name: texts.copy().pop() for name, texts in values.items() if len(texts) == 1 and HOLE not in next(iter(texts))}
