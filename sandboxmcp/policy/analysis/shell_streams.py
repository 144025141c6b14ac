"""Where a shell statement's output goes and what it reads, after its redirections."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sandboxmcp.policy.analysis.shell_words import Variables, raw_of, text_of
from sandboxmcp.policy.facts import HOLE, Sink, Touch, Word, Written, sink_of

if TYPE_CHECKING:
    from tree_sitter import Node

REDIRECTS = frozenset({"file_redirect", "herestring_redirect"})
Texts = Callable[[int, str, Variables], Word | None]
"""The text of the heredoc, or of the herestring with the target given, whose operator stands at a place."""
_OTHER_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d)")


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of one statement."""

    sinks: dict[str, Sink] = field(default_factory=dict)
    """By descriptor; what is missing is a stream. The statements of a scope share it, since `exec >FILE` changes it for all."""
    stdin: Word | None = None
    """The text on standard input, where the code spells it out."""
    piped: bool = False
    """Standard input is a pipe."""
    into: str = ""
    """The file that standard output goes into."""
    place: list[str] = field(default_factory=lambda: [""])
    """The working folder, one entry, shared like `sinks`: `cd` changes it for all that follow."""
    inherited: list[Word | None] = field(default_factory=lambda: [None])
    """What an `exec` has put on standard input for all that follow, one entry, shared likewise."""

    def input(self) -> Word | None:
        """The text on standard input, of the statement's own or of the shell's."""
        return self.stdin if self.stdin is not None or self.piped else self.inherited[0]

    def placed(self, path: str) -> str:
        """The path of a file from the folder that the code starts in; one that begins with a HOLE may be a whole path."""
        return path if path.startswith(HOLE) else posixpath.join(self.place[0], path)

    def sink(self, descriptor: str) -> Sink:
        return self.sinks.get(descriptor, "stream")

    def into_pipe(self, *descriptors: str) -> Streams:
        """The streams of what a pipe or a substitution reads: a scope of its own."""
        into = "" if "1" in descriptors else self.into
        return replace(
            self,
            sinks=self.sinks | dict.fromkeys(descriptors, "stream"),
            into=into,
            place=[*self.place],
            inherited=[*self.inherited],
        )

    def maybe(self) -> Streams:
        """The streams of what may not happen, where an `exec >FILE` counts only inside; a `cd` is believed."""
        return replace(self, sinks=dict(self.sinks))

    def reading(self, text: Word | None) -> Streams:
        """The streams of what reads from a pipe: a scope of its own."""
        return replace(self, sinks=dict(self.sinks), stdin=text, piped=True, place=[*self.place], inherited=[*self.inherited])


def redirects_of(node: Node) -> list[Node]:
    """The redirections of a statement."""
    return [child for child in node.children if child.type in REDIRECTS]


def swallowed_words(redirects: Sequence[Node]) -> list[Node]:
    """The words behind `> FILE`, which the grammar gives to the redirection and bash to the command."""
    return [extra for redirect in redirects for extra in redirect.children_by_field_name("destination")[1:]]


def redirected(streams: Streams, redirects: Sequence[Node], source: bytes, variables: Variables, texts: Texts) -> Streams:
    """The streams after redirections, in order: `2>&1 >f` is not `>f 2>&1`. `texts` knows which of them are heredocs."""
    if not redirects:
        return streams
    sinks, stdin, piped = dict(streams.sinks), streams.stdin, streams.piped
    for redirect in redirects:
        if (text := _literal_input(redirect, source, variables, texts)) is not None:
            stdin, piped = text, False
        elif redirect.type != "file_redirect":
            piped = False
        elif _redirect_file(redirect, sinks, source, variables) and not (stdin is not None and _duplicates(redirect)):
            stdin, piped = None, True
    into = next((path for one in reversed(redirects) if (path := _output_file(one, source, variables))), streams.into)
    return Streams(sinks, stdin, piped, into, streams.place, streams.inherited)


def redirect_touches(
    redirects: Sequence[Node], streams: Streams, source: bytes, variables: Variables, texts: Texts
) -> Iterator[Touch | Written]:
    """The files that redirections open. What goes into one that takes no standard output is not known."""
    for redirect in redirects:
        operator = next((child.type for child in redirect.children if not child.is_named), "")
        target = next(iter(redirect.children_by_field_name("destination")), None)
        if redirect.type == "file_redirect" and target is not None and _heredoc(redirect, source, variables, texts) is None:
            path = text_of(target, source, variables)
            opened = not operator.endswith("&") or path.rstrip("-").strip(f"0123456789{HOLE}") != ""
            if opened and operator not in ("<", "<&") and not _output_file(redirect, source, variables):
                yield Written(target.start_point[0] + 1, streams.placed(path), None)
            if path.strip(HOLE) and not (operator.endswith("&") and path.rstrip("-").isdigit()):
                yield Touch(target.start_point[0] + 1, path, "read" if operator.startswith("<") else "write", streams.place[0])


def _duplicates(redirect: Node) -> bool:
    """`<&3`: what stands on another descriptor, which a heredoc may have been given."""
    return any(child.type == "<&" for child in redirect.children)


def _output_file(redirect: Node, source: bytes, variables: Variables) -> str:
    operator = next((child.type for child in redirect.children if not child.is_named), "")
    descriptor = next((raw_of(child, source) for child in redirect.children if child.type == "file_descriptor"), "1")
    target = next(iter(redirect.children_by_field_name("destination")), None)
    if redirect.type != "file_redirect" or target is None or descriptor != "1" or operator not in (">", ">>", ">|", "&>", "&>>"):
        return ""
    return text_of(target, source, variables)


def _redirect_file(redirect: Node, sinks: dict[str, Sink], source: bytes, variables: Variables) -> bool:
    """Applies one redirection to `sinks`; True when it replaces standard input."""
    descriptor, operator, target = "", "", ""
    for child in redirect.children:
        if child.type == "file_descriptor":
            descriptor = raw_of(child, source)
        elif not child.is_named and not operator:
            operator = child.type
        elif child.is_named and not target:
            target = text_of(child, source, variables)
    if operator.startswith("<"):
        return descriptor in {"", "0"}
    if operator == ">&" and target.rstrip("-").isdigit():
        sinks[descriptor or "1"] = sinks.get(target.rstrip("-"), "stream")
        return False
    both = operator.startswith("&>") or (operator == ">&" and not descriptor)
    for name in ("1", "2") if both else (descriptor or "1",):
        other = _OTHER_DESCRIPTOR.fullmatch(target)
        sinks[name] = sinks.get(other[1], "stream") if other else sink_of(target)
    return False


def loosely_redirected(streams: Streams, operator: str, target: str) -> Streams:
    """The streams after one redirection of which there is no tree."""
    if "<" in operator or not operator:
        return replace(streams, stdin=None, piped=True) if operator in ("<", "<>") else streams
    names = ("1", "2") if "&" in operator else ("1",)
    sink: Sink = streams.sink(target) if "&" in operator and target.isdigit() else sink_of(target)
    return replace(streams, sinks=streams.sinks | dict.fromkeys(names, sink))


def _heredoc(redirect: Node, source: bytes, variables: Variables, texts: Texts) -> Word | None:
    operator = next((child for child in redirect.children if child.type == "<"), None)
    target = next(iter(redirect.children_by_field_name("destination")), None)
    text = text_of(target, source, variables) if target is not None else ""
    return texts(operator.start_byte, text, variables) if operator is not None else None


def _literal_input(redirect: Node, source: bytes, variables: Variables, texts: Texts) -> Word | None:
    """The text of a heredoc or herestring; None for any other."""
    if redirect.type == "herestring_redirect":
        values = redirect.named_children
        return Word(text_of(values[-1], source, variables), values[-1].start_point[0] + 1) if values else None
    return _heredoc(redirect, source, variables, texts)
