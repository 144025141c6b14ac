"""Shell code by its syntax tree (tree-sitter-bash): the commands it runs, wherever they stand, and where their output goes.

The walk keeps its own stack: nesting in the code must not become recursion here. Where the grammar goes wrong the walk goes on:
what stands under ERROR is walked like all else. Then every command that the scan of the code found (shell_scan.py) and the tree
does not hold whole is parsed again, first with its pipeline, then alone. What is still not understood is reported as unknown.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sandboxmcp.policy.analysis.shell_scan import Span, pieces_of
from sandboxmcp.policy.analysis.shell_streams import (
    Streams,
    loosely_redirected,
    redirect_touches,
    redirected,
    redirects_of,
    swallowed_words,
)
from sandboxmcp.policy.analysis.shell_tree import Parsed, constants_of, is_seen, missed_commands, parse
from sandboxmcp.policy.analysis.shell_variables import PRINT_NO_CODE, RUN_TEXT, Assignments, assignments_of
from sandboxmcp.policy.analysis.shell_words import (
    Certainty,
    Variables,
    expansions_in,
    has_braces,
    loose_word,
    plain_name,
    raw_of,
    spread_braces,
    spread_raw,
    text_of,
    with_arguments,
    words_of,
)
from sandboxmcp.policy.facts import HOLE, Capability, Command, Embedded, Fact, Sink, Touch, Unknown, Word, Written, filled, joined
from sandboxmcp.policy.programs.argv import SCRIPT_FILE, aliases_of, command_of, expand_command, printed_by, sourced
from sandboxmcp.policy.programs.knowledge import Knowledge

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_FUNCTION_WALKS = 200
_MOST_HERESTRING = 2_000
_MOST_ALIASES = 50
"""That text which runs in the same shell is told of."""
_MAYBE = frozenset({"list", "if_statement", "elif_clause", "else_clause", "while_statement", "for_statement", "case_item"})
"""An `exec >FILE` in one of these may not happen, so it counts only inside."""
_MOVES = frozenset({"cd", "pushd"})
_BACKTICKS = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)
_SHIFTS = re.compile(r"\bshift\b|\bset\s+--|\bgetopts\b")
"""After one of these a function's arguments are no longer those of its call."""
_USES_ARGUMENTS = re.compile(r"\$\{?[@*1-9]")
_MOST_CALLS = 20
"""Of one function with arguments of their own; with more its body is looked at once for all."""
_Call = tuple[Sink, Sink, tuple[str, ...] | None]
"""How a function is called: where its output goes, and its arguments, None for any."""
_NOWHERE = "sandboxmcp-no-line-is-this"
_EXPANDED = frozenset({"PS0", "PS1", "PS2", "PS3", "PS4", "ENV", "BASH_ENV"})
"""Variables whose text bash expands before it uses it."""
_EXPANDED_TWICE = re.compile(rb"@P\}|\b(?:PS[0-4]|ENV|BASH_ENV)=")
"""Where the grammar has lost its way, no assignment is looked at: the text that is expanded may be any."""
_SUBSCRIPT = re.compile(r"\w\[[^\]]*(?:\$\(|`)")
_KEPT_SUBSCRIPT = re.compile(r"=\$?'([^'\n]{0,500}\w\[[^'\]\n]{0,200}(?:\$\(|`)[^'\n]{0,2000})'")
_QUOTED_SUBSCRIPT = re.compile(r"'[^'\[]*\w\[[^'$]*\$\(([^']*)\)[^']*'")
_QUOTED_CODE = re.compile(r"'[^']*(?:\$\(([^']*)\)|`([^'`]*)`)[^']*'")
_SUBSTITUTION = re.compile(r"\$\(|`")
_EXEC = re.compile(r"\s*(?:(?:builtin|command)\s+)*exec(?:\s+\d+)?\s*")
_GLOB = re.compile(r"(?<!\\)[*?]|(?<!\\)\[.+\]")


def shell_facts(
    code: str, knowledge: Knowledge, streams: Streams | None = None, arguments: tuple[str, ...] | None = None
) -> tuple[Fact, ...]:
    """The facts of shell code with these streams. What it gives up on is an Unknown.

    `arguments`: `$1` and so on, where they are known.
    """
    source = code.replace("\0", "").encode("utf-8", "replace")
    parsed = parse(source)
    if isinstance(parsed, str):
        return (Unknown(1, parsed),)
    walk = _Walk(parsed, knowledge)
    if arguments is not None and not _SHIFTS.search(code):
        walk.variables = with_arguments(walk.variables, arguments)
    return tuple(walk.facts(streams or Streams()))


class _Walk:
    """One walk over one tree, in the order of the source; the bodies of functions after it."""

    def __init__(self, parsed: Parsed, knowledge: Knowledge) -> None:
        self.parsed, self.knowledge = parsed, knowledge
        self.source = parsed.codes[0]
        """The code that the nodes are of: that of a heredoc's text has its own."""
        self.names = {span.name for span in parsed.scan.commands} if parsed.root.has_error else None
        """Where commands may begin, if the grammar has lost its way: what else it takes for one is none."""
        self.constants: Variables = constants_of(parsed.root, self.source)
        self.variables: Variables = self.constants
        self.functions: dict[str, list[tuple[Node, bytes]]] = {}
        self.defined: list[str] = []
        """Names of functions, in order."""
        self.calls: dict[str, dict[_Call, Streams]] = {}
        """How each name is called, with the streams: what a function writes goes where its call says."""
        self.aliases: dict[str, str] = {}
        self.swallowed: dict[int, list[Node]] = {}
        """Words of a command, by its node, that stand in the redirections around it."""
        self.trailing: dict[int, Node] = {}
        """Statements whose redirections belong to a command, by that command's node."""
        self.stack: list[tuple[Node, Streams]] = []

    @cached_property
    def assignments(self) -> Assignments:
        """Only made for code that uses a variable which it sets."""
        return assignments_of(self.parsed.root, self.parsed.codes[0], self.parsed.source, self.parsed.scan, self.constants)

    def facts(self, streams: Streams) -> Iterator[Fact]:
        yield from self.walk(self.parsed.root, streams)
        yield from self.rest(streams)
        yield from self.kept_for_sums()
        constants, walked = self.variables, set[tuple[str, int, _Call | None]]()
        while waiting := [one for one in self.bodies(streams) if one[:3] not in walked]:  # bodies call and define more functions
            for name, at, call, inside in waiting:
                walked.add((name, at, call))
                body, self.source = self.functions[name][at]
                if len(walked) > _MOST_FUNCTION_WALKS:
                    yield Unknown(body.start_point[0] + 1, "the bodies of very many functions")
                    return
                arguments = call[2] if call is not None else None
                self.variables = constants if arguments is None else with_arguments(constants, arguments)
                yield from self.walk(body, inside)

    def kept_for_sums(self) -> Iterator[Fact]:
        """Substitutions in text that a variable keeps and a sum would run, where the tree need not have the assignment."""
        if not self.parsed.root.has_error:
            return
        for found in _KEPT_SUBSCRIPT.finditer(self.parsed.source.decode("utf-8", "replace")):
            line = self.parsed.source.count(b"\n", 0, found.start()) + 1
            yield Embedded(line, "shell", f": <<{_NOWHERE}\n{filled(found[1], 'shell')}\n{_NOWHERE}\n")

    def bodies(self, streams: Streams) -> Iterator[tuple[str, int, _Call | None, Streams]]:
        """Every body of a function, by name and place, with every call of it that makes a difference, and that call's streams."""
        for name in sorted(self.defined, key=lambda name: name not in self.calls):  # those that nothing calls by name come last
            calls = self.calls.get(name, {})
            for at, (body, source) in enumerate(self.functions[name]):
                text = raw_of(body, source)
                if not _USES_ARGUMENTS.search(text) or _SHIFTS.search(text) or len(calls) > _MOST_CALLS:
                    yield from {
                        (name, at, (*call[:2], None)): (name, at, (*call[:2], None), calls[call]) for call in calls
                    }.values()
                else:
                    yield from ((name, at, call, calls[call]) for call in calls)
                if not calls:
                    yield name, at, None, streams

    def walk(self, root: Node, streams: Streams) -> Iterator[Fact]:
        self.stack.append((root, streams))
        while self.stack:
            node, streams = self.stack.pop()
            if (statement := self.trailing.get(node.id)) is not None:
                streams = self.redirects(streams, statement)
            match node.type:
                case "command":
                    yield from self.command(node, streams)
                case "redirected_statement":
                    self.redirected(node, streams)
                case "file_redirect":
                    yield from redirect_touches([node], streams, self.source, self.variables, self.text_at)
                    self.push(node.children, streams)
                case "pipeline":
                    self.pipeline(node, streams)
                case "command_substitution":
                    self.substitution(node, streams.into_pipe("1"))
                case "process_substitution":
                    self.push(node.children, streams.into_pipe("1") if node.children[0].type == "<(" else streams.reading(None))
                case "subshell":
                    self.push(node.children, streams.into_pipe())
                case kind if kind in _MAYBE:
                    self.push(node.children, streams.maybe())
                case "variable_assignment":
                    yield from self.assigned(node, streams)
                case "function_definition":
                    yield from self.define(node)
                case "word" | "regex" | "extglob_pattern":
                    yield from self.backticks(node, streams)
                case "declaration_command" | "unset_command" | "test_command" | "arithmetic_expansion":
                    yield from self.subscripts(node)
                    self.push(node.children, streams)
                case "raw_string" | "comment":
                    pass
                case _:
                    self.push(node.children, streams)

    def push(self, nodes: Sequence[Node], streams: Streams) -> None:
        self.stack.extend((node, streams) for node in reversed(nodes) if node.is_named)

    def define(self, node: Node) -> Iterator[Fact]:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            text = text_of(name, self.source, {})
            if text not in self.functions:
                self.defined.append(text)
            self.functions.setdefault(text, []).append((body, self.source))
            if re.search(rf"(?<!\S){re.escape(text)}\s*\|\s*{re.escape(text)}\s*&", raw_of(body, self.source)):
                yield Capability(node.start_point[0] + 1, "fork-bomb")

    def assigned(self, node: Node, streams: Streams) -> Iterator[Fact]:
        """A variable that some program takes its own commands from, `PROMPT_COMMAND` for example."""
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        language = self.knowledge.variables.get(raw_of(name, self.source)) if name is not None else None
        if name is not None and raw_of(name, self.source) == "PATH":
            yield Capability(node.start_point[0] + 1, "search-path")
        if language is not None and value is not None:
            text = text_of(value, self.source, self.variables)
            if language == SCRIPT_FILE:
                script = sourced(Word(text, node.start_point[0] + 1), self.substituted([value]))
                yield from expand_command(replace(script, cwd=streams.place[0]), self.knowledge)
            elif text.strip(HOLE) and language == "file":
                yield Command(node.start_point[0] + 1, ".", args=(Word(text, node.start_point[0] + 1),), cwd=streams.place[0])
            elif text.strip(HOLE):
                yield Embedded(node.start_point[0] + 1, language, filled(text, language), streams.sink("1"), streams.sink("2"))
        elif name is not None and value is not None and value.type in ("raw_string", "ansi_c_string", "concatenation", "string"):
            yield from self.expanded_later(raw_of(name, self.source), value)
        if name is not None and name.type == "subscript":
            yield from self.subscripted(raw_of(name, self.source), value, node)
        self.push(node.children, streams)

    def subscripted(self, name: str, value: Node | None, node: Node) -> Iterator[Fact]:
        """`a['$(b)']=1` runs b; `BASH_CMDS[a]=b` and `BASH_ALIASES[a]=b` give b the name a."""
        for found in _QUOTED_CODE.finditer(name):
            yield Embedded(node.start_point[0] + 1, "shell", found[1] or found[2])
        array, _, key = name.partition("[")
        if array in ("BASH_CMDS", "BASH_ALIASES") and value is not None:
            self.aliases[loose_word(key.removesuffix("]"), self.variables)] = text_of(value, self.source, self.variables)

    def redirects(self, streams: Streams, node: Node) -> Streams:
        return redirected(streams, redirects_of(node), self.source, self.variables, self.text_at)

    def expanded_later(self, name: str, value: Node) -> Iterator[Fact]:
        """Substitutions in a variable's text, where bash expands that text once more: prompts, `${x@P}`, subscripts in sums."""
        text = text_of(value, self.source, self.variables)
        if ("$(" in text or "`" in text) and (name in _EXPANDED or b"@P}" in self.source or _SUBSCRIPT.search(text) is not None):
            yield Embedded(value.start_point[0] + 1, "shell", f": <<{_NOWHERE}\n{filled(text, 'shell')}\n{_NOWHERE}\n")

    def subscripts(self, node: Node) -> Iterator[Fact]:
        """Substitutions in quoted subscripts, which `test -v`, `declare`, `unset` and sums evaluate once more."""
        for found in _QUOTED_SUBSCRIPT.finditer(raw_of(node, self.source)):
            yield Embedded(node.start_point[0] + 1, "shell", found[1])

    def command(self, node: Node, streams: Streams) -> Iterator[Fact]:
        streams = self.redirects(streams, node)
        self.push(node.children, streams)
        name = node.child_by_field_name("name")
        if self.names is None or (name is not None and name.start_byte in self.names):
            yield from self.started(self.simple(node, streams), streams)

    def started(self, found: Command | Unknown | None, streams: Streams) -> Iterator[Fact]:
        if isinstance(found, Command) and found.name in self.aliases:
            line, names = self.without_alias(found)
            code = self.with_aliases(filled(line, "shell"), names)
            yield Embedded(found.line, "shell", code, found.stdout, found.stderr)
        if isinstance(found, Command):  # bash's scripts expand no aliases, so the command runs under its own name too
            texts = tuple(word.text for word in found.args)
            for arguments in (texts,) if all(word.known and word.sure for word in found.args) else (texts, None):
                self.calls.setdefault(found.name, {}).setdefault((found.stdout, found.stderr, arguments), streams)
            yield from self.written(found, streams)
            yield from self.expanded(found, streams)
        elif found is not None:
            yield found

    def expanded(self, command: Command, streams: Streams) -> Iterator[Fact]:
        """The facts of a command. Text that it runs in the same shell knows that shell's aliases.

        `time`, `command` and `builtin` run `alias`, `hash` and `cd` in the same shell too.
        """
        name = ""
        for fact in expand_command(command, self.knowledge):
            if isinstance(fact, Command):
                name = fact.name
                yield from self.newly_aliased(fact)
                if name in _MOVES and (target := next((w.text for w in fact.args if not w.text.startswith("-")), "~")):
                    streams.place[0] = posixpath.join(streams.place[0], target) if HOLE not in target else HOLE
            if isinstance(fact, Embedded) and fact.language == "shell" and name in RUN_TEXT:
                yield replace(fact, code=self.with_aliases(fact.code, frozenset()))
            else:
                yield fact
        if len(self.aliases) > _MOST_ALIASES:
            yield Unknown(command.line, f"what more than {_MOST_ALIASES} aliases make of the code")

    def newly_aliased(self, command: Command) -> Iterator[Fact]:
        """The aliases of a command are known from here on. Commands that had such a name may stand behind it in the code: what is
        missing in the tree is looked at last.
        """
        for name, line in aliases_of(command).items():
            self.aliases[name] = line
            for stdout, stderr, arguments in self.calls.get(name, ()):
                code = " ".join((line, *(arguments if arguments is not None else (HOLE,))))
                yield Embedded(command.line, "shell", filled(code, "shell"), stdout, stderr)

    def without_alias(self, found: Command) -> tuple[str, frozenset[str]]:
        """The line that bash makes of a command whose name is an alias, and the aliases that it has put in."""
        line, used, args = self.aliases[found.name], {found.name}, list(found.args)
        while line[-1:].isspace() and args and args[0].text in self.aliases:  # then the next word may be an alias too
            name = args.pop(0).text
            line += self.aliases[name]
            used.add(name)
        return joined([Word(line, 0), *args]), frozenset(used)

    def with_aliases(self, code: str, used: frozenset[str]) -> str:
        """The code behind definitions of the aliases that it may use, on its first line; not those that have led to it."""
        if len(self.aliases) > _MOST_ALIASES:
            return code
        named = [name for name in self.aliases if name not in used and name in code]
        definitions = "".join(f"alias {shlex.quote(name)}={shlex.quote(filled(self.aliases[name], 'shell'))}; " for name in named)
        return definitions + code

    def written(self, found: Command, streams: Streams) -> Iterator[Fact]:
        """The files that the command's output goes into, for what runs them later."""
        paths = [streams.into] if streams.into else []
        paths += [word.text for word in found.args if not word.text.startswith("-")] if found.name == "tee" else []
        if paths:
            text = printed_by(found, self.knowledge)
            written = text.text if text is not None else None
            yield from (Written(found.line, streams.placed(path), written) for path in paths)

    def simple(self, node: Node, streams: Streams) -> Command | Unknown | None:
        """The command that a `command` node is."""
        name = node.child_by_field_name("name")
        parts = [name.children[0]] if name is not None and name.child_count else []
        parts += node.children_by_field_name("argument")
        parts += swallowed_words(redirects_of(node)) + self.swallowed.get(node.id, [])
        return self.run(parts, streams)

    def run(self, parts: Sequence[Node], streams: Streams) -> Command | Unknown | None:
        """The command that words are."""
        parts = [part for part in parts if not self.is_descriptor(part)]
        words = words_of(parts, self.source, self.variables, self.certainty_of)
        if not words:
            return None
        start = parts[0].start_byte
        if self.source[start - 1 : start] == b"{":  # the grammar reads `{curl,-s,URL}` as the start of a group
            words[:1] = [Word(text, words[0].line) for text in spread_braces("{" + words[0].text)]
        elif parts[0].type in {"word", "concatenation", "extglob_pattern"} and _GLOB.search(raw_of(parts[0], self.source)):
            words[0] = Word(HOLE, words[0].line)
        outer = Command(
            words[0].line,
            "",
            (),
            streams.sink("1"),
            streams.sink("2"),
            streams.input(),
            streams.piped,
            self.substituted(parts),
            streams.place[0],
        )
        return command_of(words, outer)

    def is_descriptor(self, node: Node) -> bool:
        """Whether this is the `0` of `0< file`, which the grammar takes for a word."""
        raw = self.source[node.start_byte : node.end_byte]
        return raw.isdigit() and self.source[node.end_byte : node.end_byte + 1] in (b"<", b">")

    def substituted(self, parts: Sequence[Node]) -> Word | None:
        """What the one `<( )` among words prints, where that is spelled out."""
        found = [part for part in parts if part.type == "process_substitution" and part.children[0].type == "<("]
        return self.printed(found[0].named_children[-1], Streams()) if len(found) == 1 else None

    def text_at(self, operator: int, target: str, variables: Variables) -> Word | None:
        """The text of a heredoc or herestring, and whether the variables in it surely have the values that are taken for theirs."""
        text = self.parsed.text_at(operator, target, variables)
        if text is None:
            return None
        source, heredoc = self.parsed.source, self.parsed.heredocs.get(operator)
        start = heredoc.body if heredoc is not None else operator
        end = heredoc.text_end if heredoc is not None else operator + _MOST_HERESTRING
        raw = source[start:end].split(b"\n" if heredoc is None else b"\0")[0] if heredoc is None or not heredoc.quoted else b""
        short = heredoc is not None or len(target) < _MOST_HERESTRING // 2
        certainty = self.certainty_in(raw.decode("utf-8", "replace"), operator)
        return replace(text, sure=short and certainty != "unsure", built=certainty == "built")

    def certainty_in(self, raw: str, at: int) -> Certainty:
        """The same as `certainty_of`, for code of which there is no tree."""
        names = set(re.findall(r"\$\{?(\w+)", raw))
        if not all(self.assignments.sure(name, at) for name in names if name in self.variables):
            return "unsure"
        return "built" if any(self.assignments.builds(name) for name in names if name not in self.variables) else "sure"

    def certainty_of(self, node: Node) -> Certainty:
        """Whether the variables in a word surely have the values that are taken for theirs, and become words at their blanks."""
        raw = raw_of(node, self.source)
        if "$" not in raw and "`" not in raw:
            return "sure"
        runs = _SUBSTITUTION.search(raw) is not None and not PRINT_NO_CODE.match(raw)
        found: Certainty = "built" if runs and HOLE in text_of(node, self.source, self.variables) else "sure"
        for expansion, quoted in expansions_in(node):
            name = plain_name(raw_of(expansion, self.source))
            if (text := self.variables.get(name)) is None:  # it has a HOLE in its text
                names = re.findall(r"[A-Za-z_]\w*", raw_of(expansion, self.source))
                found = "built" if any(map(self.assignments.builds, names)) else found
                continue
            blanks = expansion.id != node.id and any(one in text for one in " \t\n")
            if not self.assignments.sure(name, expansion.start_byte) or (not quoted and (blanks or self.assignments.splits(text))):
                return "unsure"
        return found

    def redirected(self, node: Node, streams: Streams) -> None:
        """A statement with redirections. The grammar gives those of the last command of a list or pipeline to all of it."""
        redirects, body = redirects_of(node), node.child_by_field_name("body")
        self.push([child for child in node.children if child != body], streams)
        if body is None:
            return
        if _EXEC.fullmatch(raw_of(body, self.source)):
            after = self.redirects(streams, node)
            streams.sinks.update(after.sinks)
            if after.stdin is not streams.stdin or after.piped != streams.piped:
                streams.inherited[0] = after.stdin or Word(HOLE, node.start_point[0] + 1)
        self.stack.append((body, streams))
        while body.type in ("list", "pipeline") and body.named_child_count:
            body = body.named_children[-1]
        self.trailing[body.id] = node
        self.swallowed[body.id] = swallowed_words(redirects)

    def pipeline(self, node: Node, streams: Streams) -> None:
        stages = [child for child in node.children if child.is_named]
        bars = [child.type for child in node.children if not child.is_named]
        texts: list[Word | None] = []
        for stage in stages[:-1]:
            texts.append(self.printed(stage, Streams().reading(texts[-1]) if texts else Streams()))
        for at in range(len(stages) - 1, -1, -1):
            bar = bars[at] if at < len(bars) and at < len(stages) - 1 else ""
            inside = streams.into_pipe(*(("1", "2") if bar == "|&" else ("1",) if bar else ()))
            self.stack.append((stages[at], inside.reading(texts[at - 1]) if at else inside))

    def printed(self, node: Node | None, streams: Streams) -> Word | None:
        """What a stage writes into its pipe, where that is spelled out."""
        while node is not None and node.type in {"pipeline", "redirected_statement"}:
            if node.type == "pipeline":
                node = node.named_children[-1] if node.named_child_count else None
            else:
                streams = self.redirects(streams, node)
                node = node.child_by_field_name("body")
        if node is None or node.type != "command":
            return None
        found = self.simple(node, self.redirects(streams, node))
        return printed_by(found, self.knowledge) if isinstance(found, Command) else None

    def substitution(self, node: Node, streams: Streams) -> None:
        """`$(…)`, or backticks; those in which a backslash takes one layer of quoting away are code of their own (`rest`)."""
        if node.start_byte not in self.parsed.escaped:
            self.push(node.children, streams)

    def rest(self, streams: Streams) -> Iterator[Fact]:
        """What runs and the tree does not hold: substitutions in heredocs, backticks with backslashes, and what it has lost."""
        scan, seen = self.parsed.scan, dict(self.parsed.commands_in(self.parsed.root))
        for region in scan.regions:
            yield from self.piece(region.start, region.end, region.depth, streams.into_pipe("1"), seen)
        for ticks in scan.backticks:
            yield Embedded(self.parsed.line(ticks.at), "shell", ticks.text.decode("utf-8", "replace"))
        for span in missed_commands(self.parsed, seen):
            for start in (span.pipeline, span.start, span.name):
                if not is_seen(self.parsed, span, seen):
                    yield from self.piece(start, span.end, span.depth, streams, seen)
            if not is_seen(self.parsed, span, seen):
                yield from self.loose(span, streams)
        for span in scan.commands:
            if self.is_spread(span):
                yield from self.loose(span, streams)
        yield from (Unknown(self.parsed.line(at), what) for at, what in scan.unclear)
        if self.names is not None and (twice := _EXPANDED_TWICE.search(self.parsed.source)) is not None:
            yield Unknown(self.parsed.line(twice.start()), "text that bash expands once more")
        for heredoc in scan.heredocs:
            if heredoc.doubtful or heredoc.joins(self.parsed.source):
                text = self.parsed.source[heredoc.body : heredoc.text_end].decode("utf-8", "replace")
                joined_lines = re.sub(r"(\\\\)|\\\n", r"\1", text)
                code = text if heredoc.doubtful else f": <<{_NOWHERE}\n{joined_lines}\n{_NOWHERE}\n"
                yield Embedded(self.parsed.line(heredoc.body) - (not heredoc.doubtful), "shell", code)

    def is_spread(self, span: Span) -> bool:
        """Whether braces make several words of the command's name: `{r,}m` starts `rm m`, which the tree does not say."""
        code = self.parsed.codes[span.depth] if span.depth < len(self.parsed.codes) else self.parsed.source
        if b"{" not in code[span.name : span.end]:
            return False
        words = pieces_of(code, span.name, span.end)
        return bool(words) and has_braces(code[words[0].start : words[0].end].decode("utf-8", "replace"))

    def loose(self, span: Span, streams: Streams) -> Iterator[Fact]:
        """A command that the grammar does not understand even alone, by the words that the scan finds."""
        line, words = self.parsed.line(span.name), list[Word]()
        streams = replace(streams, sinks=dict(streams.sinks))
        for piece in pieces_of(self.parsed.codes[span.depth], span.name, span.end):
            raw = self.parsed.codes[span.depth][piece.start : piece.end].decode("utf-8", "replace")
            text = loose_word(raw, self.variables)
            if not piece.operator:
                spread = spread_raw(raw) if has_braces(raw) else [raw]
                certainty = self.certainty_in(raw, span.name)
                sure, built = certainty != "unsure", certainty == "built"
                words += [Word(one if one == HOLE else loose_word(one, self.variables), line, sure, built) for one in spread]
            elif (heredoc := self.text_at(piece.operator_at, text, self.variables)) is not None:
                streams = streams.reading(heredoc)
            else:
                streams = loosely_redirected(streams, piece.operator.decode(), text)
                if piece.operator != b"<" and not (piece.operator.endswith(b"&") and text.isdigit()):
                    yield Written(line, streams.placed(text), None)
                if text.strip(HOLE) and not piece.operator.endswith(b"&"):
                    yield Touch(line, text, "read" if piece.operator == b"<" else "write", streams.place[0])
        outer = Command(line, "", (), streams.sink("1"), streams.sink("2"), streams.input(), streams.piped)
        yield from self.started(command_of(words, outer) if words else None, streams)

    def piece(self, start: int, end: int, depth: int, streams: Streams, seen: dict[int, int]) -> Iterator[Fact]:
        """The facts of a part of the code, parsed alone."""
        root = self.parsed.piece(start, end, depth)
        if root is None:
            yield Unknown(self.parsed.line(start), "shell code that takes too long to parse")
            return
        found = dict(self.parsed.commands_in(root))
        if found and all(seen.get(at, 0) == stop for at, stop in found.items()):
            return
        seen |= found
        self.source, outer = self.parsed.codes[depth], self.variables
        # A heredoc's text is not in the tree of the whole: what is assigned in it is known here only.
        values = {**outer, **constants_of(root, self.source)}
        self.variables = {name: text for name, text in values.items() if outer.get(name, text) == text}
        yield from self.walk(root, replace(streams, sinks=dict(streams.sinks)))
        self.source, self.variables = self.parsed.codes[0], outer

    def backticks(self, node: Node, streams: Streams) -> Iterator[Fact]:
        """Substitutions that the grammar leaves inside a word or a heredoc."""
        raw = raw_of(node, self.source)
        if "`" in raw:
            yield from (self.embedded(node, match[1], streams.into_pipe("1")) for match in _BACKTICKS.finditer(raw))

    def embedded(self, node: Node, code: str, streams: Streams) -> Embedded:
        return Embedded(node.start_point[0] + 1, "shell", code, streams.sink("1"), streams.sink("2"))
