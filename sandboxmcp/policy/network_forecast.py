"""A forecast for programs that want a network inside the sandbox: let out by the broker, refused there, or without a network.

For `policy explain`. No verdict: what fails for want of a network does no harm, and a script may mean it to fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sandboxmcp.policy.facts import Capability, Command, Fact
from sandboxmcp.policy.programs.brokered_programs import Brokered, read_fetch, read_program
from sandboxmcp.policy.programs.order import Refusal
from sandboxmcp.sandbox.hints import no_network

_MOST = 20
NETWORK = "network"
"""The capability that packs describe."""


def network_outlook(facts: Iterable[Fact], brokered: Mapping[str, Brokered]) -> tuple[str, ...]:
    """What becomes of commands that would not reach the network, each with its line. `brokered`: the programs that are let out."""
    found: dict[str, list[str]] = {}
    for command in _wanting(facts):
        if what := _outlook(command, brokered):
            found.setdefault(what, []).append(f"{_spoken(command)} (line {command.line})")
    return tuple(f"{', '.join(list(dict.fromkeys(commands))[:_MOST])} {what}" for what, commands in list(found.items())[:_MOST])


def _wanting(facts: Iterable[Fact]) -> Iterator[Command]:
    """The commands that the fact of this capability comes after: see Engine."""
    last: Fact | None = None
    for fact in facts:
        if isinstance(fact, Command):
            last = fact
        elif isinstance(fact, Capability) and (fact.name, fact.language) == (NETWORK, "shell") and isinstance(last, Command):
            yield last


def _outlook(command: Command, brokered: Mapping[str, Brokered]) -> str:
    program = brokered.get(command.name)
    if program is None:
        return _by_a_helper(command, brokered) or f"would fail: {no_network(brokered)}"
    if not all(word.known for word in command.args):
        return ""
    try:
        if program.fetches:
            kinds = [{"stream": "stream", "file": "file", "discard": "null"}[sink] for sink in (command.stdout, command.stderr)]
            read_fetch(program, [word.text for word in command.args], kinds[0], kinds[1])
        elif read_program(program, [word.text for word in command.args]) is None:
            return f"would run inside, without a network; let out are: {_forms(program)}"
    except Refusal as refusal:
        return f"would be refused by the broker: {refusal}"
    return ""


def _by_a_helper(command: Command, brokered: Mapping[str, Brokered]) -> str:
    """Of git, whose transport is a program of its own, what of it is let out: which of these a command is, is git's to say."""
    forms = [form.name for name, one in brokered.items() if name.startswith(f"{command.name}-") for form in one.shapes]
    return f"can reach the network only as {', '.join(forms)}" if forms else ""


def _spoken(command: Command) -> str:
    first = command.args[0].text if command.args and command.args[0].known else ""
    return f"{command.name} {first}" if first.replace("-", "").isalnum() else command.name


def _forms(program: Brokered) -> str:
    return ", ".join(" ".join((program.program, *shape.words)) for shape in program.shapes)
