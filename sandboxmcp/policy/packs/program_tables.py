"""`[[program]]`, `[[function]]` and `[[variable]]` tables of packs: what is known of programs, functions and variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from sandboxmcp.policy.facts import Access
from sandboxmcp.policy.packs.tables import Checks
from sandboxmcp.policy.packs.toml_lines import Path as Place
from sandboxmcp.policy.patterns import pattern_problem
from sandboxmcp.policy.programs.code_files import Content, Loader, Maker, Which
from sandboxmcp.policy.programs.curl_options import treatment_problem
from sandboxmcp.policy.programs.knowledge import Function, Operands, Program, Runs, Then, TouchRule

_SETS = ("quiet", "noisy", "file", "files", "all_files", "targets", "inert", "code", "module", "encoded", "script", "sources")
_SWITCHES = ("each", "writes", "silent", "prints", "passes", "switches", "mixes", "plus")
_OTHERS = {
    "flags", "values", "then", "skip", "starts", "language", "stdin", "adds_unless", "taken", "refused", "touch", "carries",
    "code_after", "inputs",
}  # fmt: skip


def read_program(checks: Checks, table: Mapping[str, Any], place: Place) -> Program:
    """One `[[program]]` table: how a program reads its options, and which of them run code or touch files.

    Raises:
        BrokenPack: a key is unknown or missing, or a value is wrong.
    """
    checks.keys(table, place, required={"names"}, optional={*_OTHERS, *_SETS, *_SWITCHES})
    canonical, valued = _spellings(checks, table, place)
    then = table.get("then")
    checks.among([then] if then is not None else [], get_args(Then), (*place, "then"))
    known = {key: _known(checks, table, key, canonical, place) for key in _SETS}
    return Program(
        names=checks.names(table, "names", place),
        canonical=canonical,
        valued=valued,
        then=then,
        skip=checks.number(table, "skip", place),
        inputs=frozenset(checks.names(table, "inputs", place)),
        starts=frozenset(checks.names(table, "starts", place)),
        language=table.get("language"),
        stdin=_known(checks, table, "stdin", canonical, place) if "stdin" in table else None,
        adds_unless=_known(checks, table, "adds_unless", canonical, place) if "adds_unless" in table else None,
        code_after=frozenset(checks.names(table, "code_after", place)),
        carries=_carries(checks, table, canonical, place),
        taken=_taken(checks, table, canonical, valued, place),
        refused=_refused(checks, table, canonical, place),
        touches=tuple(_touch(checks, one, canonical, at) for one, at in checks.tables(table, "touch", place)),
        **known,  # type: ignore[arg-type]  # the names are those of the fields
        **{key: checks.switch(table, key, place) for key in _SWITCHES},  # type: ignore[arg-type]
    )


def read_function(checks: Checks, table: Mapping[str, Any], place: Place) -> Function:
    """One `[[function]]` table: what a function of a language runs or touches.

    Raises:
        BrokenPack: a key is unknown or missing, or a value is wrong.
    """
    checks.keys(table, place, required={"names", "language", "runs"}, optional={"code", "argument", "receiver"})
    runs = checks.text(table, "runs", place)
    checks.among([runs], get_args(Runs), (*place, "runs"))
    return Function(
        names=checks.names(table, "names", place),
        language=checks.text(table, "language", place),
        runs=runs,  # type: ignore[arg-type]  # `among` has just proved it
        code=checks.text(table, "code", place, "shell"),
        argument=checks.number(table, "argument", place),
        receiver=checks.switch(table, "receiver", place),
    )


def read_variable(checks: Checks, table: Mapping[str, Any], place: Place) -> dict[str, str]:
    """One `[[variable]]` table: names of variables of the environment that hold code, each with its language.

    Raises:
        BrokenPack: a key is unknown or missing, or a value is wrong.
    """
    checks.keys(table, place, required={"names"}, optional={"language"})
    return dict.fromkeys(checks.names(table, "names", place), checks.text(table, "language", place, "shell"))


def read_maker(checks: Checks, table: Mapping[str, Any], place: Place) -> Maker:
    """One `[[maker]]` table: programs that put content into files, and how their arguments name these.

    Raises:
        BrokenPack: a key is unknown or missing, or a value is wrong.
    """
    checks.keys(table, place, required={"names"}, optional={*_FILES, "content", "suffix"})
    content = checks.text(table, "content", place, "opaque")
    checks.among([content], get_args(Content), (*place, "content"))
    return Maker(**_files(checks, table, place), content=content, suffix=checks.text(table, "suffix", place, ""))  # type: ignore[arg-type]


def read_loader(checks: Checks, table: Mapping[str, Any], place: Place) -> Loader:
    """One `[[loader]]` table: programs that run files as code, and which files these are.

    Raises:
        BrokenPack: a key is unknown or missing, or a value is wrong.
    """
    checks.keys(table, place, required={"names"}, optional={*_FILES, "language"})
    return Loader(**_files(checks, table, place), language=checks.text(table, "language", place, ""))


_FILES = ("when", "options", "operands", "files", "pattern")


def _files(checks: Checks, table: Mapping[str, Any], place: Place) -> dict[str, Any]:
    operands = checks.text(table, "operands", place, "none")
    checks.among([operands], get_args(Which), (*place, "operands"))
    patterns = {key: checks.text(table, key, place, "") for key in ("when", "pattern")}
    for key, pattern in patterns.items():
        if pattern and (problem := pattern_problem(pattern)):
            raise checks.fail((*place, key), f"the pattern {problem}")
    return {
        "names": checks.names(table, "names", place),
        "options": frozenset(checks.names(table, "options", place)),
        "operands": operands,
        "files": checks.names(table, "files", place),
        **patterns,
    }


def _touch(checks: Checks, table: Mapping[str, Any], canonical: Mapping[str, str], place: Place) -> TouchRule:
    checks.keys(table, place, required={"access"}, optional={"operands", "when", "unless", "values", "prefix"})
    operands = checks.text(table, "operands", place, "all")
    checks.among([table["access"]], get_args(Access), (*place, "access"))
    checks.among([operands], get_args(Operands), (*place, "operands"))
    return TouchRule(
        access=table["access"],
        operands=operands,  # type: ignore[arg-type]  # `among` has just proved it
        when=frozenset(canonical.get(name, name) for name in checks.names(table, "when", place)),
        unless=frozenset(canonical.get(name, name) for name in checks.names(table, "unless", place)),
        values=_known(checks, table, "values", canonical, place),
        prefix=checks.text(table, "prefix", place, ""),
    )


def _spellings(checks: Checks, table: Mapping[str, Any], place: Place) -> tuple[dict[str, str], frozenset[str]]:
    canonical: dict[str, str] = {}
    valued: set[str] = set()
    for key in ("flags", "values"):
        for group in checks.names(table, key, place):
            spelled = group.split()
            if not spelled or any(not one.startswith("-") or one in canonical for one in spelled):
                raise checks.fail((*place, key), f"{group!r} has a spelling that is no option, or that stands twice")
            canonical |= dict.fromkeys(spelled, spelled[-1])
            valued |= {spelled[-1]} if key == "values" else set()
    return canonical, frozenset(valued)


def _taken(
    checks: Checks, table: Mapping[str, Any], canonical: Mapping[str, str], valued: frozenset[str], place: Place
) -> dict[str, str]:
    taken = checks.table(table.get("taken", {}), (*place, "taken"))
    for name, treatment in taken.items():
        if canonical.get(name) != name or not isinstance(treatment, str):
            raise checks.fail((*place, "taken", name), f"{name!r} is no option by its last spelling, or has no treatment")
        if problem := treatment_problem(treatment, name in valued):
            raise checks.fail((*place, "taken", name), problem)
    return dict(taken)


def _carries(checks: Checks, table: Mapping[str, Any], canonical: Mapping[str, str], place: Place) -> dict[str, str]:
    carries = checks.table(table.get("carries", {}), (*place, "carries"))
    for name, pattern in carries.items():
        if name and name[0] not in "<>" and canonical.get(name) != name:
            raise checks.fail((*place, "carries", name), f"{name!r} is no option by its last spelling")
        if problem := pattern_problem(pattern) or ("" if re.compile(pattern).groups else "wants a group, which is the command"):
            raise checks.fail((*place, "carries", name), f"the pattern {problem}")
    return dict(carries)


def _refused(checks: Checks, table: Mapping[str, Any], canonical: Mapping[str, str], place: Place) -> dict[str, str]:
    reasons = checks.table(table.get("refused", {}), (*place, "refused"))
    here = (*place, "refused")
    return {name: reason for reason in reasons for name in _known(checks, reasons, reason, canonical, here)}


def _known(checks: Checks, table: Mapping[str, Any], key: str, canonical: Mapping[str, str], place: Place) -> frozenset[str]:
    names = checks.names(table, key, place)
    missing = [name for name in names if name not in canonical]
    if missing:
        raise checks.fail((*place, key), f"{missing[0]!r} is neither among flags nor values")
    return frozenset(canonical[name] for name in names)
