"""A pack in words: what it is, its rules, and in which forms which programs are let out. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from sandboxmcp.policy.packs.pack import Pack
from sandboxmcp.policy.programs.brokered_programs import Brokered
from sandboxmcp.policy.programs.options import OptionTable
from sandboxmcp.policy.programs.shapes import FILE, FLAG, FOLDER, Shape

_ALTERNATIVES = re.compile(r"[\w.-]+(\|[\w.-]+)*")
_NUMBER = re.compile(r"\\d(\{[\d,]+\}|\+)")


def pack_in_words(pack: Pack, brokers: Mapping[str, Brokered]) -> Iterator[str]:
    """Line by line. `brokers`: the brokered programs of the pack's family, with the options that are known of them."""
    yield f"{pack.name} {pack.version}".rstrip() + (f": {pack.description}" if pack.description else "")
    yield f"file: {pack.file}"
    if pack.extends:
        yield f"extends: {', '.join(pack.extends)}"
    if pack.ask_is_deny:
        yield "what a rule wants asked is denied"
    yield from (f"must hold: {name} = {value}" for name, value in pack.demands)
    yield from (f"{rule.verdict} {rule.id}: {rule.because} {rule.instead}" for rule in pack.rules)
    for broker in pack.brokers:
        yield from _broker(broker, brokers.get(broker.program, broker).options)


def _broker(broker: Brokered, options: OptionTable | None) -> Iterator[str]:
    if not broker.allowed:
        yield f"never let out: {'any program' if broker.program == '*' else broker.program}. {broker.because}".rstrip()
        return
    where = f" to {', '.join(broker.hosts)}" if broker.hosts else ""
    sees = f", with the server's {', '.join(broker.environment)}" if broker.environment else ""
    yield f"let out: {broker.program}{where}{sees}"
    if broker.fetches:
        yield f"  {', '.join(broker.methods)}, quietly, into files: {broker.program} {_options(options)} URL..."
    yield from (f"  {form}" for shape in broker.shapes for form in [_form(broker, shape)])
    yield from (f"  as in: {shlex.join((broker.program, *one.arguments))}" for one in broker.examples if one.verdict == "allow")
    if broker.otherwise == "local":
        yield "  anything else of it runs inside, without a network"


def _form(broker: Brokered, shape: Shape) -> str:
    """`gh issue view [-R|--repo REPO] ARGUMENT`; a form without fixed words is told by its name."""
    words = [broker.program, *shape.words, _options(shape.options, shape.requires), *["ARGUMENT"] * shape.least]
    more = shape.most - shape.least
    words += [f"[up to {more} ARGUMENT{'s' * (more > 1)}{' more' if shape.least else ''}]"] if more else []
    line = " ".join(filter(None, words))
    return f"{line}; leaves files" if shape.results else f"{line}: {shape.name}" if not shape.words else line


def _options(options: OptionTable | None, required: tuple[str, ...] = ()) -> str:
    """`[-R|--repo REPO] [--patch]`, those that are required without brackets."""
    spellings: dict[str, list[str]] = {}
    for spelling, name in (options.canonical if options else {}).items():
        spellings.setdefault(name, []).append(spelling)
    parts = []
    for name, rule in (options.taken if options else {}).items():
        takes = options is not None and name in options.valued
        part = "|".join(spellings.get(name, [name])) + (f" {_value(name, rule)}" if takes else "")
        parts.append(part if name in required else f"[{part}]")
    return " ".join(parts)


def _value(name: str, rule: str) -> str:
    if rule in (FILE, FOLDER, FLAG):
        return rule.upper()
    if _NUMBER.fullmatch(rule):
        return "NUMBER"
    plain = "|" in rule or rule.isupper()
    return rule if plain and _ALTERNATIVES.fullmatch(rule) else name.lstrip("-").upper().replace("-", "_")
