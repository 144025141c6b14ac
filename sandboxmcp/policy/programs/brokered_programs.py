"""The brokered programs of a session, as `[[broker]]` tables of its packs allow them. Pure values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sandboxmcp.policy.programs.command_line import READERS
from sandboxmcp.policy.programs.options import OptionTable
from sandboxmcp.policy.programs.order import FetchOrder, Refusal
from sandboxmcp.policy.programs.shapes import ProgramOrder, Shape, begins, read_shape

Otherwise = Literal["refuse", "local"]
"""What becomes of a command line without a shape: refused, or run inside by the real program, where there is no network."""


@dataclass(frozen=True, slots=True)
class Example:
    """Arguments with the verdict that the table must give them."""

    arguments: tuple[str, ...]
    verdict: Literal["allow", "deny", "local"]


@dataclass(frozen=True, slots=True)
class Brokered:
    """One program."""

    program: str
    """The name on PATH."""
    pack: str
    allowed: bool
    because: str = ""
    """Why not, when it is not allowed."""
    fetches: str = ""
    """`curl` or `wget`: read by that program's options, run on curl. Empty: run as it is, by shapes."""
    options: OptionTable | None = None
    methods: tuple[str, ...] = ("GET", "HEAD")
    run: tuple[str, ...] = ()
    """The real program with words that come first; looked up on the box's PATH."""
    shapes: tuple[Shape, ...] = ()
    otherwise: Otherwise = "refuse"
    hosts: tuple[str, ...] = ()
    """The only domains that it may reach; empty: any that the settings allow."""
    environment: tuple[str, ...] = ()
    """Variables of the server's that it sees in its box, credentials for example. The script never does."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Variables that it has in its box."""
    session: Mapping[str, str] = field(default_factory=dict)
    """Variables that scripts have inside, so that other programs find this one."""
    examples: tuple[Example, ...] = ()


def read_program(program: Brokered, argv: Sequence[str]) -> ProgramOrder | None:
    """The order of a command line of a program with shapes; None when it is to be run inside.

    Raises:
        Refusal: it has the beginning of a shape, or none, and is not allowed.
    """
    for shape in sorted(program.shapes, key=lambda one: -len(one.words)):
        if begins(shape, argv):
            return read_shape(shape, argv)
    if program.otherwise == "local":
        return None
    known = ", ".join(" ".join((program.program, *shape.words)).strip() for shape in program.shapes)
    raise Refusal(f"these arguments have no shape that is allowed here; allowed are: {known}")


def read_fetch(program: Brokered, argv: Sequence[str], stdout: str = "stream", stderr: str = "stream") -> FetchOrder:
    """The order of a command line of curl or wget.

    Raises:
        Refusal: it is not allowed.
    """
    if program.options is None:
        raise Refusal("its options are not known")
    kinds = [kind if kind in ("file", "null") else "stream" for kind in (stdout, stderr)]
    return READERS[program.fetches](program.options, argv, program.methods, kinds[0], kinds[1])  # type: ignore[arg-type]


def example_problem(program: Brokered, example: Example) -> str:
    """What is wrong with an example: empty when the verdict is as it says."""
    found = "allow"
    try:
        if program.fetches:
            read_fetch(program, example.arguments)
        elif read_program(program, example.arguments) is None:
            found = "local"
    except Refusal as refusal:
        found = f"deny ({refusal})"
    return "" if found.split(" ", 1)[0] == example.verdict else f"the example is {found}, not {example.verdict}"


def in_force(tables: Iterable[Brokered]) -> dict[str, Brokered]:
    """The programs that may be used, by name. A table that refuses beats all that allow; `*` refuses every program.

    What several tables allow a program is allowed; hosts that one of them leaves out are not, and where that leaves none, nothing.
    """
    listed = list(tables)
    refused = {table.program for table in listed if not table.allowed}
    if "*" in refused:
        return {}
    found: dict[str, Brokered] = {}
    for table in listed:
        if table.allowed and table.program not in refused:
            joined = _joined(found[table.program], table) if table.program in found else table
            if joined is None:
                refused.add(table.program)
                del found[table.program]
            else:
                found[table.program] = joined
    return found


def _joined(one: Brokered, other: Brokered) -> Brokered | None:
    hosts = _in_both(one.hosts, other.hosts) if one.hosts and other.hosts else one.hosts or other.hosts
    if not hosts and one.hosts:
        return None
    return replace(
        one,
        methods=tuple(dict.fromkeys((*one.methods, *other.methods))),
        shapes=(*one.shapes, *other.shapes),
        run=one.run or other.run,
        hosts=hosts,
        environment=tuple(dict.fromkeys((*one.environment, *other.environment))),
        fixed={**other.fixed, **one.fixed},
        session={**other.session, **one.session},
    )


def _in_both(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Domains that lie in or below one of each."""
    below = [one for one in some if any(one == other or one.endswith("." + other) for other in others)]
    return tuple(dict.fromkeys([*below, *(other for other in others if any(other.endswith("." + one) for one in some))]))
