"""The words of a shell command: quotes, backslashes and variables with one known value resolved, the rest left as HOLE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from sandboxmcp.policy.facts import HOLE, SPREAD, Word

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_WORDS = 10_000
_MOST_BRACES = 64
_MOST_RAW = 10_000
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL)
_BRACES = re.compile(r"\{(?:([^{}]*,[^{}]*)|(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.-?\d+)?)\}")
_OPAQUE = re.compile(r"'[^']*'|\$'(?:[^'\\]|\\.)*'|\$?\"(?:[^\"\\]|\\.)*\"|\\.|\$\{[^}]*\}|\$?\([^)]*\)|`[^`]*`", re.DOTALL)
_HELD = 0xF0000
"""What braces do not see in a word stands there as letters from here on."""
_SPREADING = re.compile(r"\$\{?(?:[@*]|!?\w+\[[@*]\])")
_PLAIN = re.compile(r"\$\{?([A-Za-z_]\w*|[1-9])\}?")
_ALL = frozenset({"$@", "$*", "${@}", "${*}"})
_ALL_ARGUMENTS = "@"
_BETWEEN = "\x1f"
TEMPORARY = "/tmp/" + HOLE
"""What `mktemp` makes up."""
_MKTEMP = re.compile(r"[$`(\s]*mktemp(?:\s+(?:-[dqt]{1,3}|--directory|--suffix=[\w.]+|/tmp/[\w.-]+|(?<=-t )[\w.-]+))*[\s)`]*")
_FOUND = re.compile(r"\A[$`(\s]*(?:which|command\s+-[vp]|type\s+-[pP]|echo|printf)\s+([\w./+-]+)[\s)`]*\Z")

Variables = Mapping[str, str]
"""By name; a function's arguments by their numbers."""


def with_arguments(variables: Variables, arguments: Sequence[str]) -> Variables:
    """The variables as the body of a function sees them that is called with these arguments."""
    numbered = {str(at): text for at, text in enumerate(arguments[:9], 1)}
    return {**variables, **numbered, _ALL_ARGUMENTS: _BETWEEN.join(arguments)}


Certainty = Literal["sure", "built", "unsure"]
"""Whether a word surely becomes what the variables with one known value make of it; `built`: see Word."""
Sure = Callable[["Node"], Certainty]


def words_of(nodes: Sequence[Node], source: bytes, variables: Variables, certainty_of: Sure = lambda _: "sure") -> list[Word]:
    """The words that `nodes` become when they run; one node may become several words."""
    words: list[Word] = []
    end, vanished = -1, False
    for node in nodes[:_MOST_WORDS]:
        text = text_of(node, source, variables)
        glued = source[end : node.start_byte] == b"\\\n"
        end = node.end_byte
        line = node.start_point[0] + 1
        certainty, count = "unsure" if vanished else certainty_of(node), len(words)
        sure, built = certainty != "unsure", certainty == "built"
        if _ALL_ARGUMENTS in variables and raw_of(node, source).strip().strip('"') in _ALL:
            words += [Word(part, line, sure, built) for part in variables[_ALL_ARGUMENTS].split(_BETWEEN) if part]
        elif glued and words:
            words[-1] = Word(words[-1].text + text, words[-1].line, words[-1].sure and sure, words[-1].built or built)
        elif node.type in {"simple_expansion", "expansion"} and HOLE not in text:
            words += [Word(part, line, sure, built) for part in text.split()]
        else:
            words += [Word(part, line, sure, built) for part in _braces(node, text)]
        vanished = not sure and len(words) == count  # what is empty now need not be, and then the next word is another one
    return words


def expansions_in(node: Node) -> Iterator[tuple[Node, bool]]:
    """The expansions of variables in a word, each with whether it stands in quotes; not those within substitutions."""
    stack = [(node, False)]
    while stack:
        current, quoted = stack.pop()
        if current.type in ("simple_expansion", "expansion"):
            yield current, quoted
        elif current.type not in ("command_substitution", "process_substitution"):
            stack += [(child, quoted or current.type == "string") for child in current.named_children]


def plain_name(raw: str) -> str:
    """The variable of `$x` and `${x}`; empty for what does more than name one."""
    found = _PLAIN.fullmatch(raw.lstrip())
    return found[1] if found else ""


def text_of(node: Node, source: bytes, variables: Variables) -> str:
    """What a word becomes, as one text."""
    match node.type:
        case "raw_string":
            return raw_of(node, source)[1:-1]
        case "ansi_c_string":
            return _ANSI.sub(_ansi_escape, raw_of(node, source)[2:-1])
        case "string":
            return _pieces(node, source, variables, 1, quoted=True)
        case "translated_string":
            return "".join(text_of(child, source, variables) for child in node.named_children)
        case "concatenation":
            return _pieces(node, source, variables, 0, quoted=False)
        case "simple_expansion" | "expansion":
            return _expanded(raw_of(node, source), variables)
        case "command_substitution":
            return _substituted(raw_of(node, source))
        case "process_substitution":
            return "/dev/fd/63"
        case "arithmetic_expansion" | "brace_expression":
            return HOLE
        case _:
            return re.sub(r"\\(\n|(.))", r"\2", raw_of(node, source), flags=re.DOTALL)


def loose_word(raw: str, variables: Variables) -> str:
    """What a word becomes that no tree holds: up to its first expansion that is not a plain variable, of which nothing is known."""
    text = ""
    for piece in _LOOSE.finditer(raw):
        match piece.lastgroup:
            case "single":
                text += piece["single"]
            case "ansi":
                text += _ANSI.sub(_ansi_escape, piece["ansi"])
            case "double":
                text += loose_word(re.sub(r"([^$`\\\"\w])", r"\\\1", piece["double"]), variables)
            case "escaped":
                text += piece["escaped"].strip("\n")
            case "variable":
                text += _expanded(piece["variable"], variables)
            case "other":
                return text + HOLE
            case _:
                text += piece[0]
    return text


_LOOSE = re.compile(
    r"'(?P<single>[^']*)'|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|\$?\"(?P<double>(?:[^\"\\`$]|\\.|\$(?!\())*)\"|\\(?P<escaped>.)"
    r"|(?P<variable>\$(?:\w+|\{\w+\}|[@*]))|(?P<other>\$[({\[]|`|[\"'])|.",
    re.DOTALL,
)


def expanded(raw: str, variables: Variables) -> str:
    """What an expansion becomes that stands alone, as in the text of a heredoc."""
    return _substituted(raw) if raw.startswith(("$(", "`")) else _expanded(raw, variables)


def raw_of(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _pieces(node: Node, source: bytes, variables: Variables, border: int, *, quoted: bool) -> str:
    """Children resolved, and the text between them, which has no node of its own."""
    at, end = node.start_byte + border, node.end_byte - border
    pieces: list[str] = []
    for child in node.children:
        if child.type in {'"', "string_content", "heredoc_content"}:
            continue
        pieces.append(_plain(source[at : child.start_byte], quoted=quoted))
        pieces.append(text_of(child, source, variables))
        at = child.end_byte
    pieces.append(_plain(source[at : max(at, end)], quoted=quoted))
    return "".join(pieces)


def _plain(text: bytes, *, quoted: bool) -> str:
    escapes = r"\\(\n|([$`\"\\]))" if quoted else r"\\(\n|(.))"
    return re.sub(escapes, lambda match: match[2] or "", text.decode("utf-8", "replace"), flags=re.DOTALL)


def _expanded(raw: str, variables: Variables) -> str:
    """A variable's one known value. Blanks before `$` belong to the text around it: the grammar takes them in."""
    bare = raw.lstrip()
    blanks = raw[: len(raw) - len(bare)]
    if _SPREADING.match(bare):
        return blanks + SPREAD
    plain = _PLAIN.fullmatch(bare)
    return blanks + (variables.get(plain[1], HOLE) if plain else HOLE)


def _substituted(raw: str) -> str:
    """`$(which curl)` is curl, and `$(mktemp)` a file of /tmp; everything else is known only at run time."""
    if _MKTEMP.fullmatch(raw):
        return TEMPORARY
    found = _FOUND.match(raw)
    return found[1] if found else HOLE


def _ansi_escape(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal or match[4]:
        code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8)
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
    return chr(ord(match[5]) & 31) if match[5] else _ESCAPES.get(match[6], match[6])


def _braces(node: Node, text: str) -> list[str]:
    quoted = node.type not in {"word", "concatenation"} or any(child.type.endswith("string") for child in node.children)
    return [text] if quoted else spread_braces(text)


def spread_braces(text: str) -> list[str]:
    """`{a,b}` becomes two words; beyond some number of words the rest stays as it is."""
    done: list[str] = []
    waiting = [text]
    while waiting and len(done) + len(waiting) < _MOST_BRACES:
        match = _BRACES.search(current := waiting.pop(0))
        if match is None:
            done.append(current)
        else:
            parts = match[1].split(",") if match[1] is not None else _sequence(match[2], match[3])
            waiting[:0] = [current[: match.start()] + part + current[match.end() :] for part in parts]
    return done + waiting


def _sequence(first: str, last: str) -> list[str]:
    """`{a..c}` and `{1..3}`: some of the words, and a HOLE where there are more."""
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return [HOLE]
    plain = first.isalpha()
    start, stop = (ord(first), ord(last)) if plain else (int(first), int(last))
    step = 1 if stop >= start else -1
    values = range(start, stop + step, step)[: _MOST_BRACES // 2]
    more = [HOLE] if abs(stop - start) >= len(values) else []
    return [chr(one) if plain else str(one) for one in values] + more


def has_braces(raw: str) -> bool:
    """Whether bash makes several words of this one by its braces."""
    return "{" in raw and _BRACES.search(_OPAQUE.sub("_", raw)) is not None


def spread_raw(raw: str) -> list[str]:
    """The words that braces make of one as it is written; quoted parts stay as they are. HOLE: not known any more."""
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found[0])
        return chr(_HELD + len(held) - 1)

    words = spread_braces(_OPAQUE.sub(hold, raw[:_MOST_RAW]))
    if len(raw) > _MOST_RAW:
        return [HOLE]
    spread = [HOLE if _BRACES.search(word) else word for word in words if word]
    return ["".join(held[ord(one) - _HELD] if _HELD <= ord(one) < _HELD + len(held) else one for one in word) for word in spread]
