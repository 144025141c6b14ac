"""`[[broker]]` tables of packs: programs that may reach the network outside, by options or by shapes, with examples that are
checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandboxmcp.policy.packs.tables import Checks
from sandboxmcp.policy.packs.toml_lines import Path as Place
from sandboxmcp.policy.programs.addresses import checked_domain
from sandboxmcp.policy.programs.brokered_programs import Brokered, Example
from sandboxmcp.policy.programs.knowledge import Program
from sandboxmcp.policy.programs.options import OptionTable
from sandboxmcp.policy.programs.shapes import FILE, FLAG, FOLDER, Shape

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}|\*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FETCHERS = ("curl", "wget")
_OPTIONAL = {
    "because", "fetches", "methods", "run", "shape", "otherwise", "hosts", "environment", "fixed", "session", "example",
}  # fmt: skip


def read_broker(checks: Checks, table: Mapping[str, Any], place: Place, pack: str) -> Brokered:
    """One `[[broker]]` table. What `fetches` says is joined with the options of that program later: see `with_options`.

    Raises:
        BrokenPack: a key is unknown or missing, or a value is wrong.
    """
    checks.keys(table, place, required={"program", "verdict"}, optional=_OPTIONAL)
    program = checks.text(table, "program", place)
    verdict = checks.text(table, "verdict", place)
    checks.among([verdict], ("allow", "deny"), (*place, "verdict"))
    if not _NAME.fullmatch(program) or (program == "*" and verdict == "allow"):
        raise checks.fail((*place, "program"), f"{program!r} is no program", "Give the name of one; `*` may only be denied.")
    fetches = checks.text(table, "fetches", place, "")
    checks.among([fetches] if fetches else [], _FETCHERS, (*place, "fetches"))
    otherwise = checks.text(table, "otherwise", place, "refuse")
    checks.among([otherwise], ("refuse", "local"), (*place, "otherwise"))
    shapes = tuple(_shape(checks, one, at) for one, at in checks.tables(table, "shape", place))
    if verdict == "allow" and not fetches and not (shapes and "run" in table):
        raise checks.fail(place, f"broker {program!r} says not what may be run", "Add fetches, or run with shapes.")
    for name in checks.names(table, "environment", place):
        if not _VARIABLE.fullmatch(name):
            raise checks.fail((*place, "environment"), f"{name!r} is no variable")
    return Brokered(
        program=program,
        pack=pack,
        allowed=verdict == "allow",
        because=checks.text(table, "because", place, ""),
        fetches=fetches,
        methods=checks.names(table, "methods", place) or ("GET", "HEAD"),
        run=checks.names(table, "run", place),
        shapes=shapes,
        otherwise="local" if otherwise == "local" else "refuse",
        hosts=_hosts(checks, table, place),
        environment=checks.names(table, "environment", place),
        fixed=_variables(checks, table, "fixed", place),
        session=_variables(checks, table, "session", place),
        examples=tuple(_example(checks, one, at) for one, at in checks.tables(table, "example", place)),
    )


def with_options(broker: Brokered, program: Program | None) -> Brokered:
    """The same with the options that the packs know of what it fetches with."""
    if program is None or not broker.fetches:
        return broker
    return replace(broker, options=OptionTable(program.canonical, program.valued, program.taken, program.refused))


def _hosts(checks: Checks, table: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    try:
        return tuple(checked_domain(one) for one in checks.names(table, "hosts", place))
    except ValueError as error:
        raise checks.fail((*place, "hosts"), f"'hosts' {error}") from None


def _variables(checks: Checks, table: Mapping[str, Any], key: str, place: Place) -> dict[str, str]:
    found = checks.table(table.get(key, {}), (*place, key))
    for name, value in found.items():
        if not _VARIABLE.fullmatch(name) or not isinstance(value, str) or "\0" in value:
            raise checks.fail((*place, key, name), f"{key}.{name} wants the name of a variable and a text")
    return dict(found)


def _example(checks: Checks, table: Mapping[str, Any], place: Place) -> Example:
    checks.keys(table, place, required={"arguments", "verdict"}, optional=set())
    verdict = checks.text(table, "verdict", place)
    checks.among([verdict], ("allow", "deny", "local"), (*place, "verdict"))
    return Example(checks.names(table, "arguments", place), verdict)  # type: ignore[arg-type]  # `among` has just proved it


def _shape(checks: Checks, table: Mapping[str, Any], place: Place) -> Shape:
    optional = {"words", "flags", "values", "operands", "least", "most", "adds", "results", "streams", "requires", "input_line"}
    checks.keys(table, place, required={"name"}, optional=optional)
    streams, operands = checks.names(table, "streams", place), checks.names(table, "operands", place)
    line = checks.text(table, "input_line", place, "")
    for pattern in (*streams, *operands, line):
        _check_pattern(checks, pattern, place)
    if checks.number(table, "most", place) and not operands:
        raise checks.fail(place, "a shape with operands wants their forms", "Add operands.")
    return Shape(
        name=checks.text(table, "name", place),
        words=checks.names(table, "words", place),
        options=_options(checks, table, place),
        operands=operands,
        least=checks.number(table, "least", place),
        most=checks.number(table, "most", place),
        adds=checks.names(table, "adds", place),
        results=checks.switch(table, "results", place),
        requires=checks.names(table, "requires", place),
        input_line=line,
        streams=streams,
    )


def _options(checks: Checks, table: Mapping[str, Any], place: Place) -> OptionTable:
    """`flags` as in `[[program]]`; `values` leads the spellings of an option to `file`, `folder` or a pattern."""
    taken = dict.fromkeys(checks.names(table, "flags", place), FLAG)
    for group, rule in checks.table(table.get("values", {}), (*place, "values")).items():
        if not isinstance(rule, str) or rule == FLAG:
            raise checks.fail((*place, "values", group), f"{group!r} wants a pattern, {FILE!r} or {FOLDER!r}")
        if rule not in (FILE, FOLDER):
            _check_pattern(checks, rule, (*place, "values", group))
        taken[group] = rule
    canonical = {spelling: group.split()[-1] for group in taken for spelling in group.split()}
    if any(not spelling.startswith("-") for spelling in canonical):
        raise checks.fail(place, "an option begins with a dash")
    return OptionTable(
        canonical=canonical,
        valued=frozenset(group.split()[-1] for group, rule in taken.items() if rule != FLAG),
        taken={group.split()[-1]: rule for group, rule in taken.items()},
    )


def _check_pattern(checks: Checks, pattern: Any, place: Place) -> None:
    try:
        re.compile(pattern)
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise checks.fail(place, f"{pattern!r} is not a regular expression: {error}") from None
